//! Stages that leave samples unchanged: they discard, copy, slow down or measure a stream.

use std::time::{Duration, Instant};

use grebe_flow::{
    Context, Counters, Fault, Inputs, Kind, Outcome, Outputs, Ports, RateHz, Site, Stage, StageResult, Time,
    Workspace,
};
use grebe_frame::Batch;
use schemars::JsonSchema;
use serde::Deserialize;

/// Discards the stream; only its counters remain.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Null {}

impl Kind for Null {
    const NAME: &'static str = "null";
    const PORTS: Ports = Ports::SINK;

    fn build(self, _: &mut Site) -> StageResult<Box<dyn Stage>> {
        Ok(Box::new(self))
    }
}

impl Stage for Null {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        Ok(if input.next().is_some() { Outcome::Produced } else { Outcome::WantsInput })
    }

    fn ports(&self) -> Ports {
        Null::PORTS
    }
}

/// Passes the stream unchanged to `out`, and a copy in separate memory to `copy`.
///
/// Any output may lead to several stages, which then share the samples. A stage after `copy` may keep or
/// change them, and one after `out` may still change them in place.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tee {}

impl Kind for Tee {
    const NAME: &'static str = "tee";
    const PORTS: Ports = Ports { inputs: &["in"], outputs: &["out", "copy"] };

    fn build(self, _: &mut Site) -> StageResult<Box<dyn Stage>> {
        Ok(Box::new(TeeStage::new()))
    }
}

#[derive(Debug)]
pub(crate) struct TeeStage {
    workspace: Workspace,
    pending: Option<Batch>,
    counters: Copied,
}

impl TeeStage {
    pub(crate) fn new() -> Self {
        Self { workspace: Workspace::default(), pending: None, counters: Copied::default() }
    }
}

impl Stage for TeeStage {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(batch) = self.pending.take().or_else(|| input.next()) else {
            return Ok(Outcome::WantsInput);
        };
        let Some(copy) = self.workspace.copy(&batch, ctx) else {
            self.pending = Some(batch);
            return Ok(Outcome::Again);
        };
        self.counters.copied_frames.set(self.workspace.copied_frames());
        output.send_to(0, batch, ctx);
        output.send_to(1, copy.freeze(), ctx);
        Ok(Outcome::Produced)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }

    fn ports(&self) -> Ports {
        Tee::PORTS
    }
}

/// Limits the rate of a stream. Samples wait, and none is dropped.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Throttle {
    /// Samples per second and channel [default: the rate of the stream].
    pub rate: Option<RateHz>,
}

impl Kind for Throttle {
    const NAME: &'static str = "throttle";
    const PORTS: Ports = Ports::STAGE;

    fn rate_hz(&self, incoming: Option<f64>) -> Option<f64> {
        self.rate.as_ref().map(|rate| rate.0).or(incoming)
    }

    fn build(self, _: &mut Site) -> StageResult<Box<dyn Stage>> {
        Ok(Box::new(ThrottleStage::new(&self)))
    }
}

#[derive(Debug)]
pub(crate) struct ThrottleStage {
    rate_hz: Option<f64>,
    /// Time for the next batch.
    due: Option<Instant>,
    pending: Option<Batch>,
}

impl ThrottleStage {
    pub(crate) fn new(throttle: &Throttle) -> Self {
        Self { rate_hz: throttle.rate.map(|rate| rate.0), due: None, pending: None }
    }

    /// Duration of the batch at the rate; zero without a rate.
    fn length(&self, batch: &Batch) -> Duration {
        let told = || batch.frames().next().map_or(0.0, |frame| frame.header().sample_rate_hz);
        let rate_hz = self.rate_hz.unwrap_or_else(told);
        let seconds = batch.samples() as f64 / rate_hz;
        Duration::try_from_secs_f64(seconds).unwrap_or_default().min(LENGTH_MAX)
    }
}

