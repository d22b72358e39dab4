//! Holds early frames for a moment, because the network may only have reordered them.
//!
//! ```text
//!   arrived    5 | 7 | 8 | 6 | 9        7 and 8 wait until 6 arrives; output 5, 6, 7, 8, 9
//!   arrived    5 | 7 | 8 | 9 | ...      time or places used up: a gap, then 7, 8, 9, up to the next gap
//! ```
//!
//! Within one slab nothing is copied: its table lists frames in sequence order. Frames still early at the end
//! of the slab are copied, so that the slab can move on. An ordered stream never comes here.

use std::time::{Duration, Instant};

use grebe_frame::{BatchMut, Header};

/// Early frames of one stream, in sequence order.
#[derive(Debug)]
pub struct Reorder {
    ahead: Vec<Ahead>,
    /// Chunk with their bytes, unless they are in the present slab.
    held: Option<BatchMut>,
    held_bytes: usize,
    since: Option<Instant>,
    latency: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Ahead {
    header: Header,
    /// Offset in the held chunk, or in the slab.
    offset: usize,
}

impl Reorder {
    /// Holds frames for the latency budget. On a slow stream, holds them for at least four frame intervals,
    /// at most 50 ms.
    pub fn new(latency: Duration) -> Self {
        Self {
            ahead: Vec::with_capacity(AHEAD_MAX as usize + 1),
            held: None,
            held_bytes: 0,
            since: None,
            latency,
        }
    }

    /// Whether no frame is early.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ahead.is_empty()
    }

    /// Whether the frames have their own chunk, and so leave as a separate batch.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Number of early frames.
    pub fn len(&self) -> usize {
        self.ahead.len()
    }

    /// Whether the frame with this number is among them.
    pub fn has(&self, sequence: u64) -> bool {
        self.ahead.iter().any(|ahead| ahead.header.sequence == sequence)
    }

    /// Adds a frame at `offset` of the slab. Returns whether the maximum is now exceeded.
    pub fn add(&mut self, header: &Header, offset: usize) -> bool {
        let at = self.ahead.partition_point(|ahead| ahead.header.sequence < header.sequence);
        self.ahead.insert(at, Ahead { header: *header, offset });
        self.ahead.len() as u64 > AHEAD_MAX
    }

    /// First frame, and its offset in the slab or the held chunk.
    pub fn first(&self) -> Option<(Header, usize)> {
        self.ahead.first().map(|ahead| (ahead.header, ahead.offset))
    }

    /// Removes the first frame, and restarts the wait for the next missing one.
    pub fn remove_first(&mut self) {
        self.ahead.remove(0);
        self.since = None;
    }

    /// Removes a duplicate frame.
    pub fn remove(&mut self, sequence: u64) {
        self.ahead.retain(|ahead| ahead.header.sequence != sequence);
    }

    /// Copies an early frame to the held chunk, which `chunk` provides if necessary. Returns whether it is
    /// there now.
    pub fn hold(&mut self, header: &Header, bytes: &[u8], chunk: impl FnOnce() -> Option<BatchMut>) -> bool {
        if self.held.is_none() {
            self.held = chunk();
            self.held_bytes = 0;
        }
        let offset = self.held_bytes;
        let end = offset + bytes.len();
        let Some(place) = self.held.as_mut().and_then(|held| held.chunk().get_mut(offset..end)) else {
            return false;
        };
        place.copy_from_slice(bytes);
        self.held_bytes = end.next_multiple_of(64);
        if let Some(ahead) = self.ahead.iter_mut().find(|ahead| ahead.header.sequence == header.sequence) {
            ahead.offset = offset;
        }
        true
    }

    /// Copies the early frames out of a slab that is about to move on. Returns whether they are held now.
    pub fn leave_slab(&mut self, slab: &mut BatchMut, mut chunk: impl FnMut() -> Option<BatchMut>) -> bool {
        for at in 0..self.ahead.len() {
            let Ahead { header, offset } = self.ahead[at];
            let frame = offset..offset + header.frame_bytes();
            if !self.hold(&header, &slab.chunk()[frame], &mut chunk) {
                return false;
            }
        }
        true
    }

    /// Takes the held chunk, without frames yet.
    pub fn take_held(&mut self) -> Option<BatchMut> {
        let mut held = self.held.take()?;
        held.clear();
        Some(held)
    }

    /// Remaining wait for the missing frame; `None` without early frames.
    pub fn left(&mut self) -> Option<Duration> {
        let newest = self.ahead.last()?;
        let since = *self.since.get_or_insert_with(Instant::now);
        let Header { block_length_samples, sample_rate_hz, .. } = newest.header;
        let block_s = f64::from(block_length_samples) / sample_rate_hz.max(1.0);
        let few_frames = Duration::from_secs_f64((SLOW_FRAMES * block_s).clamp(0.0, SLOW_MAX.as_secs_f64()));
        Some(self.latency.max(few_frames).saturating_sub(since.elapsed()))
    }
}

/// Maximum distance of an early frame, and maximum number of frames after a missing one.
pub const AHEAD_MAX: u64 = 32;
/// Minimum number of frame intervals to wait on a slow stream, whose budget may be shorter than one frame.
const SLOW_FRAMES: f64 = 4.0;
const SLOW_MAX: Duration = Duration::from_millis(50);
