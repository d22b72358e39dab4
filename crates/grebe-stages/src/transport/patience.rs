//! Retries opening a source or a sink whose URI says `reconnect`.

use std::time::{Duration, Instant};

use grebe_ring::Cancel;

use super::reconnect::{RETRY_EVERY, is_absent};
use crate::error::Error;
use crate::open::{Notice, Notify};

/// Rules for waiting.
pub(crate) struct Patience<'a> {
    /// Whether the name says `reconnect`.
    pub(crate) waits: bool,
    /// Maximum wait; `None`: no limit.
    pub(crate) within: Option<Duration>,
    /// Cancels the wait.
    pub(crate) cancel: &'a Cancel,
}

impl Patience<'_> {
    /// Opens it. With `reconnect`, retries until the other end or the device is there.
    ///
    /// # Errors
    /// The error of `open` if waiting does not help, or after the wait.
    pub(crate) fn open<T>(
        &self,
        notify: Notify<'_>,
        mut open: impl FnMut(&mut dyn FnMut(Notice)) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let began = Instant::now();
        let mut is_told = false;
        loop {
            let error = match open(notify) {
                Err(error) if self.waits && is_absent(&error) => error,
                opened => return opened,
            };
            if self.cancel.is_cancelled() || self.within.is_some_and(|within| began.elapsed() >= within) {
                return Err(error);
            }
            if !std::mem::replace(&mut is_told, true) {
                notify(Notice::NotThereYet { why: error.to_string() });
            }
            std::thread::sleep(RETRY_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn refused() -> Error {
        let source = io::ErrorKind::ConnectionRefused.into();
        Error::Tcp { action: "connect to", uri: "tcp://x:1".to_owned(), source }
    }

    #[test]
    fn waiting_for_a_missing_source_is_reported_once() {
        let cancel = Cancel::default();
        let patience = Patience { waits: true, within: None, cancel: &cancel };
        let (mut tries, mut said) = (0, Vec::new());
        let opened = patience.open(&mut |notice| said.push(notice.to_string()), |_| {
            tries += 1;
            if tries < 3 { Err(refused()) } else { Ok(tries) }
        });
        assert_eq!(opened.unwrap(), 3);
        assert_eq!(said.len(), 1);
        assert!(
            said[0].starts_with("cannot connect to tcp://x:1: ") && said[0].ends_with("; waiting for it")
        );
    }

    #[test]
    fn waiting_without_reconnect_ends_by_the_timeout() {
        let cancel = Cancel::default();
        let told = |waits, within| Patience { waits, within, cancel: &cancel };
        let mut quiet = |_| {};
        assert!(told(false, None).open(&mut quiet, |_| Err::<(), _>(refused())).is_err());
        assert!(told(true, Some(Duration::ZERO)).open(&mut quiet, |_| Err::<(), _>(refused())).is_err());
        let other = || Error::Peer { uri: "x".to_owned(), what: "is another" };
        assert!(told(true, None).open(&mut quiet, |_| Err::<(), _>(other())).is_err());
        cancel.cancel();
        assert!(told(true, None).open(&mut quiet, |_| Err::<(), _>(refused())).is_err());
    }
}
