//! A value that one thread at a time works with, and that may run Python meanwhile.
//!
//! Python runs whenever an object is made or freed: signal handlers and finalisers may come back to the same value. A
//! plain lock would wait for its own thread.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use pyo3::prelude::*;

use crate::error::Kind;
use crate::fork::Forks;
use crate::job::LOOK_EVERY;

/// A value, and the threads that wait for it, in the order they came.
pub(crate) struct Turns<T> {
    value: Mutex<T>,
    line: Mutex<Line>,
    freed: Condvar,
    forks: Forks,
}

#[derive(Default)]
struct Line {
    holder: Option<ThreadId>,
    waiting: VecDeque<u64>,
    tickets: u64,
}

/// The value, until it is dropped.
pub(crate) struct Turn<'a, T> {
    /// `None` only while it is being dropped.
    value: Option<MutexGuard<'a, T>>,
    turns: &'a Turns<T>,
}

impl<T: Send> Turns<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), line: Mutex::default(), freed: Condvar::new(), forks: Forks::now() }
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the value stays with the process that this one is a fork of: there is nothing to be closed.
    pub(crate) fn is_foreign(&self) -> bool {
        self.forks.is_over()
    }

    /// Waits for the value, without the interpreter; signals end the wait.
    ///
    /// # Errors
    /// This thread already has the value (in a signal handler or finalizer), this process is a fork of the one that
    /// made the value, or the exception of a signal handler.
    pub(crate) fn lock(&self, py: Python<'_>) -> PyResult<Turn<'_, T>> {
        self.lock_unless_mine(py)?.ok_or_else(|| {
            Kind::General
                .error("a signal handler or finaliser cannot use what its own thread is working with")
        })
    }

    /// As [`lock`](Self::lock), but `None` where this thread has the value already.
    pub(crate) fn lock_unless_mine(&self, py: Python<'_>) -> PyResult<Option<Turn<'_, T>>> {
        self.forks.check()?;
        let me = thread::current().id();
        let mut line = locked(&self.line);
        if line.holder == Some(me) {
            return Ok(None);
        }
        if line.holder.is_none() && line.waiting.is_empty() {
            line.holder = Some(me);
        } else {
            let ticket = line.tickets;
            line.tickets += 1;
            line.waiting.push_back(ticket);
            drop(line);
            self.wait(py, me, ticket)?;
        }
        Ok(Some(Turn { value: Some(locked(&self.value)), turns: self }))
    }

    #[cold]
    fn wait(&self, py: Python<'_>, me: ThreadId, ticket: u64) -> PyResult<()> {
        let is_behind = |line: &mut Line| line.holder.is_some() || line.waiting.front() != Some(&ticket);
        loop {
            let is_mine = py.detach(|| {
                let line = self.freed.wait_timeout_while(locked(&self.line), LOOK_EVERY, is_behind);
                let (mut line, waited) = line.unwrap_or_else(PoisonError::into_inner);
                if !waited.timed_out() {
                    line.waiting.pop_front();
                    line.holder = Some(me);
                }
                !waited.timed_out()
            });
            if is_mine {
                return Ok(());
            }
            py.check_signals().inspect_err(|_| {
                locked(&self.line).waiting.retain(|&other| other != ticket);
                self.freed.notify_all();
            })?;
        }
    }
}

/// For a thread that waits for nothing else meanwhile, and runs no Python.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic ends in an exception; what it left is whole, or closed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Deref for Turn<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("a turn that is not over")
    }
}

impl<T> DerefMut for Turn<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("a turn that is not over")
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        self.value = None;
        let mut line = locked(&self.turns.line);
        line.holder = None;
        if !line.waiting.is_empty() {
            self.turns.freed.notify_all();
        }
    }
}
