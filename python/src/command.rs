//! The command `grebe`, run by this interpreter.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command with these words, the first of which is its name; the exit status.
///
/// ``starts_by`` has the words that start the command in another process.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, words: Vec<OsString>, starts_by: Vec<OsString>) -> u8 {
    py.detach(|| grebe_cli::run(words, Some(starts_by)))
}
