//! Ctrl-C, SIGTERM and SIGHUP, as something to wait for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// From here on the signals no longer kill the process; whoever runs a graph asks [`is_pending`].
pub(crate) fn catch() {
    // Fails only where a handler is installed already, by an earlier call.
    let _ = ctrlc::set_handler(|| {
        if is_pending() {
            // The second signal ends the process at once.
            std::process::exit(130);
        }
        raise();
    });
}

/// Ends the command as Ctrl-C does.
pub(crate) fn raise() {
    PENDING.store(true, Ordering::SeqCst);
    for then in THEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).iter() {
        then();
    }
}

/// Calls `action` when the user wants to end, at once where that is so already. For what does not ask by itself.
pub(crate) fn then(action: impl Fn() + Send + 'static) {
    if is_pending() {
        action();
    }
    THEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(Box::new(action));
}

/// A flag that is set when the user wants to end, for what can be cancelled.
pub(crate) fn cancel() -> grebe_ring::Cancel {
    let cancel = grebe_ring::Cancel::default();
    let cancelled = cancel.clone();
    catch();
    then(move || cancelled.cancel());
    cancel
}

/// Ends the process two seconds after an interruption, unless what this returns has been dropped by then: a read from a
/// terminal that is gone may never end, and has nothing to save.
pub(crate) fn insist() -> Insisting {
    let is_over = Arc::new(AtomicBool::new(false));
    let seen = is_over.clone();
    then(move || {
        let seen = seen.clone();
        std::thread::spawn(move || {
            std::thread::sleep(PATIENCE);
            if !seen.load(Ordering::Acquire) {
                std::process::exit(130);
            }
        });
    });
    Insisting(is_over)
}

/// See [`insist`].
pub(crate) struct Insisting(Arc<AtomicBool>);

impl Drop for Insisting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Whether the user wants to end.
pub(crate) fn is_pending() -> bool {
    PENDING.load(Ordering::SeqCst)
}

const PATIENCE: Duration = Duration::from_secs(2);

static PENDING: AtomicBool = AtomicBool::new(false);
static THEN: Mutex<Vec<Box<dyn Fn() + Send>>> = Mutex::new(Vec::new());
