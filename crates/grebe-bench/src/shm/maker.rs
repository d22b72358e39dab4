use std::time::{Duration, Instant};

use grebe_frame::{HEADER_BYTES, Header};

use super::task::ShmTask;
use crate::clock;
use crate::stream::{Made, Pace, Pattern};

/// Makes the frames of a run when they are due.
#[derive(Debug)]
pub(super) struct Maker {
    pattern: Pattern,
    pace: Pace,
    sequence: u64,
    rate_hz: f64,
    tick: Duration,
    /// What is due at once where there is no rate.
    frames_max: u64,
    began: Instant,
    /// When it was last asked what is due, and how many frames it may make since then.
    looked: Instant,
    credit: f64,
    cpu_before: Option<Duration>,
}

impl Maker {
    /// The run begins now.
    pub(super) fn new(task: &ShmTask) -> Self {
        let pattern = Pattern::new(task.channels, task.block);
        let began = Instant::now();
        Self {
            pattern,
            pace: Pace::new(task.target_msps, task.block, task.duration, LATE_MAX),
            sequence: 0,
            rate_hz: task.target_msps.unwrap_or(0.0) * 1e6,
            tick: task.tick,
            frames_max: task.frames_max(),
            began,
            looked: began,
            credit: 0.0,
            cpu_before: clock::thread_cpu(),
        }
    }

    /// How many frames are due, after waiting for them; `None`: the run is over.
    pub(super) fn due(&mut self) -> Option<u64> {
        let now = Instant::now();
        if now >= self.pace.until {
            return None;
        }
        let Some(frame_ns) = self.pace.frame_ns else { return Some(self.frames_max) };
        let behind = self.pace.behind(self.sequence, frame_ns, now);
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

    /// Writes the next frame, and gives its header.
    #[inline]
    pub(super) fn write(&mut self, out: &mut [u8]) -> Header {
        let stamp_ns = match self.pace.frame_ns {
            Some(frame_ns) => self.pace.due_ns(self.sequence, frame_ns),
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
    pub(super) fn end(&self) -> Header {
        Header { block_length_samples: 0, ..self.header(clock::now_ns()) }
    }

    pub(super) fn finish(&self) -> Made {
        Made {
            frames: self.sequence,
            skipped: self.pace.skipped,
            duration: self.began.elapsed(),
            cpu: clock::since(clock::thread_cpu(), self.cpu_before),
        }
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
