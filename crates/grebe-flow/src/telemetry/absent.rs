//! Where there are no Unix sockets.

use std::io;
use std::path::PathBuf;

use super::report::Watched;
use crate::error::Error;
use crate::runtime::Running;

/// Serves a graph's reports: not on this system, so that there is none.
#[derive(Debug)]
pub enum Publisher {}

/// Serves what `running` counts: not on this system.
///
/// # Errors
/// Always [`Error::Telemetry`].
pub fn publish(_running: &Running, _name: &str) -> Result<Publisher, Error> {
    Err(absent("cannot publish"))
}

/// Connections to graphs that publish: not on this system, so that there are none.
#[derive(Debug)]
pub enum Watch {}

impl Watch {
    /// Not on this system.
    ///
    /// # Errors
    /// Always [`Error::Telemetry`].
    pub fn new() -> Result<Self, Error> {
        Err(absent("cannot watch"))
    }

    /// None.
    pub fn look(&mut self) -> Vec<Watched> {
        match *self {}
    }
}

fn absent(what: &'static str) -> Error {
    let source = io::Error::new(io::ErrorKind::Unsupported, "it needs Unix sockets, which this system lacks");
    Error::Telemetry { what, path: PathBuf::from("running graphs"), source }
}
