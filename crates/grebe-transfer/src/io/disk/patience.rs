//! When work on a disk gets a thread of its own.

use std::time::Duration;

/// Whether threads that wait for each other are faster than one that does everything: each end of a transfer needs one core, and
/// both ends may be on this machine.
pub(super) fn has_cores_to_spare() -> bool {
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() >= 4)
}

/// How long a disk may hold up the network before it gets a thread of its own.
pub(super) struct Patience(Duration);

impl Patience {
    pub(super) fn new() -> Self {
        // Several times: that another process had the core once says nothing about the disk.
        Self(5 * SLOW)
    }

    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self(Duration::ZERO)
    }

    /// Takes how long one group took, and returns whether the patience is over.
    pub(super) fn is_over(&mut self, took: Duration) -> bool {
        if took > SLOW {
            self.0 = self.0.saturating_sub(took);
        }
        self.0.is_zero()
    }
}

/// What the peer sends meanwhile waits in the receiver's socket.
const SLOW: Duration = Duration::from_millis(20);