impl Stage for ThrottleStage {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(batch) = self.pending.take().or_else(|| input.next()) else {
            return Ok(Outcome::WantsInput);
        };
        let now = Instant::now();
        let due = self.due.unwrap_or(now);
        ctx.sleep_until(due.min(now + STEP));
        // A stopping graph drains at once.
        if Instant::now() < due && !ctx.is_stopping() {
            self.pending = Some(batch);
            return Ok(Outcome::Again);
        }
        // A late stream may catch up slightly, so that a pause of the machine does not slow it permanently.
        let from = now.checked_sub(CATCH_UP).map_or(due, |earliest| due.max(earliest));
        self.due = Some(from + self.length(&batch));
        output.send(batch, ctx);
        Ok(Outcome::Produced)
    }

    fn ports(&self) -> Ports {
        Throttle::PORTS
    }
}

/// Maximum length of a step.
const STEP: Duration = Duration::from_millis(50);
const CATCH_UP: Duration = Duration::from_millis(100);
/// Bound for rates near zero, without overflow.
const LENGTH_MAX: Duration = Duration::from_secs(1 << 30);

/// Measures samples and frames per second, and passes the stream unchanged.
///
/// The counters `samples_per_s` and `frames_per_s` show the last complete interval, `samples_per_s_max` the
/// fastest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateMeter {
    /// Interval of a measurement.
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

    fn build(self, _: &mut Site) -> StageResult<Box<dyn Stage>> {
        Ok(Box::new(RateMeterStage::new(&self)))
    }
}

#[derive(Debug)]
pub(crate) struct RateMeterStage {
    meter: Meter,
    began: Instant,
    counters: Counted,
}

impl RateMeterStage {
    pub(crate) fn new(options: &RateMeter) -> Self {
        Self { meter: Meter::new(options.every.0), began: Instant::now(), counters: Counted::default() }
    }
}

impl Stage for RateMeterStage {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        // Also without input: a paused stream has a rate of 0.
        if let Some(rate) = self.meter.at(self.began.elapsed()) {
            self.counters.samples_per_s.set(rate.samples_per_s);
            self.counters.frames_per_s.set(rate.frames_per_s);
            self.counters.samples_per_s_max.set(self.meter.samples_per_s_max);
        }
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        self.meter.add(batch.samples(), batch.len() as u64);
        output.send(batch, ctx);
        Ok(Outcome::Produced)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }

    fn ports(&self) -> Ports {
        RateMeter::PORTS
    }
}

/// Counts, and divides by the elapsed time, which callers pass in.
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

    /// Rate, if an interval has passed.
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

grebe_flow::counters! {
    struct Copied { copied_frames }
}
grebe_flow::counters! {
    struct Counted { gauge samples_per_s, gauge frames_per_s, gauge samples_per_s_max }
}
const EVERY_MIN: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use grebe_flow::{Graph, QueueOptions, StageBench};
    use grebe_testing::stream::{frames_of, stream};

    use super::*;

    #[test]
    fn everything_is_taken_and_nothing_comes() {
        // On a bench it needs an output.
        struct Open(Null);
        impl Stage for Open {
            fn process(
                &mut self,
                input: &mut Inputs,
                output: &mut Outputs,
                ctx: &mut Context,
            ) -> StageResult {
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

    struct Feed(Vec<Batch>);

    impl Stage for Feed {
        fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
            if self.0.is_empty() {
                return Ok(Outcome::End);
            }
            output.send(self.0.remove(0), ctx);
            Ok(Outcome::Produced)
        }
    }

    /// Reports whether it alone holds each batch, and passes the batch to the test.
    struct Tray(Sender<(bool, Batch)>);

    impl Stage for Tray {
        fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
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
    fn a_batch_delays_the_next_by_its_duration() {
        let batch = stream(1, &[(0, 500)]).remove(0);
        let length =
            |rate: Option<f64>| ThrottleStage::new(&Throttle { rate: rate.map(RateHz) }).length(&batch);
        assert_eq!(length(Some(1_000.0)), Duration::from_millis(500));
        assert_eq!(length(None), Duration::from_micros(500), "the stream's own rate of 1 MS/s");
        assert_eq!(length(Some(1e-300)), Duration::ZERO, "beyond any time: no rate");
        assert_eq!(length(Some(1e-8)), LENGTH_MAX);
    }

    #[test]
    fn a_rate_is_the_received_amount_per_elapsed_time() {
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
    fn the_meter_passes_the_stream_unchanged() {
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
