//! Level detector.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use grebe_flow::{Context, Inputs, Kind, Outcome, Outputs, Ports, Site, Stage, StageError};
use schemars::JsonSchema;
use serde::Deserialize;

/// Writes each range in which a channel stays at or above a level to a CSV file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// Level in counts.
    pub level: i16,
    /// Channel, from 1.
    #[serde(default = "first")]
    pub channel: u8,
    /// CSV file to write.
    pub file: PathBuf,
}

fn first() -> u8 {
    1
}

impl Kind for Threshold {
    const NAME: &'static str = "threshold";
    const PORTS: Ports = Ports::SINK;

    fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        let file = File::create(&self.file)
            .map_err(|error| format!("cannot create {}: {error}", self.file.display()))?;
        let mut stage = ThresholdStage::new(self.level, self.channel, BufWriter::new(file));
        stage.line("first_sample_index,length_samples,peak")?;
        Ok(Box::new(stage))
    }
}

#[derive(Debug)]
struct ThresholdStage<W> {
    level: i16,
    channel: usize,
    to: W,
    /// Start, present end and peak of the range.
    range: Option<(u64, u64, i16)>,
}

impl<W: Write + Send> ThresholdStage<W> {
    fn new(level: i16, channel: u8, to: W) -> Self {
        Self { level, channel: usize::from(channel).saturating_sub(1), to, range: None }
    }

    fn sample(&mut self, index: u64, sample: i16) -> Result<(), StageError> {
        match &mut self.range {
            // A gap ends a range too, because its samples are unknown.
            Some((_, end, peak)) if sample >= self.level && *end == index => {
                (*end, *peak) = (index + 1, sample.max(*peak));
            }
            _ => {
                self.end_range()?;
                self.range = (sample >= self.level).then_some((index, index + 1, sample));
            }
        }
        Ok(())
    }

    fn end_range(&mut self) -> Result<(), StageError> {
        match self.range.take() {
            Some((begin, end, peak)) => self.line(&format!("{begin},{},{peak}", end - begin)),
            None => Ok(()),
        }
    }

    fn line(&mut self, line: &str) -> Result<(), StageError> {
        Ok(writeln!(self.to, "{line}")?)
    }
}

impl<W: Write + Send> Stage for ThresholdStage<W> {
    fn process(
        &mut self,
        input: &mut Inputs,
        output: &mut Outputs,
        ctx: &mut Context,
    ) -> Result<Outcome, StageError> {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        for frame in batch.frames() {
            let first = frame.header().first_sample_index;
            for (at, &sample) in frame.channel::<i16>(self.channel)?.iter().enumerate() {
                self.sample(first + at as u64, sample)?;
            }
        }
        output.send(batch, ctx);
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> Result<(), StageError> {
        self.end_range()?;
        Ok(self.to.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use grebe_flow::StageBench;
    use grebe_frame::{BatchPool, Header};

    use super::*;

    #[test]
    fn ranges_continue_over_frames_and_end_at_gaps() {
        let mut file = tempfile::tempfile().unwrap();
        let mut bench = StageBench::new(ThresholdStage::new(10, 1, file.try_clone().unwrap())).unwrap();
        for (index, samples) in [(0, [0, 10, 12]), (3, [11, 9, 30]), (100, [40, 0, 10])] {
            let mut batch = BatchPool::new(1, 4096).acquire().unwrap();
            let header = Header {
                channel_count: 1,
                block_length_samples: 3,
                first_sample_index: index,
                ..Header::default()
            };
            batch.push::<i16>(&header, |_, out| out.copy_from_slice(&samples)).unwrap();
            assert_eq!(bench.feed(batch.freeze()).unwrap().len(), 1);
        }
        bench.end().unwrap();
        let mut written = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut written).unwrap();
        assert_eq!(written, "1,3,12\n5,1,30\n100,1,40\n102,1,10\n");
    }
}
