use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stops a session from elsewhere: all clones are one flag.
///
/// ```
/// let cancel = grebe_packet::Cancel::default();
/// let elsewhere = cancel.clone();
/// elsewhere.cancel();
/// assert!(cancel.is_cancelled());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks the session to end. It tells its peer, and then returns.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was asked to end.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
