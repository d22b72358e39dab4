//! One source, two consumers: a fast one under `block`, and one that sleeps for each frame under `drop_oldest`; against the
//! fast one alone.

use std::time::{Duration, Instant};

use grebe_flow::{Context, Graph, Inputs, Outcome, Outputs, QueueOptions, Stage, StageError, telemetry};
use grebe_stages::synth::Wave;

use super::pairs::{Beside, compare};
use super::stages::{Hash, Sleeper, block_samples, synth};
use crate::error::{Error, Result};
use crate::row::{Progress, Tell};

pub(super) fn run(duration: Duration, repeats: usize, tell: Tell) -> Result<()> {
    let block = u64::from(block_samples(1));
    let samples = (duration.as_secs_f64() * EXPECTED_SPS) as u64 / block * block;
    let (mut dropped, mut slept) = (0, 0);
    let of = Beside {
        bench: "fan_out",
        case: "beside one that sleeps 100 ms per frame",
        unit: "GSPS",
        baseline: "alone",
        pairs: repeats.max(PAIRS),
    };
    let compared = compare(
        of,
        || {
            let run = consume(samples, true)?;
            (dropped, slept) = (dropped + run.dropped, slept + run.slept);
            Ok(run.gsps)
        },
        || Ok(consume(samples, false)?.gsps),
    )?;
    let note = format!("the sleeping one took {slept} frames, {dropped} were dropped for it (drop_oldest)");
    let is_met = compared.ratio_interval.is_some_and(|(_, high)| high >= 1.0);
    let row = compared.row(&note, ("rate", "no slower than alone".to_owned(), is_met));
    tell(Progress::Row(&row));
    Ok(())
}

struct Consumed {
    gsps: f64,
    /// Frames that the slow one's queue dropped, and those it took.
    dropped: u64,
    slept: u64,
}

fn consume(samples: u64, has_sleeper: bool) -> Result<Consumed> {
    let (ended, end) = std::sync::mpsc::channel();
    let mut graph = Graph::new();
    let source = graph.add("synth", synth(1, |_| Wave::Sine, samples)?);
    let fast = graph.add("fast", Ending { stage: Hash::default(), ended });
    graph.connect(source, fast, QueueOptions::block(8));
    if has_sleeper {
        let slow = graph.add("slow", Sleeper(Duration::from_millis(100)));
        graph.connect(source, slow, QueueOptions::drop_oldest(4));
    }
    let began = Instant::now();
    let running = graph.start()?;
    let published = telemetry::publish(&running, "bench").ok();
    let at = end.recv().map_err(|_| wrong("the fast consumer did not end".to_owned()))?;
    let snapshot = running.stop()?;
    drop(published);
    let taken = |name: &str| snapshot.stage(name).map_or(0, |stage| stage.samples_in);
    if taken("fast") != samples {
        return Err(wrong(format!("{} of {samples} samples reached the fast consumer", taken("fast"))));
    }
    let slow = snapshot.queues.iter().find(|queue| queue.to == "slow");
    Ok(Consumed {
        gsps: samples as f64 / at.duration_since(began).as_nanos() as f64,
        dropped: slow.map_or(0, |queue| queue.dropped_frames),
        slept: snapshot.stage("slow").map_or(0, |stage| stage.frames_in),
    })
}

fn wrong(what: String) -> Error {
    Error::Wrong { bench: "fan_out", what }
}

/// Tells when the stage in it has ended.
struct Ending {
    stage: Hash,
    ended: std::sync::mpsc::Sender<Instant>,
}

impl Stage for Ending {
    fn process(
        &mut self,
        input: &mut Inputs,
        output: &mut Outputs,
        ctx: &mut Context,
    ) -> Result<Outcome, StageError> {
        self.stage.process(input, output, ctx)
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> Result<(), StageError> {
        Ok(self.ended.send(Instant::now())?)
    }
}

const PAIRS: usize = 24;
const EXPECTED_SPS: f64 = 3e9;
