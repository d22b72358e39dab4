//! The wake-up of one waiting thread, and the wish that something ends.

use std::time::Duration;

use crate::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering, fence};

/// Wakes the one thread that waits on it, and costs a fence when nobody sleeps.
///
/// A stage's thread owns one `Signal` and hands it to everything that may give it work: the queues it reads, the
/// queues it fills, its pool, whoever may stop it. Each of them calls [`notify`](Signal::notify) *after* publishing;
/// the thread calls [`wait`](Signal::wait) with the condition it waits for.
///
/// The sleeping flag is fenced on both sides (store flag, fence, check condition / publish, fence, check flag), so that
/// a wake-up is never lost.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
/// use std::time::Duration;
///
/// let (signal, ready) = (Arc::new(grebe_ring::Signal::new()), Arc::new(AtomicBool::new(false)));
/// let (theirs, flag) = (signal.clone(), ready.clone());
/// let other = std::thread::spawn(move || {
///     flag.store(true, Ordering::Release);
///     theirs.notify();
/// });
/// assert!(signal.wait(Duration::from_secs(5), || ready.load(Ordering::Acquire)));
/// # other.join().unwrap();
/// ```
#[derive(Debug)]
pub struct Signal {
    sleeping: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
}

impl Signal {
    /// A signal nobody waits on yet.
    pub fn new() -> Self {
        Self { sleeping: AtomicBool::new(false), lock: Mutex::new(()), wake: Condvar::new() }
    }

    /// Wakes the waiting thread, if one sleeps. Call it after the change that it waits for is visible.
    #[inline]
    pub fn notify(&self) {
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::Relaxed) {
            self.wake_sleeper();
        }
    }

    /// Waits until `ready` holds or `timeout` has passed; whether `ready` holds.
    ///
    /// Spins for about a microsecond, yields to the other threads of this core for a few more, then sleeps. `ready` is asked
    /// again after each wake-up, so a notification that was meant for another condition costs one call of it.
    pub fn wait(&self, timeout: Duration, ready: impl Fn() -> bool) -> bool {
        for _ in 0..SPINS {
            if ready() {
                return true;
            }
            spin();
        }
        for _ in 0..YIELDS {
            if ready() {
                return true;
            }
            std::thread::yield_now();
        }
        self.sleep(timeout, ready)
    }

    #[cold]
    fn wake_sleeper(&self) {
        // Under the lock, or the notification could fall between the sleeper's last look and its sleep.
        let guard = self.guard();
        self.sleeping.store(false, Ordering::Relaxed);
        drop(guard);
        self.wake.notify_one();
    }

    #[cold]
    fn sleep(&self, timeout: Duration, ready: impl Fn() -> bool) -> bool {
        let deadline = Deadline::after(timeout);
        let mut guard = self.guard();
        loop {
            self.sleeping.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if ready() {
                break;
            }
            let Some(left) = deadline.left() else { break };
            guard = self.park(guard, left);
        }
        self.sleeping.store(false, Ordering::Relaxed);
        drop(guard);
        ready()
    }

    fn guard(&self) -> MutexGuard<'_, ()> {
        // The lock guards no data, so a panic elsewhere cannot have left it inconsistent.
        self.lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    #[cfg(not(loom))]
    fn park<'a>(&self, guard: MutexGuard<'a, ()>, left: Duration) -> MutexGuard<'a, ()> {
        match self.wake.wait_timeout(guard, left) {
            Ok((guard, _)) => guard,
            Err(poisoned) => poisoned.into_inner().0,
        }
    }

    /// Loom has no time: a lost wake-up shows as a deadlock, which is what the model looks for.
    #[cfg(loom)]
    fn park<'a>(&self, guard: MutexGuard<'a, ()>, _left: Duration) -> MutexGuard<'a, ()> {
        self.wake.wait(guard).unwrap()
    }
}

impl Default for Signal {
    fn default() -> Self {
        Self::new()
    }
}

/// A point in time that a huge timeout cannot overflow.
struct Deadline(Option<std::time::Instant>);

impl Deadline {
    fn after(timeout: Duration) -> Self {
        Self(std::time::Instant::now().checked_add(timeout))
    }

    fn left(&self) -> Option<Duration> {
        match self.0 {
            None => Some(Duration::from_secs(3600)),
            Some(at) => at.checked_duration_since(std::time::Instant::now()).filter(|left| !left.is_zero()),
        }
    }
}

#[cfg(not(loom))]
fn spin() {
    std::hint::spin_loop();
}

#[cfg(loom)]
fn spin() {
    loom::thread::yield_now();
}

/// About a microsecond: less than one wake-up costs, so that the next batch of a fast stream finds this thread awake.
#[cfg(not(loom))]
const SPINS: u32 = 64;
#[cfg(loom)]
const SPINS: u32 = 0;
/// Some 3 us: what a sleep and the wake-up cost the two sides. On a shared core the thread that is waited for runs meanwhile.
#[cfg(not(loom))]
const YIELDS: u32 = 8;
#[cfg(loom)]
const YIELDS: u32 = 0;

/// Asks something to end, from any thread: all clones are one flag.
///
/// ```
/// let cancel = grebe_ring::Cancel::default();
/// let elsewhere = cancel.clone();
/// elsewhere.cancel();
/// assert!(cancel.is_cancelled());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cancel(std::sync::Arc<std::sync::atomic::AtomicBool>);

impl Cancel {
    /// Asks it to end.
    pub fn cancel(&self) {
        self.0.store(true, std::sync::atomic::Ordering::Release);
    }

    /// Whether it was asked to end.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Acquire)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_never_holds_times_out() {
        assert!(!Signal::new().wait(Duration::from_millis(5), || false));
    }

    #[test]
    fn an_endless_timeout_does_not_overflow() {
        assert!(Signal::new().wait(Duration::MAX, || true));
    }
}
