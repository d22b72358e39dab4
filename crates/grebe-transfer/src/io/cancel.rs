//! Stopping a transfer from elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stops a transfer from another thread: all clones share one flag.
///
/// ```
/// let cancel = grebe_transfer::Cancel::default();
/// let elsewhere = cancel.clone();
/// elsewhere.cancel();
/// assert!(cancel.is_cancelled());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Stops it: the peer is told, and what has come is kept.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was stopped.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
