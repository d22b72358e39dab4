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
    told: Option<Instant>,
    is_told: bool,
}

type Open<T> = dyn Fn(&Cancel, &dyn Fn(String)) -> Result<T, Error> + Send + Sync;

struct Attempt<T> {
    heard: Receiver<Heard<T>>,
    cancel: Cancel,
}

/// Results of the thread.
enum Heard<T> {
    Said(String),
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
            told: None,
            is_told: false,
        }
    }

    /// Handles a loss, with its reason if known.
    pub(crate) fn lost(&mut self, why: Option<&str>, tell: impl Fn(String)) {
        (self.lost, self.why, self.is_told) = (Instant::now(), why.map(str::to_owned), false);
        self.tell_lost(tell);
    }

    /// Reports a loss once. Limits the reports of a connection that comes and goes, but always reports a lasting loss.
    fn tell_lost(&mut self, tell: impl Fn(String)) {
        if self.is_told || self.told.is_some_and(|told| told.elapsed() < TELL_EVERY) {
            return;
        }
        (self.is_told, self.told) = (true, Some(Instant::now()));
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
            match attempt.heard.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Heard::Said(words)) => tell(words),
                Ok(Heard::Opened(opened)) => break opened.map(Some),
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => break Ok(None),
            }
        };
        self.attempt = None;
        if let Ok(Some(_)) = opened {
            self.opened = Instant::now();
            if self.is_told {
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
        let ((sender, heard), cancel) = (channel(), Cancel::default());
        let until = cancel.clone();
        std::thread::spawn(move || {
            std::thread::sleep(pause);
            let mut said = String::new();
            while !until.is_cancelled() {
                let tell = |words| drop(sender.send(Heard::Said(words)));
                match open(&until, &tell) {
                    Err(error) if may_come(&error) => {
                        note_once(&error, &mut said, &sender);
                        std::thread::sleep(RETRY_EVERY);
                    }
                    opened => {
                        let _ = sender.send(Heard::Opened(opened));
                        return;
                    }
                }
            }
        });
        Self { heard, cancel }
    }
}

/// Reports each new error other than absence.
fn note_once<T>(error: &Error, said: &mut String, sender: &Sender<Heard<T>>) {
    let words = error.to_string();
    if !is_absent(error) && words != *said {
        let _ = sender.send(Heard::Said(format!("{words}; trying again")));
        *said = words;
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

    fn awaited<T: Send + 'static>(again: &mut Reconnect<T>, tell: impl Fn(String)) -> T {
        loop {
            if let Some(opened) = again.poll(Duration::from_millis(10), &tell).unwrap() {
                return opened;
            }
        }
    }

    #[test]
    fn it_is_tried_until_it_is_there_and_then_anew() {
        let tries = AtomicU32::new(0);
        let mut again = Reconnect::new("x", move |_| match tries.fetch_add(1, Ordering::Relaxed) {
            tries if tries % 3 < 2 => Err(refused("connect to")),
            tries => Ok(tries),
        });
        assert_eq!([awaited(&mut again, drop), awaited(&mut again, drop)], [2, 5]);
    }

    #[test]
    fn another_than_there_was_ends_it() {
        let mut again: Reconnect<()> =
            Reconnect::new("x", |_| Err(Error::Peer { uri: "x".into(), what: "is another" }));
        let error = loop {
            match again.poll(Duration::from_millis(10), drop) {
                Ok(None) => {}
                other => break other.unwrap_err(),
            }
        };
        assert_eq!(error.to_string(), "x is another");
    }

    #[test]
    fn a_person_is_told_once_what_is_lost_what_is_in_the_way_and_what_is_back() {
        let tries = AtomicU32::new(0);
        let mut again =
            Reconnect::telling("tcp://x:1", move |_, tell| match tries.fetch_add(1, Ordering::Relaxed) {
                0 | 3 => Err(refused("connect to")),
                1 | 2 => Err(refused("shake hands with")),
                _ => {
                    tell("it is louder than before".to_owned());
                    Ok(())
                }
            });
        let told = RefCell::new(Vec::new());
        let tell = |words: String| told.borrow_mut().push(words);
        again.lost(Some("unplugged"), tell);
        awaited(&mut again, tell);
        // A repeated loss is not reported each time.
        again.lost(None, tell);
        awaited(&mut again, tell);
        let told = told.into_inner();
        assert_eq!(told.len(), 5, "{told:?}");
        assert_eq!(told[0], "tcp://x:1 has gone (unplugged); waiting for it");
        assert!(
            told[1].starts_with("cannot shake hands with tcp://x:1: ") && told[1].ends_with("; trying again")
        );
        assert_eq!(told[2], "it is louder than before");
        assert!(told[3].starts_with("tcp://x:1 is there again, after "), "{told:?}");
        assert_eq!(told[4], told[2]);
    }

    #[test]
    fn one_that_comes_and_goes_and_then_stays_away_is_told_in_the_end() {
        let mut again: Reconnect<()> = Reconnect::new("x", |_| Err(refused("connect to")));
        let told = RefCell::new(Vec::new());
        let tell = |words: String| told.borrow_mut().push(words);
        again.lost(None, tell);
        again.lost(Some("again"), tell);
        assert_eq!(told.borrow().len(), 1);
        again.told = again.told.and_then(|told| told.checked_sub(TELL_EVERY));
        for _ in 0..3 {
            assert!(again.poll(Duration::ZERO, tell).unwrap().is_none());
        }
        assert_eq!(told.into_inner()[1..], ["x has gone (again); waiting for it"]);
    }
}
