//! Lends blocks on their way to the disk to another reader, while they are in the cache.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use grebe_ring::Lease;

/// Second receiver of a file's blocks. If too many wait there, it gets no more, unless the disk may wait.
#[derive(Debug)]
pub(crate) struct Tap {
    file: usize,
    blocks: Sender<Tapped>,
    lag: Arc<Lag>,
}

/// Data appended to a file.
#[derive(Debug)]
pub(crate) struct Tapped {
    /// Index of the file.
    pub(crate) file: usize,
    lease: Lease<()>,
    new: Range<usize>,
    lag: Arc<Lag>,
}

/// Lag of the receiver.
#[derive(Debug)]
pub(crate) struct Lag {
    blocks: AtomicUsize,
    blocks_max: usize,
    may_wait: bool,
    is_lost: AtomicBool,
}

/// One tap per file, and the receiver of all their blocks; at most `blocks_max` wait there. `may_wait`: files
/// wait, instead of skipping a block.
pub(super) fn taps(
    files: usize,
    blocks_max: usize,
    may_wait: bool,
) -> (Vec<Tap>, Receiver<Tapped>, Arc<Lag>) {
    let (blocks, is_lost) = (AtomicUsize::new(0), AtomicBool::new(false));
    let lag = Arc::new(Lag { blocks, blocks_max, may_wait, is_lost });
    let (blocks, inbox) = channel();
    let tap = |file| Tap { file, blocks: blocks.clone(), lag: lag.clone() };
    ((0..files).map(tap).collect(), inbox, lag)
}

impl Tap {
    pub(super) fn take(&self, lease: &Lease<()>, new: Range<usize>) {
        // The blocks of all files come in turn, so that what waits can always be taken.
        while self.lag.may_wait && self.lag.is_full() && !self.lag.is_lost() {
            thread::sleep(LOOK_EVERY);
        }
        if self.lag.is_lost() {
            return;
        }
        if self.lag.blocks.fetch_add(1, Ordering::Relaxed) >= self.lag.blocks_max {
            self.lag.lose();
        }
        // A receiver that is gone takes nothing.
        let tapped = Tapped { file: self.file, lease: lease.clone(), new, lag: self.lag.clone() };
        let _ = self.blocks.send(tapped);
    }
}

impl Tapped {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.lease.bytes()[self.new.clone()]
    }
}

impl Drop for Tapped {
    fn drop(&mut self) {
        self.lag.blocks.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Lag {
    fn is_full(&self) -> bool {
        self.blocks.load(Ordering::Relaxed) >= self.blocks_max
    }

    /// Whether blocks are missing.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// Nothing more is wanted.
    pub(crate) fn lose(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
    }
}

/// A block takes longer than that.
const LOOK_EVERY: Duration = Duration::from_micros(500);
