//! Binds objects to their process: a forked child has neither its threads nor its leases.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;

/// A value of the process that made it. A forked child cannot reach it, and never drops it: that would free memory
/// that the parent still reads, or wait for a thread that does not exist.
#[derive(Debug)]
pub(crate) struct Own<T> {
    value: Option<T>,
    forks: Forks,
}

/// Number of forks since the process that imported the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Forks(u32);

impl Forks {
    pub(crate) fn now() -> Self {
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether this process is a fork of that one.
    #[inline]
    pub(crate) fn is_over(self) -> bool {
        self != Self::now()
    }

    /// # Errors
    /// This process is a fork of that one.
    #[inline]
    pub(crate) fn check(self) -> PyResult<()> {
        if self.is_over() { Err(foreign()) } else { Ok(()) }
    }
}

impl<T> Own<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), forks: Forks::now() }
    }

    /// # Errors
    /// This process is a fork of the one that made it.
    #[inline]
    pub(crate) fn get(&self) -> PyResult<&T> {
        match &self.value {
            Some(value) if self.forks == Forks::now() => Ok(value),
            _ => Err(foreign()),
        }
    }

    /// The value itself; `None` in a fork of the process that made it.
    pub(crate) fn into_value(mut self) -> Option<T> {
        if self.forks == Forks::now() { self.value.take() } else { None }
    }

    /// # Errors
    /// This process is a fork of the one that made it.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> PyResult<&mut T> {
        match &mut self.value {
            Some(value) if self.forks == Forks::now() => Ok(value),
            _ => Err(foreign()),
        }
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        if self.forks != Forks::now() {
            std::mem::forget(self.value.take());
        }
    }
}

/// Work of this process that the interpreter waits for before it ends.
pub(crate) struct Alive(Forks);

impl Alive {
    pub(crate) fn new() -> Self {
        ALIVE.fetch_add(1, Ordering::AcqRel);
        Self(Forks::now())
    }

    pub(crate) fn is_any() -> bool {
        ALIVE.load(Ordering::Acquire) > 0
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        if !self.0.is_over() {
            ALIVE.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Has the interpreter tell when this process is a forked child.
pub(crate) fn register(py: Python<'_>) -> PyResult<()> {
    let os = py.import("os")?;
    // Windows does not fork.
    if !os.hasattr("register_at_fork")? {
        return Ok(());
    }
    let hooks = PyDict::new(py);
    hooks.set_item("after_in_child", wrap_pyfunction!(has_forked, py)?)?;
    os.call_method("register_at_fork", (), Some(&hooks)).map(drop)
}

#[pyfunction]
fn has_forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    ALIVE.store(0, Ordering::Release);
}

#[cold]
fn foreign() -> PyErr {
    error::Kind::General
        .error("this was opened before the process forked, and stays with the parent: open it in the child")
}

/// How many forks lie between this process and the first that imported the module.
static FORKS: AtomicU32 = AtomicU32::new(0);
static ALIVE: AtomicUsize = AtomicUsize::new(0);
