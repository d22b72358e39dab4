//! Level meter.

use grebe_flow::{
    Context, Count, Counters, Fault, Inputs, Kind, Outcome, Outputs, Ports, Site, Stage, StageError,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// Measures the root mean square of each channel, and reports the loudest one. Passes the samples on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rms {
    /// Averaging window in samples per channel.
    pub window: Count,
}

impl Kind for Rms {
    const NAME: &'static str = "rms";
    const PORTS: Ports = Ports::STAGE;

    fn check(&self) -> Result<(), Fault> {
        if self.window.0 == 0 { Err(Fault::new("window", "give 1 sample or more")) } else { Ok(()) }
    }

    fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        Ok(Box::new(RmsStage::new(self.window.0)))
    }
}

#[derive(Debug)]
struct RmsStage {
    window: u64,
    samples: u64,
    /// Sum of squares per channel of the stream.
    squares: Vec<u64>,
    counters: Counters,
}

impl RmsStage {
    fn new(window: u64) -> Self {
        Self { window, samples: 0, squares: Vec::new(), counters: Counters::new(&["rms", "channel"]) }
    }

    /// Sets the counters to the loudest channel, and starts the next window.
    fn report(&mut self) {
        let loudest = self.squares.iter().enumerate().max_by_key(|(_, squares)| **squares);
        if let Some((channel, squares)) = loudest {
            self.counters.set(0, (*squares as f64 / self.samples as f64).sqrt().round() as u64);
            self.counters.set(1, channel as u64 + 1);
        }
        self.squares.fill(0);
        self.samples = 0;
    }
}

impl Stage for RmsStage {
    fn process(
        &mut self,
        input: &mut Inputs,
        output: &mut Outputs,
        ctx: &mut Context,
    ) -> Result<Outcome, StageError> {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        for frame in batch.frames() {
            let header = frame.header();
            // Allocates once: frames of a stream have the same number of channels.
            self.squares.resize(header.channel_count as usize, 0);
            for (channel, squares) in self.squares.iter_mut().enumerate() {
                let square = |&sample: &i16| (i64::from(sample) * i64::from(sample)) as u64;
                *squares += frame.channel::<i16>(channel)?.iter().map(square).sum::<u64>();
            }
            self.samples += u64::from(header.block_length_samples);
            if self.samples >= self.window {
                self.report();
            }
        }
        output.send(batch, ctx);
        Ok(Outcome::Produced)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.clone())
    }
}

#[cfg(test)]
mod tests {
    use grebe_flow::StageBench;
    use grebe_frame::{BatchPool, Header};

    use super::*;

    #[test]
    fn the_loudest_of_any_number_of_channels_is_reported() {
        for channels in [1, 2, 9, 255] {
            let mut batch = BatchPool::new(1, 65_536).acquire().unwrap();
            let header = Header { channel_count: channels, block_length_samples: 100, ..Header::default() };
            // A square wave, whose RMS equals its amplitude. The last channel is the loudest.
            let fill = |channel: usize, samples: &mut [i16]| {
                let amplitude = 100 * (channel as i16 + 1);
                let signs = [1, -1].into_iter().cycle();
                samples.iter_mut().zip(signs).for_each(|(sample, sign)| *sample = sign * amplitude);
            };
            batch.push::<i16>(&header, fill).unwrap();
            let batch = batch.freeze();

            let mut bench = StageBench::new(RmsStage::new(100)).unwrap();
            let made = bench.feed(batch.clone()).unwrap();
            assert!(bench.end().unwrap().is_empty());
            assert_eq!(made[0].frames().next().unwrap().payload(), batch.frames().next().unwrap().payload());
            let snapshot = bench.snapshot();
            let stage = snapshot.stage("stage").unwrap();
            let expected = (Some(100 * u64::from(channels)), Some(u64::from(channels)));
            assert_eq!((stage.own("rms"), stage.own("channel")), expected);
        }
    }
}
