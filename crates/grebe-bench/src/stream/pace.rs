use std::time::{Duration, Instant};

use crate::clock;

/// When the frames of a run are due.
#[derive(Debug)]
pub(crate) struct Pace {
    pub until: Instant,
    /// Nanoseconds per frame; `None`: as fast as possible.
    pub frame_ns: Option<f64>,
    /// Frames that it was too late to make.
    pub skipped: u64,
    /// When frame 0 began to be due: later than the run's begin by what was skipped.
    start: Instant,
    start_ns: u64,
    late_max: Duration,
}

impl Pace {
    /// The run begins now. Who falls behind by more than `late_max` skips ahead, as a generator does that drops samples; the
    /// numbering goes on, in time.
    pub(crate) fn new(target_msps: Option<f64>, block: u32, duration: Duration, late_max: Duration) -> Self {
        let start = Instant::now();
        Self {
            until: start + duration,
            frame_ns: target_msps.map(|msps| f64::from(block) * 1e3 / msps),
            skipped: 0,
            start,
            start_ns: clock::now_ns(),
            late_max,
        }
    }

    /// Frames that are due now and not made yet, of `frame_ns` each, where `sequence` is the next.
    pub(crate) fn behind(&mut self, sequence: u64, frame_ns: f64, now: Instant) -> u64 {
        // Frame n is complete, and due, at (n + 1) x frame_ns.
        let elapsed_ns = now.duration_since(self.start).as_nanos() as f64;
        let behind = ((elapsed_ns / frame_ns) as u64).saturating_sub(sequence);
        if behind as f64 * frame_ns <= self.late_max.as_nanos() as f64 {
            return behind;
        }
        let skip = Duration::from_nanos((behind as f64 * frame_ns) as u64);
        self.start += skip;
        self.start_ns += skip.as_nanos() as u64;
        self.skipped += behind;
        0
    }

    /// When a frame is due; on the clock that all processes share.
    pub(crate) fn due_ns(&self, sequence: u64, frame_ns: f64) -> u64 {
        self.start_ns + ((sequence + 1) as f64 * frame_ns) as u64
    }

    /// How long until a frame is due.
    pub(crate) fn due_in(&self, sequence: u64, frame_ns: f64, now: Instant) -> Duration {
        let elapsed_ns = now.duration_since(self.start).as_nanos() as f64;
        Duration::from_nanos(((sequence + 1) as f64 * frame_ns - elapsed_ns) as u64)
    }
}
