//! Reconnects after a loss.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use grebe_ring::Cancel;

use crate::error::Error;

/// Reopens a lost connection, in a thread because a stage must not wait that long.
///
/// Reports the loss, errors of the attempts, and the reconnection.
pub(crate) struct Reconnect<T> {
    /// Its name in messages.
    what: String,
    open: Arc<Open<T>>,
    attempt: Option<Attempt<T>>,
    lost: Instant,
    why: Option<String>,
    opened: Instant,
    /// Time of the last report of a loss, and whether the present one was reported.
    last_report: Option<Instant>,
    is_reported: bool,
}

type Open<T> = dyn Fn(&Cancel, &dyn Fn(String)) -> Result<T, Error> + Send + Sync;

struct Attempt<T> {
    events: Receiver<Event<T>>,
    cancel: Cancel,
}

/// Results of the thread.
enum Event<T> {
    Notice(String),
    Opened(Result<T, Error>),
}

impl<T: Send + 'static> Reconnect<T> {
    /// `open` opens the connection called `what`. Its argument tells when the result is no longer wanted.
    pub(crate) fn new(
        what: impl Into<String>,
        open: impl Fn(&Cancel) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Self {
        Self::telling(what, move |cancel, _| open(cancel))
    }

    /// One whose `open` also reports notices.
    pub(crate) fn telling(
        what: impl Into<String>,
        open: impl Fn(&Cancel, &dyn Fn(String)) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Self {
        let now = Instant::now();
        Self {
            what: what.into(),
            open: Arc::new(open),
            attempt: None,
            lost: now,
            why: None,
            opened: now,
            last_report: None,
            is_reported: false,
        }
    }

    /// Handles a loss, with its reason if known.
    pub(crate) fn lost(&mut self, why: Option<&str>, tell: impl Fn(String)) {
        (self.lost, self.why, self.is_reported) = (Instant::now(), why.map(str::to_owned), false);
        self.tell_lost(tell);
    }

    /// Reports a loss once. Limits the reports of a connection that comes and goes, but always reports a lasting loss.
    fn tell_lost(&mut self, tell: impl Fn(String)) {
        if self.is_reported || self.last_report.is_some_and(|last_report| last_report.elapsed() < TELL_EVERY)
        {
            return;
        }
        (self.is_reported, self.last_report) = (true, Some(Instant::now()));
        let why = self.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        tell(format!("{} has gone{why}; waiting for it", self.what));
    }

    /// Waits for the connection for up to `timeout`. `None`: not there yet.
    ///
    /// # Errors
    /// The address has another peer than before.
    pub(crate) fn poll(&mut self, timeout: Duration, tell: impl Fn(String)) -> Result<Option<T>, Error> {
        self.tell_lost(&tell);
        let pause = RETRY_EVERY.saturating_sub(self.opened.elapsed());
        let attempt = self.attempt.get_or_insert_with(|| Attempt::begin(self.open.clone(), pause));
        let until = Instant::now() + timeout;
        let opened = loop {
            match attempt.events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Event::Notice(words)) => tell(words),
                Ok(Event::Opened(opened)) => break opened.map(Some),
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => break Ok(None),
            }
        };
        self.attempt = None;
        if let Ok(Some(_)) = opened {
            self.opened = Instant::now();
            if self.is_reported {
                let away_s = (self.opened - self.lost).as_secs_f64();
                tell(format!("{} is there again, after {away_s:.1} s", self.what));
            }
        }
        opened
    }
}

impl<T: Send + 'static> Attempt<T> {
    /// Starts trying after `pause`, so that a peer that hangs up at once is not called at once.
    fn begin(open: Arc<Open<T>>, pause: Duration) -> Self {
        let ((sender, events), cancel) = (channel(), Cancel::default());
        let until = cancel.clone();
        std::thread::spawn(move || {
            std::thread::sleep(pause);
            let mut last = String::new();
            while !until.is_cancelled() {
                let tell = |words| drop(sender.send(Event::Notice(words)));
                match open(&until, &tell) {
                    Err(error) if may_come(&error) => {
                        note_once(&error, &mut last, &sender);
                        std::thread::sleep(RETRY_EVERY);
                    }
                    opened => {
                        let _ = sender.send(Event::Opened(opened));
                        return;
                    }
                }
            }
        });
        Self { events, cancel }
    }
}

/// Reports each new error other than absence.
fn note_once<T>(error: &Error, last: &mut String, sender: &Sender<Event<T>>) {
    let words = error.to_string();
    if !is_absent(error) && words != *last {
        let _ = sender.send(Event::Notice(format!("{words}; trying again")));
        *last = words;
    }
}

