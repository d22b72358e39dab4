//! Ctrl-C, SIGTERM and SIGHUP, as something to wait for.

#[cfg(unix)]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

/// From here on the signals no longer kill the process; whoever runs a graph asks [`is_pending`].
pub(crate) fn catch() {
    static CAUGHT: Once = Once::new();
    CAUGHT.call_once(listen);
}

/// From here on a write beyond what a file may hold is an error and no longer kills the process, so that what was written is closed. It is
/// a handler that does this: what the command starts has the signal as it was, for `exec` keeps none.
pub(crate) fn survive_file_limits() {
    #[cfg(unix)]
    {
        let signal = rustix::process::Signal::XFSZ.as_raw();
        // Without it, it kills as ever.
        let _ = signal_hook::flag::register(signal, Arc::default());
    }
}

/// Ends the command with its terminal, also where it was started to outlive it: what it shows, nobody could see any more, and its
/// reads would fail for ever.
pub(crate) fn end_with_terminal() {
    catch();
    #[cfg(unix)]
    if let Some(signals) = SIGNALS.get() {
        // Without it, as above.
        let _ = signals.add_signal(signal_hook::consts::SIGHUP);
    }
}

#[cfg(unix)]
fn listen() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let mut caught = vec![SIGINT, SIGTERM];
    if !is_ignored(SIGHUP) {
        caught.push(SIGHUP);
    }
    // Where there is no descriptor to be had, the signals kill as ever.
    let Ok(mut signals) = Signals::new(caught) else { return };
    let _ = SIGNALS.set(signals.handle());
    let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            heard(signal == SIGHUP);
        }
    });
}

/// Whether whoever started this process has it ignore the signal: `nohup` does, so that it outlives its terminal.
#[cfg(target_os = "linux")]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Elsewhere only `sigaction` tells, which no safe interface calls without changing it.
#[cfg(all(unix, not(target_os = "linux")))]
fn is_ignored(_: i32) -> bool {
    false
}

#[cfg(not(unix))]
fn listen() {
    // Fails only where a handler is installed already.
    let _ = ctrlc::set_handler(|| heard(false));
}

fn heard(is_hang_up: bool) {
    if !is_pending() {
        raise();
    } else if !is_hang_up {
        // The second signal ends the process at once. A terminal that goes sends several, and nobody behind them is impatient.
        end_at_once();
    }
}

/// Calls `action` before the process ends without its stages: for what others would find, and take for a running process.
pub(crate) fn before_end_at_once(action: impl FnOnce() + Send + 'static) {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(action));
}

fn end_at_once() -> ! {
    // Held to the end: who else gets here waits until all of it is done.
    let mut actions = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    actions.drain(..).for_each(|action| action());
    std::process::exit(130);
}

/// Ends the command as Ctrl-C does.
pub(crate) fn raise() {
    PENDING.store(true, Ordering::SeqCst);
    for then in THEN.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        then();
    }
}

/// Calls `action` when the user wants to end, at once where that is so already. For what does not ask by itself.
pub(crate) fn then(action: impl Fn() + Send + 'static) {
    if is_pending() {
        action();
    }
    THEN.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(action));
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
                end_at_once();
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
static LAST: Mutex<Vec<Box<dyn FnOnce() + Send>>> = Mutex::new(Vec::new());
#[cfg(unix)]
static SIGNALS: OnceLock<signal_hook::iterator::Handle> = OnceLock::new();
