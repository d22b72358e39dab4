//! Measures how fast a stream flows.

use std::time::{Duration, Instant};

use grebe_flow::{
    Context, Counters, Fault, Inputs, Kind, Outcome, Outputs, Ports, Site, Stage, StageError, Time,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// Measures samples and frames per second, hands on what comes as it is.
///
/// The counters `samples_per_s` and `frames_per_s` hold the last whole interval, `samples_per_s_max` the fastest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateMeter {
    /// Over how long a rate is measured.
    #[serde(default = "second")]
    pub every: Time,
}

fn second() -> Time {
    Time(Duration::from_secs(1))
}

impl Kind for RateMeter {
    const NAME: &'static str = "rate_meter";
    const PORTS: Ports = Ports::STAGE;

    fn check(&self) -> Result<(), Fault> {
        match self.every.0 {
            every if every < EVERY_MIN => Err(Fault::new("every", "give 10ms or more")),
            _ => Ok(()),
        }
    }

    fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        Ok(Box::new(RateMeterStage::new(&self)))
    }
}

#[derive(Debug)]
pub(crate) struct RateMeterStage {
    meter: Meter,
    began: Instant,
    counters: Counters,
}

impl RateMeterStage {
    pub(crate) fn new(options: &RateMeter) -> Self {
        Self { meter: Meter::new(options.every.0), began: Instant::now(), counters: Counters::new(COUNTERS) }
    }
}

impl Stage for RateMeterStage {
    fn process(
        &mut self,
        input: &mut Inputs,
        output: &mut Outputs,
        ctx: &mut Context,
    ) -> Result<Outcome, StageError> {
        // Also where nothing came: a stream that stands still has a rate of 0.
        if let Some(rate) = self.meter.at(self.began.elapsed()) {
            let values = [rate.samples_per_s, rate.frames_per_s, self.meter.samples_per_s_max];
            values.into_iter().enumerate().for_each(|(at, value)| self.counters.set(at, value));
        }
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        self.meter.add(batch.samples(), batch.len() as u64);
        output.send(batch, ctx);
        Ok(Outcome::Produced)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.clone())
    }

    fn ports(&self) -> Ports {
        RateMeter::PORTS
    }
}

/// Counts, and divides by the time that has passed: no clock of its own.
#[derive(Debug)]
struct Meter {
    every: Duration,
    since: Duration,
    samples: u64,
    frames: u64,
    samples_per_s_max: u64,
}

#[derive(Debug, PartialEq, Eq)]
struct Rate {
    samples_per_s: u64,
    frames_per_s: u64,
}

impl Meter {
    fn new(every: Duration) -> Self {
        Self { every, since: Duration::ZERO, samples: 0, frames: 0, samples_per_s_max: 0 }
    }

    fn add(&mut self, samples: u64, frames: u64) {
        self.samples += samples;
        self.frames += frames;
    }

    /// The rate, where an interval has passed by now.
    fn at(&mut self, now: Duration) -> Option<Rate> {
        let passed = now.saturating_sub(self.since);
        if passed < self.every {
            return None;
        }
        let per_s = |count: u64| (count as f64 / passed.as_secs_f64()).round() as u64;
        let rate = Rate { samples_per_s: per_s(self.samples), frames_per_s: per_s(self.frames) };
        self.samples_per_s_max = self.samples_per_s_max.max(rate.samples_per_s);
        (self.since, self.samples, self.frames) = (now, 0, 0);
        Some(rate)
    }
}

const COUNTERS: &[&str] = &["samples_per_s", "frames_per_s", "samples_per_s_max"];
const EVERY_MIN: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use grebe_flow::StageBench;

    use super::*;
    use crate::testing::{frames_of, stream};

    #[test]
    fn a_rate_is_what_came_over_the_time_that_passed() {
        let mut meter = Meter::new(Duration::from_secs(1));
        meter.add(500, 5);
        assert_eq!(meter.at(Duration::from_millis(999)), None);
        meter.add(1_500, 15);
        let rate = |samples_per_s, frames_per_s| Some(Rate { samples_per_s, frames_per_s });
        assert_eq!(meter.at(Duration::from_secs(2)), rate(1_000, 10));
        assert_eq!(meter.at(Duration::from_secs(3)), rate(0, 0));
        assert_eq!(meter.samples_per_s_max, 1_000);
    }

    #[test]
    fn the_stream_goes_on_as_it_came() {
        for channels in 1..=8 {
            let batches = stream(channels, &[(0, 64), (64, 64), (900, 3)]);
            let before = frames_of(&batches);
            let mut bench = StageBench::new(RateMeterStage::new(&RateMeter { every: second() })).unwrap();
            let made: Vec<_> = batches.into_iter().flat_map(|batch| bench.feed(batch).unwrap()).collect();
            assert_eq!(frames_of(&made), before);
            assert!(bench.end().unwrap().is_empty());
        }
    }

    #[test]
    fn an_interval_too_short_to_measure_is_refused() {
        assert!(RateMeter { every: Time(Duration::ZERO) }.check().is_err());
    }
}
