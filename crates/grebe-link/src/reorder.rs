//! Frames that came before their turn: held for a moment, because the network may only have swapped them with those that miss.
//!
//! ```text
//!   arrived    5 | 7 | 8 | 6 | 9        7 and 8 are ahead until 6 is there; 5, 6, 7, 8, 9 go on
//!   arrived    5 | 7 | 8 | 9 | ...      the time or the places are used up: a gap, and 7, 8, 9 go on, up to the next gap
//! ```
//!
//! Within one slab nothing is copied: frames are entered into its table in the order of their sequence. What is still ahead
//! when the slab ends is copied, so that the slab can go on. A stream in order never comes here.

use std::time::{Duration, Instant};

use grebe_frame::{BatchMut, Header};

/// The frames of one stream that are ahead, in the order of their sequence.
#[derive(Debug)]
pub struct Reorder {
    ahead: Vec<Ahead>,
    /// Where their bytes are, unless they stand in the slab that is being read.
    held: Option<BatchMut>,
    held_bytes: usize,
    since: Option<Instant>,
    latency: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Ahead {
    header: Header,
    /// In the held chunk, or in the slab.
    offset: usize,
}

impl Reorder {
    /// Holds frames for the latency budget, and for as long as [`AHEAD_MAX`] frames of a slow stream may take to be swapped.
    pub fn new(latency: Duration) -> Self {
        Self {
            ahead: Vec::with_capacity(AHEAD_MAX as usize + 1),
            held: None,
            held_bytes: 0,
            since: None,
            latency,
        }
    }

    /// Whether no frame is ahead.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ahead.is_empty()
    }

    /// Whether the frames lie in a chunk of their own, so that they go on as a batch of their own.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Frames that are ahead.
    pub fn len(&self) -> usize {
        self.ahead.len()
    }

    /// Whether the frame with this number is ahead.
    pub fn has(&self, sequence: u64) -> bool {
        self.ahead.iter().any(|ahead| ahead.header.sequence == sequence)
    }

    /// Adds a frame that stands at `offset` of the slab; whether there are more now than are waited for.
    pub fn add(&mut self, header: &Header, offset: usize) -> bool {
        let at = self.ahead.partition_point(|ahead| ahead.header.sequence < header.sequence);
        self.ahead.insert(at, Ahead { header: *header, offset });
        self.ahead.len() as u64 > AHEAD_MAX
    }

    /// The next frame, and where it stands in the slab or in the held chunk.
    pub fn first(&self) -> Option<(Header, usize)> {
        self.ahead.first().map(|ahead| (ahead.header, ahead.offset))
    }

    /// The time for what the rest waits for begins anew.
    pub fn remove_first(&mut self) {
        self.ahead.remove(0);
        self.since = None;
    }

    /// Forgets a frame, which came twice.
    pub fn remove(&mut self, sequence: u64) {
        self.ahead.retain(|ahead| ahead.header.sequence != sequence);
    }

    /// Copies a frame that is ahead to the held chunk, which `chunk` gives where there is none; whether it is there now.
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

    /// Moves the frames that are ahead out of a slab that is about to go on; whether they are held now.
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

    /// The held chunk, without frames yet.
    pub fn take_held(&mut self) -> Option<BatchMut> {
        let mut held = self.held.take()?;
        held.clear();
        Some(held)
    }

    /// How long the frames that are ahead are still waited for; `None` where there are none.
    pub fn left(&mut self) -> Option<Duration> {
        let newest = self.ahead.last()?;
        let since = *self.since.get_or_insert_with(Instant::now);
        let Header { block_length_samples, sample_rate_hz, .. } = newest.header;
        let block_s = f64::from(block_length_samples) / sample_rate_hz.max(1.0);
        let few_frames = Duration::from_secs_f64((SLOW_FRAMES * block_s).clamp(0.0, SLOW_MAX.as_secs_f64()));
        Some(self.latency.max(few_frames).saturating_sub(since.elapsed()))
    }
}

/// A frame this far before its turn is waited for no more, nor is one that misses when so many came after it.
pub const AHEAD_MAX: u64 = 32;
/// Of a slow stream the budget may hold no frame at all: so many are waited for.
const SLOW_FRAMES: f64 = 4.0;
const SLOW_MAX: Duration = Duration::from_millis(50);
