//! The end of a stream that Python takes.
//!
//! ```text
//!   queue --batch--> splitter --> pieces, one at a time
//! ```

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use grebe_flow::BatchStream;
use grebe_frame::TrackerCounts;
use pyo3::prelude::*;

use crate::fork::Own;
use crate::pieces::{Missing, Piece, Splitter};

/// The end of a stream that Python takes.
pub(crate) struct Reader {
    /// `None`: closed.
    batches: Option<Own<BatchStream>>,
    splitter: Splitter,
    /// Samples per channel that were handed on.
    pub(crate) samples: u64,
}

impl Reader {
    pub(crate) fn new(batches: BatchStream, leases: Arc<AtomicUsize>) -> Self {
        Self { batches: Some(Own::new(batches)), splitter: Splitter::new(leases), samples: 0 }
    }

    /// The next piece, if there is one.
    ///
    /// # Errors
    /// This process is a fork of the one that opened the stream.
    pub(crate) fn take(&mut self) -> PyResult<Option<Piece>> {
        loop {
            if let Some(piece) = self.splitter.pop() {
                self.samples += piece.samples as u64;
                return Ok(Some(piece));
            }
            let Some(batches) = &mut self.batches else { return Ok(None) };
            let batches = batches.get_mut()?;
            let Some(batch) = batches.try_next() else { return Ok(None) };
            let dropped = batches.dropped_samples();
            self.splitter.split(batch, dropped);
        }
    }

    /// The available pieces that `take` will return next, at least `pieces` of them if possible.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(crate) fn peek(&mut self, pieces: usize) -> PyResult<impl Iterator<Item = &Piece>> {
        if let Some(batches) = &mut self.batches {
            let batches = batches.get_mut()?;
            while self.splitter.len() < pieces
                && let Some(batch) = batches.try_next()
            {
                let dropped = batches.dropped_samples();
                self.splitter.split(batch, dropped);
            }
        }
        Ok(self.splitter.iter().take(pieces))
    }

    /// Puts back the piece that was taken last.
    pub(crate) fn put_back(&mut self, piece: Piece) {
        self.samples -= piece.samples as u64;
        self.splitter.put_back(piece);
    }

    /// Whether everything was taken, and nothing more will come.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(crate) fn is_ended(&self) -> PyResult<bool> {
        let is_ended = match &self.batches {
            Some(batches) => batches.get()?.is_ended(),
            None => true,
        };
        Ok(is_ended && self.splitter.is_empty())
    }

    /// Waits for something to take, or for the end; whether either is there.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(crate) fn wait(&self, timeout: Duration) -> PyResult<bool> {
        match &self.batches {
            Some(batches) if self.splitter.is_empty() => Ok(batches.get()?.wait(timeout)),
            _ => Ok(true),
        }
    }

    /// Gives up what was not taken.
    pub(crate) fn close(&mut self) {
        self.batches = None;
        self.splitter.clear();
    }

    /// Missing samples of the stream, by the place of their loss.
    pub(crate) fn missing(&self) -> Missing {
        self.splitter.missing
    }

    pub(crate) fn counts(&self) -> TrackerCounts {
        self.splitter.counts()
    }
}
