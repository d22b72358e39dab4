//! A limiter, and a program that runs graph files with it. `docs/write-a-stage.md` explains both.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use grebe_flow::{Cancel, Context, Error, Fault, GraphFile, Inputs, Kind, Outcome, Outputs, Ports, Site};
use grebe_flow::{Stage, StageError, StageResult, Workspace};
use grebe_frame::Batch;
use schemars::JsonSchema;
use serde::Deserialize;

fn main() -> ExitCode {
    let path = std::env::args().nth(1).unwrap_or_else(|| "limit.toml".into());
    if let Err(error) = run(Path::new(&path)) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn run(path: &Path) -> Result<(), Error> {
    let mut kinds = grebe_stages::kinds();
    kinds.add::<Limit>();
    let file = GraphFile::load(path, &kinds)?;
    let graph = file.build(&kinds, &Cancel::default(), &mut |note| eprintln!("{note}"))?;
    graph.start()?.wait()?;
    Ok(())
}

/// Limits the magnitude of samples.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Limit {
    /// Maximum magnitude, in counts.
    level: i16,
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
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
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
