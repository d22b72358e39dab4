//! Samples read from a recording.

/// A stretch of all channels in memory, channel-major.
#[derive(Debug)]
pub(super) struct Window {
    /// Samples as a stream has them; each channel begins at a word, so that every format is aligned.
    pub(super) words: Vec<u64>,
    pub(super) stride_bytes: usize,
    /// Samples per channel that there is room for.
    pub(super) capacity: usize,
    pub(super) start: u64,
    pub(super) length: usize,
}

impl Window {
    pub(super) fn new(sample_bytes: usize, channels: usize, len_samples: u64) -> Self {
        let capacity = (WINDOW_BYTES / (sample_bytes * channels)) as u64;
        let mut window = Self { words: Vec::new(), stride_bytes: 0, capacity: 0, start: 0, length: 0 };
        window.make_room(sample_bytes, channels, capacity.min(len_samples) as usize);
        window
    }

    #[inline]
    pub(super) fn holds(&self, position: u64, length: usize) -> bool {
        position >= self.start
            && position - self.start <= self.length as u64
            && length as u64 <= self.length as u64 - (position - self.start)
    }

    pub(super) fn make_room(&mut self, sample_bytes: usize, channels: usize, length: usize) {
        if length > self.capacity {
            let words = (length * sample_bytes).div_ceil(size_of::<u64>());
            (self.capacity, self.stride_bytes) = (length, words * size_of::<u64>());
            self.words.resize(words * channels, 0);
        }
    }
}

/// Large enough for a disk, small enough for a second-level cache.
const WINDOW_BYTES: usize = 1 << 20;
