//! Cost per frame of passing on a batch of small frames: clone, send, queue, wake-up, receive, drop, and all counters.
//! Also the cost of reading the counters: ten times a second as reports and JSON, against never.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grebe_flow::telemetry::Report;
use grebe_flow::{Graph, QueueOptions, Snapshot};

use super::beside::{Beside, Compared};
use super::stages::{FRAMES, Relend, Sink, small_frames, timed};
use crate::error::{Error, Result};
use crate::row::{Progress, Tell};

pub(super) fn run(duration: Duration, repeats: usize, tell: Tell) -> Result<()> {
    let batches = (duration.as_secs_f64() / EXPECTED_BATCH_S) as u64;
    for (case, is_fused) in [("to another thread", false), ("on the same thread", true)] {
        let baseline = "clone and drop alone";
        let of = Beside { bench: "hop", case, unit: "ns per frame", baseline, pairs: repeats };
        let hop = || {
            let (took, snapshot) = timed(graph(batches, is_fused)?)?;
            Ok(took.as_nanos() as f64 / arrived(&snapshot, batches)? as f64)
        };
        let compared = Compared::measure(of, hop, || lend(batches))?;
        let is_met = compared.ours.median <= 40.0;
        let note = format!("1400-byte frames, {FRAMES} per batch");
        // Less is better here.
        let of_limit = Some(compared.ratio.recip());
        tell(Progress::Row(&compared.row(&note, of_limit, ("cost", "<= 40 ns per frame", is_met))));
    }
    Ok(())
}

pub(super) fn telemetry(duration: Duration, repeats: usize, tell: Tell) -> Result<()> {
    let batches = (duration.as_secs_f64() / EXPECTED_BATCH_S) as u64;
    for (case, is_fused) in [("on one thread", true), ("to another thread", false)] {
        let mut reports = 0;
        let pairs = repeats.max(24);
        let of = Beside { bench: "telemetry", case, unit: "M frames/s", baseline: "never read", pairs };
        let compared = Compared::measure(
            of,
            || observed(batches, is_fused, Some(&mut reports)),
            || observed(batches, is_fused, None),
        )?;
        let note = format!("read {reports} times in all, ten times per second");
        let is_met = compared.interval.is_some_and(|(_, high)| high >= 0.99);
        compared.tell(&mut *tell, &note, ("cost", "< 1 %", is_met));
    }
    Ok(())
}

fn graph(batches: u64, is_fused: bool) -> Result<Graph> {
    let mut graph = Graph::new();
    let source = graph.add("source", Relend::new(batches)?);
    let sink = graph.add("sink", Sink);
    if is_fused {
        graph.fuse(source, sink);
    } else {
        graph.connect(source, sink, QueueOptions::block(64));
    }
    Ok(graph)
}

fn arrived(snapshot: &Snapshot, batches: u64) -> Result<u64> {
    let (arrived, sent) = (snapshot.stage("sink").map_or(0, |stage| stage.frames_in), batches * FRAMES);
    if arrived == sent {
        Ok(arrived)
    } else {
        Err(Error::wrong("hop", format!("{arrived} of {sent} frames arrived")))
    }
}

fn lend(batches: u64) -> Result<f64> {
    let source = small_frames(64)?;
    let began = Instant::now();
    let mut frames = 0;
    for batch in 0..batches {
        let lent = black_box(source[batch as usize % source.len()].clone());
        frames += lent.len() as u64;
    }
    Ok(began.elapsed().as_nanos() as f64 / frames as f64)
}

/// Millions of frames per second; counts how many times the counters were read.
fn observed(batches: u64, is_fused: bool, mut reports: Option<&mut u64>) -> Result<f64> {
    let graph = graph(batches, is_fused)?;
    let began = Instant::now();
    let running = graph.start()?;
    let observe = running.observer();
    let is_over = AtomicBool::new(false);
    let (snapshot, took) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut last = observe();
            // Without reading, it sleeps as long, so that both cases have the same threads.
            while !is_over.load(Ordering::Relaxed) {
                std::thread::park_timeout(Duration::from_millis(100));
                if let Some(reports) = &mut reports {
                    let now = observe();
                    let report = Report::between("bench", &last, &now);
                    black_box(serde_json::to_string(&report).map_or(0, |line| line.len()));
                    last = now;
                    **reports += 1;
                }
            }
        });
        let ended = running.wait();
        let took = began.elapsed();
        is_over.store(true, Ordering::Relaxed);
        reader.thread().unpark();
        (ended, took)
    });
    Ok(arrived(&snapshot?, batches)? as f64 * 1e3 / took.as_nanos() as f64)
}

const EXPECTED_BATCH_S: f64 = 200e-9;
