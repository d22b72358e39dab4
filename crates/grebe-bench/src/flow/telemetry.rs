//! What it costs the data path that its counters are read: ten times a second, made into reports and JSON, against never.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grebe_flow::telemetry::Report;
use grebe_flow::{Graph, QueueOptions};

use super::pairs::{Beside, compare};
use super::stages::{FRAMES, Relend, Sink};
use crate::error::{Error, Result};
use crate::row::{Progress, Tell};

pub(super) fn run(duration: Duration, repeats: usize, tell: Tell) -> Result<()> {
    let batches = (duration.as_secs_f64() / EXPECTED_BATCH_S) as u64;
    for (case, is_fused) in [("on one thread", true), ("to another thread", false)] {
        let mut reports = 0;
        let pairs = repeats.max(PAIRS);
        let of = Beside { bench: "telemetry", case, unit: "M frames/s", baseline: "never read", pairs };
        let compared = compare(
            of,
            || {
                let (rate, read) = hand_on(batches, is_fused, true)?;
                reports += read;
                Ok(rate)
            },
            || Ok(hand_on(batches, is_fused, false)?.0),
        )?;
        let note = format!("read {reports} times in all, ten times per second");
        let is_met = compared.ratio_interval.is_some_and(|(_, high)| high >= 0.99);
        tell(Progress::Row(&compared.row(&note, ("cost", "< 1 %".to_owned(), is_met))));
    }
    Ok(())
}

/// Millions of frames per second, and how many times the counters were read.
fn hand_on(batches: u64, is_fused: bool, is_read: bool) -> Result<(f64, u64)> {
    let mut graph = Graph::new();
    let source = graph.add("source", Relend::new(batches)?);
    let sink = graph.add("sink", Sink);
    if is_fused {
        graph.fuse(source, sink);
    } else {
        graph.connect(source, sink, QueueOptions::block(64));
    }
    let began = Instant::now();
    let running = graph.start()?;
    let observe = running.observer();
    let is_over = AtomicBool::new(false);
    let (snapshot, took, reports) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut reports, mut last) = (0, observe());
            // Sleeps just as long where it does not read, so that both cases have the same threads.
            while !is_over.load(Ordering::Relaxed) {
                std::thread::park_timeout(READ_EVERY);
                if is_read {
                    let now = observe();
                    let report = Report::between("bench", &last, &now);
                    std::hint::black_box(serde_json::to_string(&report).map_or(0, |line| line.len()));
                    (last, reports) = (now, reports + 1);
                }
            }
            reports
        });
        let ended = running.wait();
        let took = began.elapsed();
        is_over.store(true, Ordering::Relaxed);
        reader.thread().unpark();
        (ended, took, reader.join().unwrap_or(0))
    });
    let arrived = snapshot?.stage("sink").map_or(0, |stage| stage.frames_in);
    if arrived != batches * FRAMES {
        return Err(Error::Wrong { bench: "telemetry", what: format!("{arrived} frames arrived") });
    }
    Ok((arrived as f64 * 1e3 / took.as_nanos() as f64, reports))
}

const PAIRS: usize = 24;
const READ_EVERY: Duration = Duration::from_millis(100);
const EXPECTED_BATCH_S: f64 = 150e-9;
