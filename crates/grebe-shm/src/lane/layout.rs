//! Layout of a lane's words, and violations of it.

/// Number of slots in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(super) queue: u64,
    pub(super) returns: u64,
}

impl Shape {
    /// Room for `queue` waiting descriptors and `quota` lent chunks, each rounded up to a power of two, at
    /// least 2.
    pub(crate) fn new(queue: u32, quota: u32) -> Self {
        let round = |count: u32| u64::from(count.clamp(2, 1 << 30).next_power_of_two());
        Self { queue: round(queue), returns: round(quota) }
    }

    /// Capacity for descriptors.
    pub(crate) fn queue(&self) -> u32 {
        self.queue as u32
    }

    /// Total number of words.
    pub(crate) fn words(&self) -> usize {
        SLOTS + 2 * self.queue as usize + self.returns as usize
    }

    pub(super) fn slot(&self, position: u64) -> usize {
        SLOTS + 2 * (position & (self.queue - 1)) as usize
    }

    pub(super) fn ret(&self, position: u64) -> usize {
        SLOTS + 2 * self.queue as usize + (position & (self.returns - 1)) as usize
    }
}

/// Positions of a lent chunk's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Descriptor {
    pub chunk: u32,
    /// Number of frames.
    pub frames: u32,
    /// Offset of the first frame.
    pub first: u32,
    /// Distance between frames; 0: the chunk's table has their offsets.
    pub stride: u32,
}

impl Descriptor {
    pub(super) fn words(self) -> [u64; 2] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        [pair(self.chunk, self.frames), pair(self.first, self.stride)]
    }

    pub(super) fn of([one, two]: [u64; 2]) -> Self {
        Self { chunk: one as u32, frames: (one >> 32) as u32, first: two as u32, stride: (two >> 32) as u32 }
    }
}

/// Word that no honest other side can have written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    /// The head moved back, or past the queued descriptors.
    #[error("its head {head} is outside the queue")]
    Head { head: u64 },
    /// The tail moved back, or further than the number of slots.
    #[error("its tail {tail} is beyond the queue's capacity")]
    Tail { tail: u64 },
    /// A word of the returns is neither new nor old.
    #[error("a returned word is {word:#x}, neither new nor old")]
    Return { word: u64 },
    /// A chunk was returned that was not lent.
    #[error("it returned chunk {chunk}, which it was not lent")]
    NotLent { chunk: u32 },
    /// A chunk was returned that is still queued.
    #[error("it returned chunk {chunk}, which it has not taken")]
    NotTaken { chunk: u32 },
    /// More wake-ups than requested.
    #[error("it sent a wake-up without a reason")]
    WakeUp,
}

// Words of different writers are 128 bytes apart, because adjacent lines are fetched in pairs.
pub(super) const TAIL: usize = 0;
pub(super) const STATE: usize = 1;
pub(super) const DROPPED: usize = 2;
pub(super) const END_HEADER: usize = 3;
pub(super) const HEAD: usize = 16;
pub(super) const CONSUMER_SLEEPS: usize = 32;
pub(super) const WAKE_AT_HEAD: usize = 48;
pub(super) const WAKE_AT_RETURN: usize = 49;
const SLOTS: usize = 64;

pub(super) const ENDED: u64 = 1;
pub(super) const ENDED_WITH_HEADER: u64 = 2;
pub(super) const CUT_OFF: u64 = 3;
pub(super) const NEVER: u64 = u64::MAX;
