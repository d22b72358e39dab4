//! A connection that was lost is opened again.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use grebe_ring::Cancel;

use crate::error::Error;

/// Opens a connection again that was lost, as often as it takes: in a thread of its own, since a stage must not wait that long.
pub(crate) struct Again<T> {
    open: Arc<Open<T>>,
    attempt: Option<Attempt<T>>,
}

type Open<T> = dyn Fn(&Cancel) -> Result<T, Error> + Send + Sync;

struct Attempt<T> {
    opened: Receiver<Result<T, Error>>,
    cancel: Cancel,
}

impl<T: Send + 'static> Again<T> {
    /// `open` opens it, and is told when nobody wants it any more.
    pub(crate) fn new(open: impl Fn(&Cancel) -> Result<T, Error> + Send + Sync + 'static) -> Self {
        Self { open: Arc::new(open), attempt: None }
    }

    /// Waits for it, for `timeout` at most; `None`: it is not there yet.
    ///
    /// # Errors
    /// There is another at that address than there was.
    pub(crate) fn poll(&mut self, timeout: Duration) -> Result<Option<T>, Error> {
        let attempt = self.attempt.get_or_insert_with(|| Attempt::begin(self.open.clone()));
        let opened = match attempt.opened.recv_timeout(timeout) {
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Ok(opened) => opened.map(Some),
        };
        self.attempt = None;
        opened
    }
}

impl<T: Send + 'static> Attempt<T> {
    fn begin(open: Arc<Open<T>>) -> Self {
        let ((sender, opened), cancel) = (channel(), Cancel::default());
        let until = cancel.clone();
        std::thread::spawn(move || {
            while !until.is_cancelled() {
                match open(&until) {
                    // Nobody is there, no device is, or the name has no address just now.
                    Err(
                        Error::Tcp { .. }
                        | Error::Unresolved { .. }
                        | Error::Soapy { .. }
                        | Error::Device { .. },
                    ) => {
                        std::thread::sleep(RETRY_EVERY);
                    }
                    opened => {
                        let _ = sender.send(opened);
                        return;
                    }
                }
            }
        });
        Self { opened, cancel }
    }
}

impl<T> std::fmt::Debug for Again<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Again").field("is_trying", &self.attempt.is_some()).finish_non_exhaustive()
    }
}

impl<T> Drop for Attempt<T> {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

const RETRY_EVERY: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn it_is_tried_until_it_is_there_and_then_anew() {
        let tries = AtomicU32::new(0);
        let mut again = Again::new(move |_| match tries.fetch_add(1, Ordering::Relaxed) {
            tries if tries % 3 < 2 => {
                let source = io::ErrorKind::ConnectionRefused.into();
                Err(Error::Tcp { action: "connect to", uri: String::new(), source })
            }
            tries => Ok(tries),
        });
        let mut found = Vec::new();
        while found.len() < 2 {
            found.extend(again.poll(Duration::from_millis(10)).unwrap());
        }
        assert_eq!(found, [2, 5]);
    }

    #[test]
    fn another_than_there_was_ends_it() {
        let mut again: Again<()> = Again::new(|_| Err(Error::Peer { uri: "x".into(), what: "is another" }));
        let error = loop {
            match again.poll(Duration::from_millis(10)) {
                Ok(None) => {}
                other => break other.unwrap_err(),
            }
        };
        assert_eq!(error.to_string(), "x is another");
    }
}
