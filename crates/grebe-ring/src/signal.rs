//! Wake-up for one waiting thread or task, and a cancellation flag.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering, fence};

/// Wakes the single thread or task that waits on it. Costs a fence while nobody sleeps.
///
/// A stage's thread owns one `Signal` and gives it to all sources of work: its queues, its pool, and the code
/// that may stop it. Each of them calls [`notify`](Signal::notify) *after* publishing. The thread calls
/// [`wait`](Signal::wait) with its condition. A future calls [`poll`](Signal::poll) instead. Thread and task
/// must not wait on one signal at the same time.
///
/// Fences on both sides (store flag, fence, check condition / publish, fence, check flag) ensure that no
/// wake-up is lost.
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
    /// The sleeping task; `None` for a thread.
    task: Mutex<Option<Waker>>,
    wake: Condvar,
}

impl Signal {
    /// Makes a signal without a waiter.
    pub fn new() -> Self {
        Self { sleeping: AtomicBool::new(false), task: Mutex::new(None), wake: Condvar::new() }
    }

    /// Wakes the waiter if it sleeps. Call it after the change that it waits for is visible.
    #[inline]
    pub fn notify(&self) {
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::Relaxed) {
            self.wake_sleeper();
        }
    }

    /// Waits until `ready` returns true or `timeout` has passed. Returns the last result of `ready`.
    ///
    /// Spins for about a microsecond, yields to other threads of this core for a few more, then sleeps. Calls
    /// `ready` after each wake-up, so an irrelevant notification costs one call.
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

    /// Polls for a future: ready if `ready` returns true; otherwise the next notification wakes the task of
    /// `cx` to poll again. Does not spin. A task that stops waiting may get one spurious wake-up.
    ///
    /// ```
    /// use std::future::poll_fn;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// async fn wait_for(signal: &grebe_ring::Signal, count: &AtomicU32, least: u32) {
    ///     poll_fn(|cx| signal.poll(cx, || count.load(Ordering::Acquire) >= least)).await
    /// }
    /// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
    /// # let (signal, count) = (grebe_ring::Signal::new(), AtomicU32::new(0));
    /// # let (mut waits, mut cx) = (pin!(wait_for(&signal, &count, 1)), Context::from_waker(Waker::noop()));
    /// # assert_eq!(waits.as_mut().poll(&mut cx), Poll::Pending);
    /// # count.store(1, Ordering::Release);
    /// # assert_eq!(waits.as_mut().poll(&mut cx), Poll::Ready(()));
    /// ```
    #[inline]
    pub fn poll(&self, cx: &mut Context<'_>, ready: impl Fn() -> bool) -> Poll<()> {
        if ready() { Poll::Ready(()) } else { self.register(cx.waker(), ready) }
    }

    #[cold]
    fn wake_sleeper(&self) {
        // Under the lock; otherwise the notification could fall between the sleeper's last check and its
        // sleep.
        let mut guard = self.guard();
        self.sleeping.store(false, Ordering::Relaxed);
        let task = guard.take();
        drop(guard);
        match task {
            Some(task) => task.wake(),
            None => self.wake.notify_one(),
        }
    }

    #[cold]
    fn register(&self, task: &Waker, ready: impl Fn() -> bool) -> Poll<()> {
        let mut guard = self.guard();
        // The task may have moved to another executor.
        match guard.as_mut() {
            Some(known) => known.clone_from(task),
            None => *guard = Some(task.clone()),
        }
        self.sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !ready() {
            return Poll::Pending;
        }
        self.sleeping.store(false, Ordering::Relaxed);
        *guard = None;
        Poll::Ready(())
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

    fn guard(&self) -> Guard<'_> {
        // Each change is one assignment, so a panic elsewhere cannot have left it inconsistent.
        self.task.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    #[cfg(not(loom))]
    fn park<'a>(&self, guard: Guard<'a>, left: Duration) -> Guard<'a> {
        match self.wake.wait_timeout(guard, left) {
            Ok((guard, _)) => guard,
            Err(poisoned) => poisoned.into_inner().0,
        }
    }

    /// Loom has no time: a lost wake-up shows as a deadlock, which the model looks for.
    #[cfg(loom)]
    fn park<'a>(&self, guard: Guard<'a>, _left: Duration) -> Guard<'a> {
        self.wake.wait(guard).unwrap()
    }
}

