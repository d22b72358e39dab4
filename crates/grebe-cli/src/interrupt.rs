//! Ctrl-C, SIGTERM and SIGHUP as events.

#[cfg(unix)]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use grebe_ring::Cancel;

/// From here on, signals no longer kill the process; graphs poll [`is_pending`].
pub(crate) fn catch() {
    static CAUGHT: Once = Once::new();
    CAUGHT.call_once(listen);
}

/// From here on, a write beyond the file size limit is an error and not a signal, so that files are closed. This
/// needs a handler, because `exec` resets handlers, so child processes keep the default.
pub(crate) fn survive_file_limits() {
    #[cfg(unix)]
    {
        let signal = rustix::process::Signal::XFSZ.as_raw();
        // Without it, the signal kills the process.
        let _ = signal_hook::flag::register(signal, Arc::default());
    }
}

/// Ends the command with its terminal, even under `nohup`: its output would be invisible, and its reads would fail
/// for ever.
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
    // Without file descriptors, signals kill the process as usual.
    let Ok(mut signals) = Signals::new(caught) else { return };
    let _ = SIGNALS.set(signals.handle());
    let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            on_signal(signal == SIGHUP);
        }
    });
}

/// Whether the starter of this process ignores the signal, as `nohup` does.
#[cfg(target_os = "linux")]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Other systems need `sigaction`, which has no safe interface for queries.
#[cfg(all(unix, not(target_os = "linux")))]
fn is_ignored(_: i32) -> bool {
    false
}

#[cfg(not(unix))]
fn listen() {
    // Fails only if a handler exists.
    let _ = ctrlc::set_handler(|| on_signal(false));
}

fn on_signal(is_hang_up: bool) {
    if !is_pending() {
        raise();
    } else if !is_hang_up {
        // The second signal ends the process. A closing terminal sends several, without impatience.
        end_at_once();
    }
}

/// Registers an action for an immediate end, such as removing a published socket.
pub(crate) fn before_end_at_once(action: impl FnOnce() + Send + 'static) {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(action));
}

fn end_at_once() -> ! {
    // Held to the end, so that other threads wait for all actions.
    let mut actions = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    actions.drain(..).for_each(|action| action());
    std::process::exit(130);
}

/// Ends the command as Ctrl-C does.
pub(crate) fn raise() {
    INTERRUPT.raise();
}

/// Calls `action` on an interruption, at once if one is pending, until the returned value is dropped.
pub(crate) fn then(action: impl Fn() + Send + 'static) -> Then {
    INTERRUPT.then(Action::Call(Box::new(action)))
}

/// A flag that an interruption sets.
pub(crate) fn cancel() -> Cancel {
    let cancel = Cancel::default();
    catch();
    INTERRUPT.then(Action::Cancel(cancel.clone())).for_good();
    cancel
}

/// Ends the process two seconds after an interruption, unless the returned value is dropped before: a read from a
/// lost terminal may never end, and a compressed file takes its time to open.
pub(crate) fn insist() -> Insisting {
    let is_over = Arc::new(AtomicBool::new(false));
    let seen = is_over.clone();
    let then = then(move || {
        let seen = seen.clone();
        std::thread::spawn(move || {
            std::thread::sleep(PATIENCE);
            if !seen.load(Ordering::Acquire) {
                end_at_once();
            }
        });
    });
    Insisting(is_over, then)
}

/// See [`insist`].
pub(crate) struct Insisting(Arc<AtomicBool>, #[expect(dead_code, reason = "held as long as it counts")] Then);

impl Drop for Insisting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Whether an interruption is pending.
pub(crate) fn is_pending() -> bool {
    INTERRUPT.is_pending()
}

/// Interruption with its listeners.
struct Interrupt {
    is_pending: AtomicBool,
    told: Mutex<Vec<(u64, Action)>>,
    next: AtomicU64,
}

/// Consequence of an interruption.
enum Action {
    Call(Box<dyn Fn() + Send>),
    Cancel(Cancel),
}

/// See [`then`]. Dropping it removes the action.
#[must_use]
pub(crate) struct Then {
    of: &'static Interrupt,
    number: u64,
}

impl Interrupt {
    const fn new() -> Self {
        Self { is_pending: AtomicBool::new(false), told: Mutex::new(Vec::new()), next: AtomicU64::new(0) }
    }

    fn is_pending(&self) -> bool {
        self.is_pending.load(Ordering::SeqCst)
    }

    fn raise(&self) {
        self.is_pending.store(true, Ordering::SeqCst);
        self.listeners().iter().for_each(|(_, action)| action.take());
    }

    fn then(&'static self, action: Action) -> Then {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut told = self.listeners();
        // With the lock held, a concurrent interruption either is seen here or finds the action.
        if self.is_pending() {
            drop(told);
            action.take();
        } else {
            told.retain(|(_, action)| !action.is_idle());
            told.push((number, action));
        }
        Then { of: self, number }
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<(u64, Action)>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Action {
    fn take(&self) {
        match self {
            Self::Call(action) => action(),
            Self::Cancel(cancel) => cancel.cancel(),
        }
    }

    /// Whether no listener is left.
    fn is_idle(&self) -> bool {
        matches!(self, Self::Cancel(cancel) if cancel.is_sole())
    }
}

impl Then {
    /// Keeps the action for the lifetime of the process.
    pub(crate) fn for_good(self) {
        std::mem::forget(self);
    }
}

impl Drop for Then {
    fn drop(&mut self) {
        self.of.listeners().retain(|(number, _)| *number != self.number);
    }
}

const PATIENCE: Duration = Duration::from_secs(2);

static INTERRUPT: Interrupt = Interrupt::new();
static LAST: Mutex<Vec<Box<dyn FnOnce() + Send>>> = Mutex::new(Vec::new());
#[cfg(unix)]
static SIGNALS: OnceLock<signal_hook::iterator::Handle> = OnceLock::new();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_added_during_an_interrupt_is_called_once() {
        for _ in 0..2_000 {
            let interrupt: &'static Interrupt = Box::leak(Box::new(Interrupt::new()));
            let called = Arc::new(AtomicU64::new(0));
            let counts = Arc::clone(&called);
            std::thread::scope(|scope| {
                scope.spawn(|| interrupt.raise());
                let action = move || {
                    counts.fetch_add(1, Ordering::Relaxed);
                };
                interrupt.then(Action::Call(Box::new(action))).for_good();
            });
            assert_eq!(called.load(Ordering::Relaxed), 1);
        }
    }

    #[test]
    fn finished_interrupt_handlers_are_released() {
        static INTERRUPT: Interrupt = Interrupt::new();
        let kept = Cancel::default();
        for cancel in [kept.clone(), Cancel::default(), Cancel::default()] {
            INTERRUPT.then(Action::Cancel(cancel)).for_good();
        }
        drop(INTERRUPT.then(Action::Call(Box::new(|| panic!("it was taken back")))));
        assert_eq!(INTERRUPT.listeners().len(), 1);
        INTERRUPT.raise();
        assert!(kept.is_cancelled());
    }
}
