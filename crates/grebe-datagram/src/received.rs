//! Content of a receiver's slot.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

/// Content of one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Bytes in the slot.
    pub len: usize,
    /// Length of each datagram; the last one may be shorter.
    pub segment_bytes: usize,
    /// Sender.
    pub from: SocketAddr,
    /// The slot was too small, so the last datagram is truncated and the rest is lost.
    pub truncated: bool,
    /// Kernel's arrival time since 1970, if requested and available.
    pub timestamp: Option<Duration>,
}

/// Ranges of the datagrams in a slot.
#[derive(Debug, Clone)]
pub struct Segments {
    at: usize,
    len: usize,
    segment_bytes: usize,
    done: bool,
}

impl Received {
    /// Number of datagrams: at least one, possibly empty.
    #[inline]
    pub fn datagrams(&self) -> usize {
        if self.segment_bytes == 0 { 1 } else { self.len.div_ceil(self.segment_bytes).max(1) }
    }

    /// Range of each datagram in the slot.
    #[inline]
    pub fn segments(&self) -> Segments {
        Segments { at: 0, len: self.len, segment_bytes: self.segment_bytes, done: false }
    }
}

impl Iterator for Segments {
    type Item = Range<usize>;

    #[inline]
    fn next(&mut self) -> Option<Range<usize>> {
        if self.done {
            return None;
        }
        let rest = self.len - self.at;
        let step = if self.segment_bytes == 0 { rest } else { self.segment_bytes.min(rest) };
        let range = self.at..self.at + step;
        self.at = range.end;
        self.done = self.at == self.len;
        Some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(len: usize, segment_bytes: usize) -> Received {
        Received { len, segment_bytes, from: ([0; 4], 0).into(), truncated: false, timestamp: None }
    }

    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn segments_cover_the_slot() {
        for (len, segment, expected) in [
            (3_000, 1_400, vec![0..1_400, 1_400..2_800, 2_800..3_000]),
            (2_800, 1_400, vec![0..1_400, 1_400..2_800]),
            (7, 7, vec![0..7]),
            (0, 0, vec![0..0]),
        ] {
            let slot = received(len, segment);
            assert_eq!(slot.segments().collect::<Vec<_>>(), expected);
            assert_eq!(slot.datagrams(), expected.len());
        }
    }
}
