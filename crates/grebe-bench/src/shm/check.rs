use std::time::Duration;

use grebe_frame::{HEADER_BYTES, Header};
use grebe_scope::min_max;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::plan::{Job, Work};
use crate::clock;
use crate::udp::Latency;
use crate::udp::pattern::Pattern;
use crate::{Error, Result};

/// What a consumer saw.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Frames taken.
    pub frames: u64,
    /// Frames that did not come: gaps, and what is missing before the end.
    pub lost: u64,
    /// Frames that are not what they claim to be.
    pub corrupt: u64,
    /// Frames that came behind their successor.
    pub reordered: u64,
    /// Bytes copied out, on purpose.
    pub copied_out: u64,
    /// Bytes copied because they could not be read where they were.
    pub copied: u64,
    /// From the first frame to the last.
    pub duration: Duration,
    /// Processor time of the thread.
    pub cpu: Option<Duration>,
    /// From when a frame was due to when it was taken.
    pub latency: Latency,
    /// Whether the end of the stream was seen.
    pub ended: bool,
}

/// Does a consumer's work on each frame, and checks it.
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
    seen: Seen,
}

impl Checker {
    /// For the frames of this job.
    ///
    /// # Errors
    /// None that a job of this crate leads to.
    pub fn new(job: &Job) -> Result<Self> {
        let pattern = Pattern::new(job.channels, job.block);
        let ranges = match job.work {
            Work::MinMax => {
                (0..Pattern::PERIOD).map(|window| min_max(samples(pattern.payload(window)))).collect()
            }
            Work::CopyOut => Vec::new(),
        };
        let copy = vec![0; job.frame_bytes()];
        let latency = Histogram::new_with_bounds(1, 60_000_000_000, 3)
            .map_err(|error| Error::Peer { side: "consumer", reason: error.to_string() })?;
        Ok(Self {
            pattern,
            ranges,
            work: job.work,
            copy,
            expected: None,
            first_ns: 0,
            last_ns: 0,
            cpu_before: None,
            latency,
            seen: Seen::default(),
        })
    }

    /// Takes one frame, at `now_ns` ([`Checker::now_ns`]).
    #[inline]
    pub fn frame(&mut self, header: &Header, payload: &[u8], now_ns: u64) {
        if header.is_end_of_stream() {
            return self.end(header);
        }
        let expected = *self.expected.get_or_insert_with(|| {
            self.first_ns = now_ns;
            self.cpu_before = clock::thread_cpu();
            header.sequence
        });
        self.last_ns = now_ns;
        self.seen.frames += 1;
        self.seen.reordered += u64::from(header.sequence < expected);
        self.seen.lost += header.sequence.saturating_sub(expected);
        self.expected = Some(header.sequence + 1);
        let is_good = match self.work {
            Work::MinMax => {
                let range = min_max(samples(payload));
                header.channel_count == self.pattern.channels()
                    && header.block_length_samples == self.pattern.block()
                    && range == self.ranges[(header.sequence % Pattern::PERIOD) as usize]
            }
            Work::CopyOut => {
                self.seen.copied_out += payload.len() as u64;
                let copy = &mut self.copy[..payload.len()];
                let expected = self.pattern.payload(header.sequence);
                // In steps that stay in the first cache, with what they are compared with.
                let mut is_same = self.pattern.describes(header) && payload.len() == expected.len();
                for ((from, to), expected) in payload
                    .chunks(STEP_BYTES)
                    .zip(copy.chunks_mut(STEP_BYTES))
                    .zip(expected.chunks(STEP_BYTES))
                {
                    to.copy_from_slice(from);
                    is_same &= to == expected;
                }
                is_same
            }
        };
        self.seen.corrupt += u64::from(!is_good);
        self.latency.saturating_record(now_ns.saturating_sub(header.producer_ts_ns).max(1));
    }

    /// Takes the end of the stream.
    pub fn end(&mut self, header: &Header) {
        self.seen.lost += header.sequence.saturating_sub(self.expected.unwrap_or(header.sequence));
        self.seen.ended = true;
    }

    /// Whether the end was taken.
    pub fn is_ended(&self) -> bool {
        self.seen.ended
    }

    /// Counts bytes that could not be read where they were.
    pub fn copied(&mut self, bytes: usize) {
        self.seen.copied += bytes as u64;
    }

    /// The time of the clock that frames are stamped with.
    #[inline]
    pub fn now_ns() -> u64 {
        clock::now_ns()
    }

    /// What was seen.
    pub fn finish(mut self) -> Seen {
        self.seen.duration = Duration::from_nanos(self.last_ns.saturating_sub(self.first_ns));
        self.seen.cpu =
            clock::thread_cpu().zip(self.cpu_before).map(|(after, before)| after.saturating_sub(before));
        self.seen.latency = Latency::of(&self.latency);
        self.seen
    }
}

/// The samples as they lie; none where they are not aligned, which no frame here is.
fn samples(payload: &[u8]) -> &[i16] {
    bytemuck::try_cast_slice(payload).unwrap_or_default()
}

/// A header and its payload out of bytes that begin with a frame; `None` where it is cut or none.
pub(super) fn parse(bytes: &[u8]) -> Option<(Header, &[u8])> {
    let header = Header::parse(bytes).ok()?;
    let payload = bytes.get(HEADER_BYTES..header.frame_bytes())?;
    Some((header, payload))
}

const STEP_BYTES: usize = 8 << 10;
