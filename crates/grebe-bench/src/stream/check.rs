use std::time::{Duration, Instant};

use grebe_frame::{HEADER_BYTES, Header, SampleFormat};
use grebe_scope::min_max;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::pattern::Pattern;
use crate::error::{Error, Result};
use crate::system;

/// The work of a consumer on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Work {
    /// Compares every byte in place.
    Compare,
    /// Finds minimum and maximum in place, and compares them with the expected ones.
    MinMax,
    /// Copies the frame, and compares every byte of the copy.
    CopyOut,
}

/// Results of a consumer.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub frames: u64,
    /// Frames that are not what they claim to be.
    pub corrupt: u64,
    /// Frames that arrived after their successor.
    pub reordered: u64,
    /// Bytes copied out on purpose.
    pub copied_out: u64,
    /// Bytes copied because they could not be read where they were.
    pub copied: u64,
    /// From the first frame to the last.
    pub duration: Duration,
    /// Processor time of the thread.
    pub cpu: Option<Duration>,
    /// From when a frame was due to when it was taken.
    pub latency: Latency,
    /// Receiving system calls, the kernel's drop counter and the receive buffer that it granted, where they are known.
    pub calls: u64,
    pub kernel_drops: Option<u64>,
    pub granted_bytes: usize,
}

/// Times between producing and taking, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub p50_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
}

/// Checks that frames are what they claim to be, and counts them.
#[derive(Debug)]
pub struct Checker {
    pattern: Pattern,
    /// Minimum and maximum of each window of the pattern.
    ranges: Vec<(i16, i16)>,
    work: Work,
    copy: Vec<u8>,
    expected: Option<u64>,
    first_ns: u64,
    last_ns: u64,
    cpu_before: Option<Duration>,
    latency: Histogram<u64>,
    /// When the end of the stream came.
    ended: Option<Instant>,
    pub(crate) seen: Seen,
}

impl Checker {
    pub(crate) fn new(format: SampleFormat, channels: u32, block: u32, work: Work) -> Result<Self> {
        let pattern = Pattern::new(format, channels, block);
        let ranges = match work {
            Work::MinMax => {
                (0..Pattern::PERIOD).map(|window| min_max(samples(pattern.payload(window)))).collect()
            }
            Work::Compare | Work::CopyOut => Vec::new(),
        };
        let copy = vec![0; pattern.payload_bytes()];
        let latency = Histogram::new_with_bounds(1, 60_000_000_000, 3)
            .map_err(|error| Error::peer("consumer", error))?;
        Ok(Self {
            pattern,
            ranges,
            work,
            copy,
            expected: None,
            first_ns: 0,
            last_ns: 0,
            cpu_before: None,
            latency,
            ended: None,
            seen: Seen::default(),
        })
    }

    /// Takes one datagram, received at `now_ns` ([`Checker::now_ns`]).
    #[inline]
    pub fn datagram(&mut self, bytes: &[u8], now_ns: u64) {
        match Header::parse_datagram(bytes) {
            Ok(header) => self.frame(&header, &bytes[HEADER_BYTES..], now_ns),
            Err(_) => self.seen.corrupt += 1,
        }
    }

    /// Takes the frames that lie back to back at the front of `bytes`; how many bytes they are.
    #[inline]
    pub(crate) fn frames(&mut self, bytes: &[u8], now_ns: u64) -> usize {
        let mut at = 0;
        while let Ok(header) = Header::parse(&bytes[at..])
            && let Some(payload) = bytes.get(at + HEADER_BYTES..at + header.frame_bytes())
        {
            self.frame(&header, payload, now_ns);
            at += header.frame_bytes();
        }
        at
    }

    /// Takes one frame.
    #[inline]
    pub(crate) fn frame(&mut self, header: &Header, payload: &[u8], now_ns: u64) {
        if header.is_end_of_stream() {
            return self.end();
        }
        let expected = *self.expected.get_or_insert_with(|| {
            self.first_ns = now_ns;
            self.cpu_before = system::thread_cpu();
            header.sequence
        });
        self.last_ns = now_ns;
        self.seen.frames += 1;
        self.seen.reordered += u64::from(header.sequence < expected);
        self.expected = Some(header.sequence + 1);
        let is_good = match self.work {
            Work::Compare => self.pattern.holds(header, payload),
            Work::MinMax => {
                self.pattern.describes(header)
                    && min_max(samples(payload)) == self.ranges[(header.sequence % Pattern::PERIOD) as usize]
            }
            Work::CopyOut => self.copy_out(header, payload),
        };
        self.seen.corrupt += u64::from(!is_good);
        self.latency.saturating_record(now_ns.saturating_sub(header.producer_ts_ns).max(1));
    }

