//! Limiter.

use grebe_flow::{Context, Fault, Inputs, Kind, Outcome, Outputs, Ports, Site, Stage, StageError, Workspace};
use grebe_frame::Batch;
use schemars::JsonSchema;
use serde::Deserialize;

/// Limits the magnitude of samples.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Maximum magnitude, in counts.
    pub level: i16,
}

impl Kind for Limit {
    const NAME: &'static str = "limit";
    const PORTS: Ports = Ports::STAGE;

    fn check(&self) -> Result<(), Fault> {
        if self.level < 1 { Err(Fault::new("level", "give 1 or more")) } else { Ok(()) }
    }

    fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        Ok(Box::new(LimitStage { level: self.level, workspace: Workspace::default(), pending: None }))
    }
}

#[derive(Debug)]
struct LimitStage {
    level: i16,
    workspace: Workspace,
    /// A batch that waits for memory.
    pending: Option<Batch>,
}

impl Stage for LimitStage {
    fn process(
        &mut self,
        input: &mut Inputs,
        output: &mut Outputs,
        ctx: &mut Context,
    ) -> Result<Outcome, StageError> {
        let Some(batch) = self.pending.take().or_else(|| input.next()) else {
            return Ok(Outcome::WantsInput);
        };
        match self.workspace.own(batch, ctx) {
            Ok(mut own) => {
                let level = self.level;
                own.update::<i16>(|_header, _channel, samples| {
                    samples.iter_mut().for_each(|sample| *sample = (*sample).clamp(-level, level));
                })?;
                output.send(own.freeze(), ctx);
                Ok(Outcome::Produced)
            }
            Err(batch) => {
                self.pending = Some(batch);
                Ok(Outcome::Again)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use grebe_flow::StageBench;
    use grebe_frame::{BatchPool, Header};

    use super::*;

    #[test]
    fn samples_are_limited_in_a_copy_if_another_stage_holds_the_batch() {
        let mut batch = BatchPool::new(1, 4096).acquire().unwrap();
        let header = Header { channel_count: 9, block_length_samples: 4, ..Header::default() };
        batch.push::<i16>(&header, |_, out| out.copy_from_slice(&[-30_000, -5, 5, 30_000])).unwrap();
        let held = batch.freeze();

        let stage = LimitStage { level: 10, workspace: Workspace::default(), pending: None };
        let made = StageBench::new(stage).unwrap().feed(held.clone()).unwrap();
        let frame = made[0].frames().next().unwrap();
        assert_eq!(frame.channel::<i16>(8).unwrap().as_ref(), [-10, -5, 5, 10]);
        let unchanged = held.frames().next().unwrap();
        assert_eq!(unchanged.channel::<i16>(8).unwrap().as_ref(), [-30_000, -5, 5, 30_000]);
    }
}
