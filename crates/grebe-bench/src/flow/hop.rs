//! What handing on a batch of small frames costs per frame: clone, send, queue, wake-up, take, drop, and all counters.

use std::hint::black_box;
use std::time::{Duration, Instant};

use grebe_flow::{Graph, QueueOptions};

use super::pairs::{Beside, compare};
use super::stages::{FRAMES, Relend, Sink, small_frames, timed};
use crate::error::{Error, Result};
use crate::row::{Progress, Tell};

pub(super) fn run(duration: Duration, repeats: usize, tell: Tell) -> Result<()> {
    let batches = (duration.as_secs_f64() / EXPECTED_BATCH_S) as u64;
    for (case, is_fused) in [("to another thread", false), ("on the same thread", true)] {
        let baseline = "clone and drop alone";
        let of = Beside { bench: "hop", case, unit: "ns per frame", baseline, pairs: repeats };
        let compared = compare(of, || hop(batches, is_fused), || lend(batches))?;
        let is_met = compared.ours.median <= 40.0;
        let note = format!("1400-byte frames, {FRAMES} per batch");
        let row = compared.row(&note, ("cost", "<= 40 ns per frame".to_owned(), is_met));
        tell(Progress::Row(&row));
    }
    Ok(())
}

fn hop(batches: u64, is_fused: bool) -> Result<f64> {
    let mut graph = Graph::new();
    let source = graph.add("source", Relend::new(batches)?);
    let sink = graph.add("sink", Sink);
    if is_fused {
        graph.fuse(source, sink);
    } else {
        graph.connect(source, sink, QueueOptions::block(64));
    }
    let (took, snapshot) = timed(graph)?;
    let arrived = snapshot.stage("sink").map_or(0, |stage| stage.frames_in);
    if arrived != batches * FRAMES {
        return Err(Error::Wrong {
            bench: "hop",
            what: format!("{arrived} frames of {} arrived", batches * FRAMES),
        });
    }
    Ok(took.as_nanos() as f64 / arrived as f64)
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

const EXPECTED_BATCH_S: f64 = 250e-9;
