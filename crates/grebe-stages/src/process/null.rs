//! Discards a stream.

use grebe_flow::{Context, Inputs, Kind, Outcome, Outputs, Ports, Site, Stage, StageError};
use schemars::JsonSchema;
use serde::Deserialize;

/// Takes everything and keeps nothing: an end for a stream of which only the counters matter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Null {}

impl Kind for Null {
    const NAME: &'static str = "null";
    const PORTS: Ports = Ports::SINK;

    fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        Ok(Box::new(self))
    }
}

impl Stage for Null {
    fn process(
        &mut self,
        input: &mut Inputs,
        _: &mut Outputs,
        _: &mut Context,
    ) -> Result<Outcome, StageError> {
        Ok(if input.next().is_some() { Outcome::Produced } else { Outcome::WantsInput })
    }

    fn ports(&self) -> Ports {
        Null::PORTS
    }
}

#[cfg(test)]
mod tests {
    use grebe_flow::{Graph, QueueOptions, StageBench};

    use super::*;
    use crate::testing::stream;

    #[test]
    fn everything_is_taken_and_nothing_comes() {
        // On a bench there is an output to look at.
        struct Open(Null);
        impl Stage for Open {
            fn process(
                &mut self,
                input: &mut Inputs,
                output: &mut Outputs,
                ctx: &mut Context,
            ) -> Result<Outcome, StageError> {
                self.0.process(input, output, ctx)
            }
        }
        let mut bench = StageBench::new(Open(Null {})).unwrap();
        for batch in stream(2, &[(0, 64), (64, 64)]) {
            assert!(bench.feed(batch).unwrap().is_empty());
        }
        assert!(bench.end().unwrap().is_empty());
        assert_eq!(bench.snapshot().stage("stage").unwrap().frames_in, 2);
    }

    #[test]
    fn nothing_can_be_led_out_of_it() {
        let mut graph = Graph::new();
        let (null, next) = (graph.add("null", Null {}), graph.add("next", Null {}));
        assert!(graph.connect_ports((null, "out"), (next, "in"), QueueOptions::block(2)).is_err());
    }
}
