//! Which stages have ended, and how.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::handles::Node;
use super::worker::Failed;
use crate::error::Error;

/// How each stage ended, for those who wait for it; `None` as long as it runs.
#[derive(Debug)]
pub(super) struct Ended {
    results: Mutex<Vec<Option<Result<(), Error>>>>,
    changed: Condvar,
}

impl Ended {
    pub(super) fn new(stages: usize) -> Self {
        Self { results: Mutex::new((0..stages).map(|_| None).collect()), changed: Condvar::new() }
    }

    /// A worker has ended, with these stages.
    pub(super) fn tell(&self, stages: &[Node], result: Result<(), Failed>) {
        let mut results = self.lock();
        for stage in stages {
            results[stage.0] = Some(Ok(()));
        }
        if let Err(Failed { node, error }) = result {
            results[node.0] = Some(Err(error));
        }
        self.changed.notify_all();
    }

    pub(super) fn is_all(&self) -> bool {
        self.lock().iter().all(Option::is_some)
    }

    /// Waits until all have ended; whether they have.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        let unfinished = |results: &mut Vec<Option<_>>| results.iter().any(Option::is_none);
        match self.changed.wait_timeout_while(self.lock(), timeout, unfinished) {
            Ok((results, _)) => results.iter().all(Option::is_some),
            Err(_) => false,
        }
    }

    /// The first error of a stage, or that one (called `name` of it) has not come back.
    pub(super) fn result(&self, name: impl FnOnce(usize) -> String) -> Result<(), Error> {
        let mut results = self.lock();
        if let Some(failed) = results.iter_mut().find(|result| matches!(result, Some(Err(_)))) {
            return failed.replace(Ok(())).unwrap_or(Ok(()));
        }
        match results.iter().position(Option::is_none) {
            Some(missing) => Err(Error::Overstayed(name(missing), DRAIN_TIMEOUT + ABORT_TIMEOUT)),
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Result<(), Error>>>> {
        // Written in one assignment per stage: a panic cannot leave it half done.
        self.results.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// How long what is queued may take to drain once the sources were asked to end.
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_millis(700);
/// How long stages may take to come back after that.
pub(super) const ABORT_TIMEOUT: Duration = Duration::from_millis(250);
