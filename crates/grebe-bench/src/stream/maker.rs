use std::time::{Duration, Instant};

use grebe_datagram::SendCounters;
use grebe_frame::{HEADER_BYTES, Header, SampleFormat};
use serde::{Deserialize, Serialize};

use super::pattern::Pattern;
use crate::error::Result;
use crate::system;

/// Content and schedule of a stream.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub format: SampleFormat,
    pub channels: u32,
    /// Samples per channel and frame.
    pub block: u32,
    /// Millions of samples per second and channel; `None`: as fast as it goes.
    pub target_msps: Option<f64>,
    pub duration: Duration,
    /// At a rate, what is due gathers this long and is sent together.
    pub tick: Duration,
    /// Maximum lateness. A later producer skips ahead, as a generator that drops samples; the numbering continues in
    /// time.
    pub late_max: Duration,
    /// After a pause it catches up at 1.5 times its rate, this much signal at once at most; `None`: at once.
    pub burst_max: Option<Duration>,
    /// Frames that are sent at once, at most.
    pub frames_max: usize,
}

impl Plan {
    pub(crate) fn frame_bytes(&self) -> usize {
        HEADER_BYTES + self.channels as usize * self.block as usize * self.format.bytes()
    }
}

/// Results of a producer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Made {
    pub frames: u64,
    /// Frames it was too late to make.
    pub skipped: u64,
    /// From the first frame to the last.
    pub duration: Duration,
    /// Processor time of its thread.
    pub cpu: Option<Duration>,
}

/// Makes the frames of a run when they are due.
#[derive(Debug)]
pub(crate) struct Maker {
    plan: Plan,
    pattern: Pattern,
    headers: Vec<[u8; HEADER_BYTES]>,
    /// Nanoseconds per frame at a rate.
    frame_ns: Option<f64>,
    sequence: u64,
    skipped: u64,
    began: Instant,
    cpu_before: Option<Duration>,
    /// Due time of frame 0, shifted by skipped frames.
    start: Instant,
    start_ns: u64,
    /// Everything due before has been handed out.
    gather_until: Instant,
    /// When it last looked what is due, and how many frames it may make since then.
    looked: Instant,
    credit: f64,
}

impl Maker {
    /// The run begins now.
    pub(crate) fn new(plan: &Plan) -> Self {
        let pattern = Pattern::new(plan.format, plan.channels, plan.block);
        let headers = vec![[0; HEADER_BYTES]; plan.frames_max.max(1)];
        let cpu_before = system::thread_cpu();
        // Read both clocks together: the time between the reads is missing in every latency.
        let (began, start_ns) = (Instant::now(), system::now_ns());
        Self {
            plan: plan.clone(),
            pattern,
            headers,
            frame_ns: plan.target_msps.map(|msps| f64::from(plan.block) * 1e3 / msps),
            sequence: 0,
            skipped: 0,
            began,
            cpu_before,
            start: began,
            start_ns,
            gather_until: began,
            looked: began,
            credit: 0.0,
        }
    }

    /// Spoils the length of every hundredth payload by `by` bytes.
    #[cfg(test)]
    pub(crate) fn spoil(&mut self, by: isize) {
        self.pattern.spoiled_by = by;
    }

    /// Makes and sends frames until the run is over; the end is not sent.
    pub(crate) fn run(&mut self, sender: &mut dyn FrameSender) -> Result<Made> {
        while let Some(count) = self.due() {
            sender.send(&self.frames(count))?;
        }
        Ok(self.made())
    }

    /// How many frames to send now, after waiting for them; `None`: the run is over.
    pub(crate) fn due(&mut self) -> Option<usize> {
        loop {
            let now = Instant::now();
            if now.duration_since(self.began) >= self.plan.duration {
                return None;
            }
            let Some(frame_ns) = self.frame_ns else { return Some(self.headers.len()) };
            // Sending each frame as it falls due would take a system call per frame.
            if now < self.gather_until {
                std::thread::sleep(self.gather_until - now);
                continue;
            }
            let may = self.behind(frame_ns, now).min(self.credit(frame_ns, now));
            let count = may.min(self.headers.len() as u64);
            if count == may {
                let due_in_ns = (self.sequence + 1) as f64 * frame_ns - self.elapsed_ns(now);
                let due_in = Duration::from_nanos(if may == 0 { due_in_ns as u64 } else { 0 });
                self.gather_until = now + due_in.max(self.plan.tick);
            }
            if count > 0 {
                self.credit -= count as f64;
                return Some(count as usize);
            }
        }
    }