/// Whether opening may succeed later: the peer or the device is missing, or the name has no address now.
fn may_come(error: &Error) -> bool {
    matches!(error, Error::Tcp { .. } | Error::Unresolved { .. } | Error::Soapy { .. } | Error::Device { .. })
}

/// Whether the peer or the device is merely missing. A name without an address and a device in use need the user.
pub(crate) fn is_absent(error: &Error) -> bool {
    match error {
        Error::Tcp { action, .. } => *action == "connect to",
        Error::Device { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
        Error::Soapy { action, .. } => action == "open",
        _ => false,
    }
}

impl<T> std::fmt::Debug for Reconnect<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconnect")
            .field("what", &self.what)
            .field("is_trying", &self.attempt.is_some())
            .finish_non_exhaustive()
    }
}

impl<T> Drop for Attempt<T> {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Interval of the attempts.
pub(super) const RETRY_EVERY: Duration = Duration::from_millis(200);
const TELL_EVERY: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn refused(action: &'static str) -> Error {
        Error::Tcp { action, uri: "tcp://x:1".to_owned(), source: io::ErrorKind::ConnectionRefused.into() }
    }

    fn awaited<T: Send + 'static>(reconnect: &mut Reconnect<T>, tell: impl Fn(String)) -> T {
        loop {
            if let Some(opened) = reconnect.poll(Duration::from_millis(10), &tell).unwrap() {
                return opened;
            }
        }
    }

    #[test]
    fn opening_is_retried_until_it_works_and_again_after_a_loss() {
        let tries = AtomicU32::new(0);
        let mut reconnect = Reconnect::new("x", move |_| match tries.fetch_add(1, Ordering::Relaxed) {
            tries if tries % 3 < 2 => Err(refused("connect to")),
            tries => Ok(tries),
        });
        assert_eq!([awaited(&mut reconnect, drop), awaited(&mut reconnect, drop)], [2, 5]);
    }

    #[test]
    fn reconnecting_to_another_stream_is_an_error() {
        let mut reconnect: Reconnect<()> =
            Reconnect::new("x", |_| Err(Error::Peer { uri: "x".into(), what: "is another" }));
        let error = loop {
            match reconnect.poll(Duration::from_millis(10), drop) {
                Ok(None) => {}
                other => break other.unwrap_err(),
            }
        };
        assert_eq!(error.to_string(), "x is another");
    }

    #[test]
    fn losses_obstacles_and_recoveries_are_reported_once() {
        let tries = AtomicU32::new(0);
        let mut reconnect =
            Reconnect::telling("tcp://x:1", move |_, tell| match tries.fetch_add(1, Ordering::Relaxed) {
                0 | 3 => Err(refused("connect to")),
                1 | 2 => Err(refused("shake hands with")),
                _ => {
                    tell("it is louder than before".to_owned());
                    Ok(())
                }
            });
        let notes = RefCell::new(Vec::new());
        let tell = |words: String| notes.borrow_mut().push(words);
        reconnect.lost(Some("unplugged"), tell);
        awaited(&mut reconnect, tell);
        // A repeated loss is not reported each time.
        reconnect.lost(None, tell);
        awaited(&mut reconnect, tell);
        let notes = notes.into_inner();
        assert_eq!(notes.len(), 5, "{notes:?}");
        assert_eq!(notes[0], "tcp://x:1 has gone (unplugged); waiting for it");
        assert!(
            notes[1].starts_with("cannot shake hands with tcp://x:1: ")
                && notes[1].ends_with("; trying again")
        );
        assert_eq!(notes[2], "it is louder than before");
        assert!(notes[3].starts_with("tcp://x:1 is there again, after "), "{notes:?}");
        assert_eq!(notes[4], notes[2]);
    }

    #[test]
    fn a_source_that_returns_several_times_and_then_stays_away_is_reported() {
        let mut reconnect: Reconnect<()> = Reconnect::new("x", |_| Err(refused("connect to")));
        let notes = RefCell::new(Vec::new());
        let tell = |words: String| notes.borrow_mut().push(words);
        reconnect.lost(None, tell);
        reconnect.lost(Some("again"), tell);
        assert_eq!(notes.borrow().len(), 1);
        reconnect.last_report = reconnect.last_report.and_then(|at| at.checked_sub(TELL_EVERY));
        for _ in 0..3 {
            assert!(reconnect.poll(Duration::ZERO, tell).unwrap().is_none());
        }
        assert_eq!(notes.into_inner()[1..], ["x has gone (again); waiting for it"]);
    }
}
