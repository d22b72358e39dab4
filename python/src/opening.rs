//! Opens streams on another thread, so that Ctrl-C ends the wait for one at once.

use std::time::Duration;

use grebe_stages::{Cancel, Error, Notice};
use pyo3::prelude::*;

use crate::error::of_stream;
use crate::job::{Patience, watched};

/// The result of `open`. Its notices become records of the logger `grebe`.
///
/// # Errors
/// Those of `open`; `Timeout` after `timeout`; exceptions of signals.
pub(crate) fn opened<T: Send + 'static>(
    py: Python<'_>,
    cancel: &Cancel,
    timeout: Option<Duration>,
    open: impl FnOnce(&mut dyn FnMut(Notice)) -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let patience = Patience { timeout, after_cancel: Duration::ZERO };
    let hear = |notice: Notice| {
        let is_bad = matches!(notice, Notice::SmallBuffer(_) | Notice::Recording(_));
        log(py, if is_bad { "warning" } else { "info" }, &notice.to_string())
    };
    let opening = watched(
        py,
        "grebe-open",
        cancel,
        patience,
        move |teller| open(&mut |notice| teller.tell(notice)),
        hear,
    );
    opening?.map_err(of_stream)
}

/// A record of the logger `grebe`.
pub(crate) fn log(py: Python<'_>, level: &str, text: &str) -> PyResult<()> {
    let logger = py.import("logging")?.call_method1("getLogger", ("grebe",))?;
    logger.call_method1(level, ("%s", text)).map(drop)
}
