//! Pieces of batches: each becomes a block, with the gap before it.
//!
//! ```text
//!   batch --> frames --tracker--> pieces: a large frame alone (lent), small ones together (copied)
//! ```

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use grebe_frame::{Arrival, Batch, Description, Header, StreamTracker, TrackerCounts};
use pyo3::prelude::*;

use crate::memory::Held;

/// Samples per channel that are missing before a piece, by where they were lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    /// The producer never made them.
    pub(crate) source: u64,
    /// In transit: in a network, in a kernel, or dropped by the producer of shared memory for this reader.
    pub(crate) transit: u64,
    /// Here: this reader was too slow for the policy of its queue.
    pub(crate) reader: u64,
}

impl Missing {
    pub(crate) fn samples(&self) -> u64 {
        self.source + self.transit + self.reader
    }
}

/// Successive frames of one batch that become one block.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) held: Arc<Held>,
    /// By their numbers in the batch.
    pub(crate) frames: Range<usize>,
    /// Of the first.
    pub(crate) header: Header,
    /// Samples per channel, over all frames.
    pub(crate) samples: usize,
    pub(crate) missing: Missing,
    /// Whether another stream than before begins here.
    pub(crate) is_restart: bool,
    pub(crate) described: Option<Arc<Description>>,
    /// Where the samples lie in the chunk, if NumPy can read them there.
    pub(crate) lies: Option<Range<usize>>,
}

/// Cuts the batches of one stream into pieces.
pub(crate) struct Splitter {
    tracker: StreamTracker,
    pending: VecDeque<Piece>,
    described: Option<Arc<Description>>,
    /// Samples that the queue dropped, and that no gap has told of yet.
    told_dropped: u64,
    leases: Arc<AtomicUsize>,
    pub(crate) missing: Missing,
}

impl Splitter {
    /// Batches that Python keeps are counted in `leases`.
    pub(crate) fn new(leases: Arc<AtomicUsize>) -> Self {
        Self {
            tracker: StreamTracker::new(),
            pending: VecDeque::new(),
            described: None,
            told_dropped: 0,
            leases,
            missing: Missing::default(),
        }
    }

    /// The next piece.
    pub(crate) fn pop(&mut self) -> Option<Piece> {
        self.pending.pop_front()
    }

    /// Puts back the piece that was taken last.
    pub(crate) fn put_back(&mut self, piece: Piece) {
        self.pending.push_front(piece);
    }

    /// The present pieces.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Piece> {
        self.pending.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.pending.clear();
    }

    pub(crate) fn counts(&self) -> TrackerCounts {
        self.tracker.counts()
    }

    /// Cuts a batch into pieces. `dropped`: samples that the queue before it has dropped since it began.
    pub(crate) fn split(&mut self, batch: Batch, dropped: u64) {
        let held = Held::new(batch, &self.leases);
        let Ok(batch) = held.batch() else { return };
        for (number, frame) in batch.frames().enumerate() {
            let header = frame.header();
            let arrival = self.tracker.arrive(&header);
            if !arrival.is_new() {
                continue;
            }
            let missing = match arrival {
                Arrival::After(gap) => self.whose(gap.samples, gap.generator_samples, dropped),
                _ => Missing::default(),
            };
            if header.is_end_of_stream() {
                continue;
            }
            let payload = frame.payload();
            let is_small = payload.len() < LENT_BYTES_MIN;
            let begin = payload.as_ptr() as usize - batch.chunk().as_ptr() as usize;
            if is_small
                && arrival == Arrival::InOrder
                && let Some(before) = self.pending.back_mut()
                && before.joins(number, &header)
            {
                before.samples += header.block_length_samples as usize;
                before.frames.end += 1;
                before.lies = None;
                continue;
            }
            if let Some(description) = batch.description()
                && description.first_sample_index <= header.first_sample_index
            {
                self.described = Some(description.clone());
            }
            if arrival == Arrival::Restart && batch.description().is_none() {
                self.described = None;
            }
            let is_aligned = (payload.as_ptr() as usize).is_multiple_of(header.format.component().bytes());
            self.pending.push_back(Piece {
                held: held.clone(),
                frames: number..number + 1,
                samples: header.block_length_samples as usize,
                missing,
                is_restart: arrival == Arrival::Restart,
                described: self.described.clone(),
                lies: is_aligned.then_some(begin..begin + payload.len()),
                header,
            });
        }
    }

    /// The cause of a gap's loss.
    fn whose(&mut self, samples: u64, source: u64, dropped: u64) -> Missing {
        let source = source.min(samples);
        // Drops of the queue are part of gaps in its output, which may arrive later.
        let reader = dropped.saturating_sub(self.told_dropped).min(samples - source);
        self.told_dropped += reader;
        let missing = Missing { source, reader, transit: samples - source - reader };
        self.missing.source += missing.source;
        self.missing.transit += missing.transit;
        self.missing.reader += missing.reader;
        missing
    }
}

impl Piece {
    /// Whether the next frame of the same batch goes on with it, and both are small.
    fn joins(&self, number: usize, next: &Header) -> bool {
        let payload_bytes = self.header.payload_bytes();
        self.frames.end == number
            && payload_bytes < LENT_BYTES_MIN
            && self.header.sample_rate_hz == next.sample_rate_hz
    }

    /// Copies the samples of one channel, from `skip` on.
    pub(crate) fn copy_channel(&self, channel: usize, skip: usize, mut to: &mut [u8]) -> PyResult<()> {
        let mut skip_bytes = skip * self.header.format.bytes();
        let frames = self.held.batch()?.frames().skip(self.frames.start).take(self.frames.len());
        for frame in frames {
            // Every frame of a piece has the same channels.
            let all = frame.channel_bytes(channel).unwrap_or_default();
            let from = &all[skip_bytes.min(all.len())..];
            skip_bytes = skip_bytes.saturating_sub(all.len());
            let bytes = from.len().min(to.len());
            let (now, later) = to.split_at_mut(bytes);
            now.copy_from_slice(&from[..bytes]);
            to = later;
        }
        Ok(())
    }
}

/// A frame with a smaller payload costs less to copy than to hand over: some 1 us either way.
const LENT_BYTES_MIN: usize = 16 << 10;
