//! How loud a stream is.

use grebe_flow::{
    Context, Count, Counters, Fault, Inputs, Kind, Outcome, Outputs, Ports, Site, Stage, StageError,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// Measures the root mean square of each channel, and hands the samples on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rms {
    /// Samples per channel over which it is measured.
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

/// The stage itself.
#[derive(Debug)]
struct RmsStage {
    window: u64,
    samples: u64,
    squares: [u64; 8],
    counters: Counters,
}

impl RmsStage {
    fn new(window: u64) -> Self {
        Self { window, samples: 0, squares: [0; 8], counters: Counters::new(&NAMES) }
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
            for channel in 0..header.channel_count as usize {
                let square = |&sample: &i16| (i64::from(sample) * i64::from(sample)) as u64;
                self.squares[channel] += frame.channel::<i16>(channel)?.iter().map(square).sum::<u64>();
            }
            self.samples += u64::from(header.block_length_samples);
            if self.samples >= self.window {
                for (channel, squares) in self.squares.iter_mut().enumerate() {
                    self.counters.set(channel, (*squares as f64 / self.samples as f64).sqrt().round() as u64);
                    *squares = 0;
                }
                self.samples = 0;
            }
        }
        output.send(batch, ctx);
        Ok(Outcome::Produced)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.clone())
    }
}

const NAMES: [&str; 8] = ["rms_1", "rms_2", "rms_3", "rms_4", "rms_5", "rms_6", "rms_7", "rms_8"];

#[cfg(test)]
mod tests {
    use grebe_flow::StageBench;
    use grebe_frame::{BatchPool, Header};

    use super::*;

    #[test]
    fn a_square_wave_is_as_loud_as_it_is_high() {
        let mut batch = BatchPool::new(1, 4096).acquire().unwrap();
        let header = Header { channel_count: 2, block_length_samples: 100, ..Header::default() };
        let fill = |channel: usize, samples: &mut [i16]| {
            let height = [3_000, 500][channel];
            samples
                .iter_mut()
                .enumerate()
                .for_each(|(at, sample)| *sample = if at % 2 == 0 { height } else { -height });
        };
        batch.push::<i16>(&header, fill).unwrap();
        let batch = batch.freeze();

        let mut bench = StageBench::new(RmsStage::new(100)).unwrap();
        let made = bench.feed(batch.clone()).unwrap();
        assert!(bench.end().unwrap().is_empty());
        assert_eq!(made[0].frames().next().unwrap().payload(), batch.frames().next().unwrap().payload());
        let snapshot = bench.snapshot();
        let stage = snapshot.stage("stage").unwrap();
        assert_eq!(
            (stage.own("rms_1"), stage.own("rms_2"), stage.own("rms_3")),
            (Some(3_000), Some(500), Some(0))
        );
    }
}
