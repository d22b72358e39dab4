//! Systems without Unix sockets: the same interface, with a clear error.
#![allow(missing_docs, reason = "as on Unix")]

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::report::Watched;
use crate::error::Error;
use crate::runtime::Running;
use crate::snapshot::Snapshot;

#[derive(Debug)]
pub enum Publisher {}
pub fn publish(_running: &Running, _name: &str) -> Result<Publisher, Error> {
    Err(absent("cannot publish"))
}
pub fn publish_observed(
    _observe: impl Fn() -> Snapshot + Send + 'static,
    _name: &str,
    _about: BTreeMap<String, String>,
) -> Result<Publisher, Error> {
    Err(absent("cannot publish"))
}

pub fn publish_about(
    _running: &Running,
    _name: &str,
    _about: BTreeMap<String, String>,
) -> Result<Publisher, Error> {
    Err(absent("cannot publish"))
}

impl Publisher {
    pub fn path(&self) -> &Path {
        match *self {}
    }
}

#[derive(Debug)]
pub enum Watch {}

impl Watch {
    pub fn new() -> Result<Self, Error> {
        Err(absent("cannot watch"))
    }
    pub fn look(&mut self) -> Vec<Watched> {
        match *self {}
    }
}

fn absent(what: &'static str) -> Error {
    let source = io::Error::new(io::ErrorKind::Unsupported, "it needs Unix sockets, which this system lacks");
    Error::Telemetry { what, path: PathBuf::from("running graphs"), source }
}