type Guard<'a> = MutexGuard<'a, Option<Waker>>;

impl Default for Signal {
    fn default() -> Self {
        Self::new()
    }
}

/// Deadline that a huge timeout cannot overflow.
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

/// About a microsecond: less than a wake-up, so that the next batch of a fast stream finds this thread awake.
#[cfg(not(loom))]
const SPINS: u32 = 64;
#[cfg(loom)]
const SPINS: u32 = 0;
/// Some 3 us: the cost of a sleep and a wake-up for both sides. On a shared core the other thread runs
/// meanwhile.
#[cfg(not(loom))]
const YIELDS: u32 = 8;
#[cfg(loom)]
const YIELDS: u32 = 0;

/// Cancellation flag, usable from any thread. All clones share it.
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
    /// Requests cancellation.
    pub fn cancel(&self) {
        self.0.store(true, std::sync::atomic::Ordering::Release);
    }

    /// Whether no clone exists, so that nobody could see a cancellation.
    pub fn is_sole(&self) -> bool {
        std::sync::Arc::strong_count(&self.0) == 1
    }

    /// Whether cancellation was requested.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Acquire)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, AtomicU64};
    use std::task::Wake;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_condition_that_never_holds_times_out_and_not_before() {
        let (asked, timeout) = (Instant::now(), Duration::from_millis(20));
        assert!(!Signal::new().wait(timeout, || false));
        assert!(asked.elapsed() >= timeout);
    }

    #[test]
    fn an_endless_timeout_does_not_overflow() {
        assert!(Signal::new().wait(Duration::MAX, || true));
        assert_eq!(Deadline::after(Duration::MAX).left(), Some(Duration::from_secs(3600)));
    }

    #[test]
    fn a_cancellation_reaches_all_clones() {
        let (cancel, other) = (Cancel::default(), Cancel::default());
        let clone = cancel.clone();
        assert!(!clone.is_cancelled() && !cancel.is_sole() && other.is_sole());
        cancel.cancel();
        assert!(clone.is_cancelled() && cancel.is_cancelled() && !other.is_cancelled());
    }

    /// Counts its wake-ups.
    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    impl Woken {
        fn times(&self) -> u32 {
            self.0.load(std::sync::atomic::Ordering::Relaxed)
        }
    }

    #[test]
    fn a_task_is_woken_once_for_each_time_it_waited() {
        let (signal, woken) = (Signal::new(), Arc::new(Woken::default()));
        let waker = Waker::from(woken.clone());
        let mut cx = Context::from_waker(&waker);
        signal.notify();
        assert_eq!((signal.poll(&mut cx, || true), woken.times()), (Poll::Ready(()), 0));
        signal.notify();
        assert_eq!((signal.poll(&mut cx, || false), woken.times()), (Poll::Pending, 0));
        signal.notify();
        signal.notify();
        assert_eq!(woken.times(), 1, "it has not asked again");
        assert_eq!(signal.poll(&mut cx, || false), Poll::Pending);
        assert_eq!(signal.poll(&mut cx, || false), Poll::Pending);
        signal.notify();
        assert_eq!(woken.times(), 2);
    }

    #[test]
    fn the_last_waiting_task_is_woken() {
        let signal = Signal::new();
        let (first, second) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
        for woken in [&first, &second] {
            let waker = Waker::from(woken.clone());
            assert_eq!(signal.poll(&mut Context::from_waker(&waker), || false), Poll::Pending);
        }
        signal.notify();
        assert_eq!((first.times(), second.times()), (0, 1));
    }

    #[test]
    fn a_condition_that_becomes_true_while_a_task_falls_asleep_leaves_no_waiter() {
        let (signal, woken) = (Signal::new(), Arc::new(Woken::default()));
        let (waker, asked) = (Waker::from(woken.clone()), AtomicU64::new(0));
        let second_time = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 1;
        assert_eq!(signal.poll(&mut Context::from_waker(&waker), second_time), Poll::Ready(()));
        signal.notify();
        assert_eq!((woken.times(), Arc::strong_count(&woken)), (0, 2), "the signal has forgotten the task");
        // A thread may wait on it now.
        assert!(!signal.wait(Duration::from_millis(1), || false));
    }
}