    /// Copies a payload in steps that stay in the first cache, with the expected bytes.
    fn copy_out(&mut self, header: &Header, payload: &[u8]) -> bool {
        let expected = self.pattern.payload(header.sequence);
        if !self.pattern.describes(header) || payload.len() != expected.len() {
            return false;
        }
        self.seen.copied_out += payload.len() as u64;
        let mut is_same = true;
        let steps =
            payload.chunks(STEP_BYTES).zip(self.copy.chunks_mut(STEP_BYTES)).zip(expected.chunks(STEP_BYTES));
        for ((from, to), expected) in steps {
            to.copy_from_slice(from);
            is_same &= to == expected;
        }
        is_same
    }

    /// Takes the end of the stream.
    pub(crate) fn end(&mut self) {
        self.ended.get_or_insert_with(Instant::now);
    }

    /// Whether the end of the stream was taken.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Counts a receiving system call, and takes the kernel's drop counter where there is one.
    pub fn call(&mut self, kernel_drops: Option<u64>) {
        self.seen.calls += 1;
        self.seen.kernel_drops = kernel_drops.or(self.seen.kernel_drops);
    }

    /// The time of the clock that frames are stamped with.
    #[inline]
    pub fn now_ns() -> u64 {
        system::now_ns()
    }

    /// Whether a stream of datagrams is over: it has ended, or nothing has arrived since `last` for too long. Check
    /// at least every 50 ms.
    pub fn is_over(&self, last: Instant) -> bool {
        match self.ended {
            // Time to read the rest from the kernel.
            Some(at) => at.elapsed() > Duration::from_millis(100),
            // Before the first frame the sender may still be starting.
            None if self.expected.is_none() => last.elapsed() >= 10 * IDLE,
            None => last.elapsed() >= IDLE,
        }
    }

    pub(crate) fn finish(mut self) -> Seen {
        let us = |ns: u64| ns as f64 / 1e3;
        self.seen.duration = Duration::from_nanos(self.last_ns.saturating_sub(self.first_ns));
        self.seen.cpu = system::since(system::thread_cpu(), self.cpu_before);
        self.seen.latency = Latency {
            p50_us: us(self.latency.value_at_quantile(0.5)),
            p99_us: us(self.latency.value_at_quantile(0.99)),
            max_us: us(self.latency.max()),
        };
        self.seen
    }
}

/// The samples in place; empty if not aligned, which never happens here.
fn samples(payload: &[u8]) -> &[i16] {
    bytemuck::try_cast_slice(payload).unwrap_or_default()
}

const IDLE: Duration = Duration::from_secs(1);
const STEP_BYTES: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_frames_are_seen_by_every_kind_of_work_and_missing_ones_are_not_counted() {
        for work in [Work::Compare, Work::MinMax, Work::CopyOut] {
            let (pattern, mut checker) = (
                Pattern::new(SampleFormat::I16, 2, 64),
                Checker::new(SampleFormat::I16, 2, 64, work).unwrap(),
            );
            for sequence in (0..10).filter(|&sequence| sequence != 7) {
                // The fifth has the samples of the frame before.
                let payload = pattern.payload(if sequence == 4 { 3 } else { sequence });
                checker.frame(&pattern.header(sequence, 0, 0.0), payload, 0);
            }
            assert!(!checker.is_ended());
            checker.end();
            assert!(checker.is_ended());
            let seen = checker.finish();
            assert_eq!((seen.frames, seen.corrupt, seen.reordered), (9, 1, 0), "{work:?}");
        }
    }

    #[test]
    fn reordered_frames_are_counted() {
        let (pattern, mut checker) = (
            Pattern::new(SampleFormat::I16, 1, 32),
            Checker::new(SampleFormat::I16, 1, 32, Work::Compare).unwrap(),
        );
        for sequence in [0, 2, 1, 3] {
            checker.frame(&pattern.header(sequence, 0, 0.0), pattern.payload(sequence), 0);
        }
        checker.datagram(b"no frame", 0);
        let seen = checker.finish();
        assert_eq!((seen.frames, seen.corrupt, seen.reordered), (4, 1, 1));
    }
}
