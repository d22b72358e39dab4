//! Work on a thread of its own, which a thread that has the interpreter waits for: Ctrl-C and exceptions end it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use grebe_stages::Cancel;
use pyo3::prelude::*;

use crate::error::Kind;

/// Reports progress to the waiting thread.
pub(crate) struct Teller<N>(SyncSender<N>);

impl<N> Teller<N> {
    /// Sends news that must arrive; waits while too many are unread.
    pub(crate) fn tell(&self, news: N) {
        // Nobody listens any more where Ctrl-C was first.
        let _ = self.0.send(news);
    }

    /// Reports news that later news replaces. Dropped if too much waits.
    pub(crate) fn tell_if_heard(&self, news: N) {
        let _ = self.0.try_send(news);
    }
}

impl<N> Clone for Teller<N> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// How long work may take.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// Timeout; `None`: unlimited.
    pub(crate) timeout: Option<Duration>,
    /// From its being cancelled until it is left to itself.
    pub(crate) after_cancel: Duration,
}

/// Runs `work` in a thread. This thread calls `hear` with its news.
///
/// # Errors
/// Exceptions of signals and of `hear`, which cancel the work; `Timeout`; no thread is available.
pub(crate) fn watched<N: Send + 'static, T: Send + 'static>(
    py: Python<'_>,
    name: &'static str,
    cancel: &Cancel,
    patience: Patience,
    work: impl FnOnce(Teller<N>) -> T + Send + 'static,
    mut hear: impl FnMut(N) -> PyResult<()>,
) -> PyResult<T> {
    let (teller, heard) = sync_channel(UNHEARD_MAX);
    // The channel closes with the worker, and with every other sender.
    let worker = std::thread::Builder::new().name(name.to_owned()).spawn(|| work(Teller(teller)))?;
    let (heard, began) = (Mutex::new(heard), Instant::now());
    loop {
        let outcome = match py.detach(|| next(&heard, LOOK_EVERY)) {
            Ok(news) => hear(news),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                let fault = |_| Kind::General.error(format!("{name} has panicked: this is a fault of grebe"));
                return py.detach(|| worker.join()).map_err(fault);
            }
        };
        let is_late = patience.timeout.filter(|&timeout| began.elapsed() >= timeout);
        let outcome = outcome.and_then(|()| py.check_signals()).and_then(|()| match is_late {
            Some(timeout) => Err(Kind::Timeout.error(format!("it did not appear within {timeout:?}"))),
            None => Ok(()),
        });
        if let Err(error) = outcome {
            cancel.cancel();
            let end = Instant::now() + patience.after_cancel;
            let is_over = || matches!(next(&heard, LOOK_EVERY), Err(RecvTimeoutError::Disconnected));
            // Its result, if it has one, is dropped without the interpreter.
            py.detach(|| {
                while Instant::now() < end {
                    if is_over() {
                        return drop(worker.join());
                    }
                }
            });
            return Err(error);
        }
    }
}

fn next<N>(heard: &Mutex<Receiver<N>>, timeout: Duration) -> Result<N, RecvTimeoutError> {
    heard.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(timeout)
}

/// How soon a wait sees a signal.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Maximum news that wait.
const UNHEARD_MAX: usize = 64;
