//! Splits a stream in two that share no memory.

use grebe_flow::{Context, Counters, Inputs, Kind, Outcome, Outputs, Ports, Site, Stage, StageError};
use grebe_frame::Batch;
use schemars::JsonSchema;
use serde::Deserialize;

use super::workspace::{Workspace, later};

/// Hands the stream on as it is at `out`, and a copy of it in memory of its own at `copy`.
///
/// Any output may lead to several stages, which then share the samples. Behind `copy` a stage may keep or change them, and
/// one behind `out` may still change them in place.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tee {}

impl Kind for Tee {
    const NAME: &'static str = "tee";
    const PORTS: Ports = Ports { inputs: &["in"], outputs: &["out", "copy"] };

    fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        Ok(Box::new(TeeStage::new()))
    }
}

#[derive(Debug)]
pub(crate) struct TeeStage {
    workspace: Workspace,
    pending: Option<Batch>,
    counters: Counters,
}

impl TeeStage {
    pub(crate) fn new() -> Self {
        Self { workspace: Workspace::default(), pending: None, counters: Counters::new(&["copied_frames"]) }
    }
}

impl Stage for TeeStage {
    fn process(
        &mut self,
        input: &mut Inputs,
        output: &mut Outputs,
        ctx: &mut Context,
    ) -> Result<Outcome, StageError> {
        let Some(batch) = self.pending.take().or_else(|| input.next()) else {
            return Ok(Outcome::WantsInput);
        };
        let Some(copy) = self.workspace.copy(&batch, ctx) else {
            self.pending = Some(batch);
            return Ok(later(input));
        };
        self.counters.set(0, self.workspace.copied_frames());
        output.send_to(0, batch, ctx);
        output.send_to(1, copy.freeze(), ctx);
        Ok(Outcome::Produced)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.clone())
    }

    fn ports(&self) -> Ports {
        Tee::PORTS
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use grebe_flow::{Graph, QueueOptions};

    use super::*;
    use crate::testing::{frames_of, stream};

    struct Feed(Vec<Batch>);

    impl Stage for Feed {
        fn process(
            &mut self,
            _: &mut Inputs,
            output: &mut Outputs,
            ctx: &mut Context,
        ) -> Result<Outcome, StageError> {
            if self.0.is_empty() {
                return Ok(Outcome::End);
            }
            output.send(self.0.remove(0), ctx);
            Ok(Outcome::Produced)
        }
    }

    /// Tells whether it alone holds each batch, and hands the batch to the test.
    struct Tray(Sender<(bool, Batch)>);

    impl Stage for Tray {
        fn process(
            &mut self,
            input: &mut Inputs,
            _: &mut Outputs,
            _: &mut Context,
        ) -> Result<Outcome, StageError> {
            let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
            let (is_alone, batch) = match batch.try_unique() {
                Ok(batch) => (true, batch.freeze()),
                Err(batch) => (false, batch),
            };
            self.0.send((is_alone, batch))?;
            Ok(Outcome::Produced)
        }
    }

    #[test]
    fn both_ends_hold_the_same_samples_each_in_memory_of_its_own() {
        for channels in [1, 3, 8] {
            let batches = stream(channels, &[(0, 64), (64, 7), (300, 64)]);
            let before = frames_of(&batches);
            let mut graph = Graph::new();
            let (feed, tee) = (graph.add("feed", Feed(batches)), graph.add("tee", TeeStage::new()));
            graph.connect_ports((feed, ""), (tee, "in"), QueueOptions::block(4)).unwrap();
            let ends = ["out", "copy"].map(|port| {
                let (tell, made) = channel();
                let tray = graph.add(port, Tray(tell));
                graph.connect_ports((tee, port), (tray, ""), QueueOptions::block(4)).unwrap();
                made
            });
            let mut stepper = graph.stepper().unwrap();
            assert!(stepper.run().unwrap());
            for end in ends {
                let (alone, made): (Vec<bool>, Vec<Batch>) = end.try_iter().unzip();
                assert_eq!(frames_of(&made), before);
                assert_eq!(alone, [true; 3]);
            }
            assert_eq!(stepper.snapshot().stage("tee").unwrap().own("copied_frames"), Some(3));
        }
    }
}
