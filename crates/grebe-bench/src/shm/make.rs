use std::time::{Duration, Instant};

use grebe_frame::{HEADER_BYTES, Header};
use serde::{Deserialize, Serialize};

use super::plan::Job;
use crate::clock;
use crate::udp::pattern::Pattern;

/// Makes the frames of a run when they are due.
#[derive(Debug)]
pub struct Maker {
    pattern: Pattern,
    sequence: u64,
    rate_hz: f64,
    /// Nanoseconds a frame; `None`: as fast as possible.
    frame_ns: Option<f64>,
    tick: Duration,
    began: Instant,
    /// When frame 0 began to be due: later than `began` by what was skipped.
    start: Instant,
    start_ns: u64,
    until: Instant,
    /// When it was last asked what is due, and how many frames it may make since then.
    looked: Instant,
    credit: f64,
    skipped: u64,
    cpu_before: Option<Duration>,
}

/// What a producer did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// Frames made.
    pub frames: u64,
    /// Frames it was too late to make.
    pub skipped: u64,
    /// From the beginning to the end.
    pub duration: Duration,
    /// Processor time of its thread.
    pub cpu: Option<Duration>,
}

impl Maker {
    /// The run begins now.
    pub fn new(job: &Job) -> Self {
        let pattern = Pattern::new(job.channels, job.block);
        let start = Instant::now();
        Self {
            pattern,
            sequence: 0,
            rate_hz: job.target_msps.unwrap_or(0.0) * 1e6,
            frame_ns: job.target_msps.map(|msps| f64::from(job.block) * 1e3 / msps),
            tick: job.tick,
            began: start,
            start,
            start_ns: clock::now_ns(),
            until: start + job.duration,
            looked: start,
            credit: 0.0,
            skipped: 0,
            cpu_before: clock::thread_cpu(),
        }
    }

    /// How many frames are due, after waiting for them; `None`: the run is over.
    pub fn due(&mut self) -> Option<u64> {
        let now = Instant::now();
        if now >= self.until {
            return None;
        }
        let Some(frame_ns) = self.frame_ns else { return Some(u64::MAX) };
        // Frame n is complete, and due, at (n + 1) x frame_ns.
        let elapsed_ns = now.duration_since(self.start).as_nanos() as f64;
        let mut behind = ((elapsed_ns / frame_ns) as u64).saturating_sub(self.sequence);
        if behind as f64 * frame_ns > LATE_MAX.as_nanos() as f64 {
            // As a generator does that drops what it is too late for; the numbering goes on, in time.
            let skip = Duration::from_nanos((behind as f64 * frame_ns) as u64);
            self.start += skip;
            self.start_ns += skip.as_nanos() as u64;
            self.skipped += behind;
            behind = 0;
        }
        // After a pause of its own it does not pour out at once what consumers then have no room for.
        let elapsed_ns = now.duration_since(std::mem::replace(&mut self.looked, now)).as_nanos() as f64;
        let credit_max = (BURST_MAX.as_nanos() as f64 / frame_ns).max(2.0);
        self.credit = (self.credit + elapsed_ns / frame_ns * CATCH_UP).min(credit_max);
        let due = behind.min(self.credit as u64);
        self.credit -= due as f64;
        if due == 0 {
            std::thread::sleep(self.tick);
        }
        Some(due)
    }

    /// Writes the next frame; its header, which was written too.
    #[inline]
    pub fn write(&mut self, out: &mut [u8]) -> Header {
        let stamp_ns = match self.frame_ns {
            Some(frame_ns) => self.start_ns + ((self.sequence + 1) as f64 * frame_ns) as u64,
            None => clock::now_ns(),
        };
        let (payload, header) = (self.pattern.payload(self.sequence), self.header(stamp_ns));
        if let Some((head, place)) = out.split_first_chunk_mut::<HEADER_BYTES>() {
            header.write_unchecked(head);
            place[..payload.len()].copy_from_slice(payload);
        }
        self.sequence += 1;
        header
    }

    /// What is sent last.
    pub fn end(&self) -> Header {
        Header { block_length_samples: 0, ..self.header(clock::now_ns()) }
    }

    /// What was done.
    pub fn finish(&self) -> Made {
        let cpu =
            clock::thread_cpu().zip(self.cpu_before).map(|(after, before)| after.saturating_sub(before));
        Made { frames: self.sequence, skipped: self.skipped, duration: self.began.elapsed(), cpu }
    }

    fn header(&self, producer_ts_ns: u64) -> Header {
        Header {
            sequence: self.sequence,
            producer_ts_ns,
            channel_count: self.pattern.channels(),
            block_length_samples: self.pattern.block(),
            sample_rate_hz: self.rate_hz,
            sg_drops_total: 0,
            first_sample_index: self.sequence * u64::from(self.pattern.block()),
        }
    }
}

/// A producer that falls behind by more skips ahead.
const LATE_MAX: Duration = Duration::from_millis(100);
/// Times its rate at which it catches up; consumers that share a core have no more to spare.
const CATCH_UP: f64 = 1.5;
/// What it makes at once at most, as time at its rate.
const BURST_MAX: Duration = Duration::from_millis(1);
