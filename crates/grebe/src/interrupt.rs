//! Ctrl-C, SIGTERM and SIGHUP, as something to wait for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// From here on the signals no longer kill the process: whoever runs a graph looks at [`is_pending`].
pub fn catch() {
    // Fails only where a handler is installed already, by an earlier call.
    let _ = ctrlc::set_handler(|| {
        if is_pending() {
            // The second one means it.
            std::process::exit(130);
        }
        raise();
    });
}

/// Ends the command as Ctrl-C does.
pub fn raise() {
    PENDING.store(true, Ordering::SeqCst);
    for then in THEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).iter() {
        then();
    }
}

/// Has `action` done when the user wants to end, for what does not look by itself.
pub fn then(action: impl Fn() + Send + 'static) {
    THEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(Box::new(action));
}

/// Whether the user wants to end.
pub fn is_pending() -> bool {
    PENDING.load(Ordering::SeqCst)
}

static PENDING: AtomicBool = AtomicBool::new(false);
static THEN: Mutex<Vec<Box<dyn Fn() + Send>>> = Mutex::new(Vec::new());
