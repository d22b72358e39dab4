//! Lets a stream pass no faster than a rate.

use std::time::{Duration, Instant};

use grebe_flow::{Context, Inputs, Kind, Outcome, Outputs, Ports, RateHz, Site, Stage, StageError};
use grebe_frame::Batch;
use schemars::JsonSchema;
use serde::Deserialize;

use super::workspace::later;

/// Lets samples pass no faster than a rate; they wait, none is dropped.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Throttle {
    /// Samples per second and channel; the rate that the frames tell where it is not given.
    pub rate: Option<RateHz>,
}

impl Kind for Throttle {
    const NAME: &'static str = "throttle";
    const PORTS: Ports = Ports::STAGE;

    fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        Ok(Box::new(ThrottleStage::new(&self)))
    }
}

#[derive(Debug)]
pub(crate) struct ThrottleStage {
    rate_hz: Option<f64>,
    /// When the next batch may pass.
    due: Option<Instant>,
    pending: Option<Batch>,
}

impl ThrottleStage {
    pub(crate) fn new(throttle: &Throttle) -> Self {
        Self { rate_hz: throttle.rate.map(|rate| rate.0), due: None, pending: None }
    }

    /// How long the batch takes at the rate; zero where there is no rate.
    fn length(&self, batch: &Batch) -> Duration {
        let told = || batch.frames().next().map_or(0.0, |frame| frame.header().sample_rate_hz);
        let rate_hz = self.rate_hz.unwrap_or_else(told);
        let seconds = batch.samples() as f64 / rate_hz;
        Duration::try_from_secs_f64(seconds).unwrap_or_default().min(LENGTH_MAX)
    }
}

impl Stage for ThrottleStage {
    fn process(
        &mut self,
        input: &mut Inputs,
        output: &mut Outputs,
        ctx: &mut Context,
    ) -> Result<Outcome, StageError> {
        let Some(batch) = self.pending.take().or_else(|| input.next()) else {
            return Ok(Outcome::WantsInput);
        };
        let now = Instant::now();
        let due = self.due.unwrap_or(now);
        ctx.sleep_until(due.min(now + STEP));
        // A graph that is being stopped drains at once.
        if Instant::now() < due && !ctx.is_stopping() {
            self.pending = Some(batch);
            return Ok(later(input));
        }
        // A stream that was late may catch up a little, so that a pause of the machine does not slow it for good.
        let from = now.checked_sub(CATCH_UP).map_or(due, |earliest| due.max(earliest));
        self.due = Some(from + self.length(&batch));
        output.send(batch, ctx);
        Ok(Outcome::Produced)
    }

    fn ports(&self) -> Ports {
        Throttle::PORTS
    }
}

/// A step must not last long.
const STEP: Duration = Duration::from_millis(50);
const CATCH_UP: Duration = Duration::from_millis(100);
/// For rates near zero: longer than anybody waits, and no time overflows.
const LENGTH_MAX: Duration = Duration::from_secs(1 << 30);

#[cfg(test)]
mod tests {
    use grebe_flow::StageBench;

    use super::*;
    use crate::testing::{frames_of, stream};

    #[test]
    fn everything_passes_as_it_came() {
        for channels in [1, 8] {
            let batches = stream(channels, &[(0, 64), (64, 64), (900, 3)]);
            let before = frames_of(&batches);
            let mut bench =
                StageBench::new(ThrottleStage::new(&Throttle { rate: Some(RateHz(1e9)) })).unwrap();
            let mut made = Vec::new();
            batches.into_iter().for_each(|batch| made.extend(bench.feed(batch).unwrap()));
            made.extend(bench.end().unwrap());
            assert_eq!(frames_of(&made), before);
        }
    }

    #[test]
    fn a_batch_holds_up_the_next_for_as_long_as_it_lasts() {
        let batch = stream(1, &[(0, 500)]).remove(0);
        let length =
            |rate: Option<f64>| ThrottleStage::new(&Throttle { rate: rate.map(RateHz) }).length(&batch);
        assert_eq!(length(Some(1_000.0)), Duration::from_millis(500));
        assert_eq!(length(None), Duration::from_micros(500), "the stream's own rate of 1 MS/s");
        assert_eq!(length(Some(1e-300)), Duration::ZERO, "beyond any time: no rate");
        assert_eq!(length(Some(1e-8)), LENGTH_MAX);
    }
}