    /// The next `count` frames.
    pub(crate) fn frames(&mut self, count: usize) -> Frames<'_> {
        let (first, now_ns) = (self.sequence, system::now_ns());
        let rate_hz = self.plan.target_msps.unwrap_or(0.0) * 1e6;
        let count = count.min(self.headers.len());
        for (sequence, out) in (first..).zip(&mut self.headers[..count]) {
            // At a rate, the time when it was due, so that a late sender shows in the latency.
            let due_ns = self.frame_ns.map(|ns| self.start_ns + ((sequence + 1) as f64 * ns) as u64);
            self.pattern.header(sequence, due_ns.unwrap_or(now_ns), rate_hz).write_unchecked(out);
        }
        self.sequence += count as u64;
        Frames { headers: &self.headers[..count], pattern: Some(&self.pattern), first }
    }

    /// The last frame, without samples.
    pub(crate) fn end(&mut self) -> Frames<'_> {
        let header = self.pattern.header(self.sequence, system::now_ns(), 0.0);
        Header { block_length_samples: 0, ..header }.write_unchecked(&mut self.headers[0]);
        Frames { headers: &self.headers[..1], pattern: None, first: self.sequence }
    }

    pub(crate) fn made(&self) -> Made {
        Made {
            frames: self.sequence,
            skipped: self.skipped,
            duration: self.began.elapsed(),
            cpu: system::since(system::thread_cpu(), self.cpu_before),
        }
    }

    fn elapsed_ns(&self, now: Instant) -> f64 {
        now.duration_since(self.start).as_nanos() as f64
    }

    /// Frames that are due now and not made yet.
    fn behind(&mut self, frame_ns: f64, now: Instant) -> u64 {
        // Frame n is complete, and due, at (n + 1) x frame_ns.
        let behind = ((self.elapsed_ns(now) / frame_ns) as u64).saturating_sub(self.sequence);
        let skip = Duration::from_nanos((behind as f64 * frame_ns) as u64);
        if skip <= self.plan.late_max {
            return behind;
        }
        self.start += skip;
        self.start_ns += skip.as_nanos() as u64;
        self.skipped += behind;
        0
    }

    /// Number of frames that may be made now: after a pause it sends no burst that consumers have no room for.
    fn credit(&mut self, frame_ns: f64, now: Instant) -> u64 {
        let Some(burst_max) = self.plan.burst_max else { return u64::MAX };
        let elapsed_ns = now.duration_since(std::mem::replace(&mut self.looked, now)).as_nanos() as f64;
        let credit_max = (burst_max.as_nanos() as f64 / frame_ns).max(2.0);
        self.credit = (self.credit + elapsed_ns / frame_ns * CATCH_UP).min(credit_max);
        self.credit as u64
    }
}

/// Times its rate at which it catches up; consumers that share a core have no more to spare.
const CATCH_UP: f64 = 1.5;

/// Some frames of a run, to be sent in order.
#[derive(Debug)]
pub struct Frames<'a> {
    headers: &'a [[u8; HEADER_BYTES]],
    /// `None`: the end of the stream, which has no samples.
    pattern: Option<&'a Pattern>,
    first: u64,
}

impl Frames<'_> {
    /// Header and samples of each frame.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (&[u8; HEADER_BYTES], &[u8])> {
        let payload = |sequence| self.pattern.map_or(&[][..], |pattern| pattern.payload(sequence));
        self.headers.iter().zip((self.first..).map(payload))
    }

    /// Bytes of all frames.
    pub fn bytes(&self) -> usize {
        self.headers.len() * self.frame_bytes()
    }

    /// Writes them back to back into `out`.
    #[inline]
    pub fn write(&self, out: &mut [u8]) {
        for ((header, payload), out) in self.iter().zip(out.chunks_exact_mut(self.frame_bytes())) {
            let (head, samples) = out.split_at_mut(HEADER_BYTES);
            head.copy_from_slice(header);
            samples.copy_from_slice(payload);
        }
    }

    /// The same frames in groups that fit into `bytes`, at least one each.
    pub(crate) fn chunks(&self, bytes: usize) -> impl Iterator<Item = Frames<'_>> {
        let count = (bytes / self.frame_bytes()).max(1);
        let chunks = self.headers.chunks(count).zip((self.first..).step_by(count));
        chunks.map(|(headers, first)| Frames { headers, pattern: self.pattern, first })
    }

    pub(crate) fn frame_bytes(&self) -> usize {
        HEADER_BYTES + self.pattern.map_or(0, Pattern::payload_bytes)
    }
}

/// A technique to send frames.
pub trait FrameSender {
    /// Sends all of them, and waits for room if necessary.
    ///
    /// # Errors
    /// If the system refuses.
    fn send(&mut self, frames: &Frames<'_>) -> Result<()>;

    /// Sends the end of the stream, where it is part of the stream.
    ///
    /// # Errors
    /// Where the system refuses.
    fn end(&mut self, end: &Frames<'_>) -> Result<()> {
        self.send(end)
    }

    /// Its counts so far.
    fn counters(&self) -> SendCounters {
        SendCounters::default()
    }

    /// Waits for the consumers, if it knows them.
    ///
    /// # Errors
    /// They do not connect.
    fn wait_for(&mut self, _consumers: usize) -> Result<()> {
        Ok(())
    }
}
