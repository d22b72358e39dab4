//! Table of a chunk's frames.

use std::sync::Arc;

use crate::description::Description;
use crate::header::{HEADER_BYTES, Header};

/// Table of a chunk's frames. It belongs to the chunk, and its capacity is fixed by the pool.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) spans: Vec<Span>,
    /// End of the last frame.
    pub(crate) end: usize,
    pub(crate) samples: u64,
    /// The stream's description. It outlives the frames, so reusing the chunk for the same stream costs one comparison.
    pub(crate) description: Option<Arc<Description>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

impl Table {
    pub(crate) fn for_chunk(chunk_bytes: usize) -> Self {
        Self {
            spans: Vec::with_capacity(chunk_bytes / HEADER_BYTES + 1),
            end: 0,
            samples: 0,
            description: None,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.spans.clear();
        (self.end, self.samples) = (0, 0);
    }

    #[inline]
    pub(crate) fn describe(&mut self, description: Option<&Arc<Description>>) {
        let is_same = match (&self.description, description) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (before, now) => before.is_none() && now.is_none(),
        };
        if !is_same {
            self.description = description.cloned();
        }
    }

    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.spans.len() < self.spans.capacity()
    }

    #[inline]
    pub(crate) fn add(&mut self, offset: usize, header: &Header) {
        let bytes = header.frame_bytes();
        self.spans.push(Span { offset: offset as u32, bytes: bytes as u32 });
        self.end = self.end.max(offset + bytes);
        self.samples += u64::from(header.block_length_samples);
    }
}

impl Span {
    #[inline]
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.offset as usize..self.offset as usize + self.bytes as usize
    }
}
