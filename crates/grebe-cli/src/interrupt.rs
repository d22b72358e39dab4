//! Ctrl-C, SIGTERM and SIGHUP, as something to wait for.

#[cfg(unix)]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use grebe_ring::Cancel;

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
    INTERRUPT.raise();
}

/// Calls `action` when the user wants to end, at once where that is so already: for what does not ask by itself. Until what this returns is
/// dropped.
pub(crate) fn then(action: impl Fn() + Send + 'static) -> Then {
    INTERRUPT.then(Action::Call(Box::new(action)))
}

/// A flag that is set when the user wants to end, for what can be cancelled.
pub(crate) fn cancel() -> Cancel {
    let cancel = Cancel::default();
    catch();
    INTERRUPT.then(Action::Cancel(cancel.clone())).for_good();
    cancel
}

/// Ends the process two seconds after an interruption, unless what this returns has been dropped by then: a read from a
/// terminal that is gone may never end, and has nothing to save.
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

/// Whether the user wants to end.
pub(crate) fn is_pending() -> bool {
    INTERRUPT.is_pending()
}

/// A wish to end, and whom it is told.
struct Interrupt {
    is_pending: AtomicBool,
    told: Mutex<Vec<(u64, Action)>>,
    next: AtomicU64,
}

/// What follows a wish to end.
enum Action {
    Call(Box<dyn Fn() + Send>),
    Cancel(Cancel),
}

/// See [`then`]. Dropping it takes the action back.
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
        self.told().iter().for_each(|(_, action)| action.take());
    }

    fn then(&'static self, action: Action) -> Then {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut told = self.told();
        // With the lock held: who raises it either is seen here, or finds the action.
        if self.is_pending() {
            drop(told);
            action.take();
        } else {
            told.retain(|(_, action)| !action.is_idle());
            told.push((number, action));
        }
        Then { of: self, number }
    }

    fn told(&self) -> MutexGuard<'_, Vec<(u64, Action)>> {
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

    /// Whether nobody is left whom it would reach.
    fn is_idle(&self) -> bool {
        matches!(self, Self::Cancel(cancel) if cancel.is_sole())
    }
}

impl Then {
    /// Leaves the action in place as long as the process lives.
    pub(crate) fn for_good(self) {
        std::mem::forget(self);
    }
}

impl Drop for Then {
    fn drop(&mut self) {
        self.of.told().retain(|(number, _)| *number != self.number);
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
    fn whoever_asks_while_it_is_raised_is_called_once() {
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
    fn what_is_over_is_kept_no_longer() {
        static INTERRUPT: Interrupt = Interrupt::new();
        let kept = Cancel::default();
        for cancel in [kept.clone(), Cancel::default(), Cancel::default()] {
            INTERRUPT.then(Action::Cancel(cancel)).for_good();
        }
        drop(INTERRUPT.then(Action::Call(Box::new(|| panic!("it was taken back")))));
        assert_eq!(INTERRUPT.told().len(), 1);
        INTERRUPT.raise();
        assert!(kept.is_cancelled());
    }
}
