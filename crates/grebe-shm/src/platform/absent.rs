//! Other systems: each call is an error, and no value exists.

use std::io;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use super::{Event, Received};
use crate::error::Error;
use crate::message::MESSAGE_BYTES_MAX;

#[derive(Debug)]
pub(crate) enum Memory {}

impl Memory {
    pub(crate) fn make(_: &str, _: usize) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, Error::Platform))
    }
    pub(crate) fn map(&self, _: usize, _: bool) -> io::Result<NonNull<u8>> {
        match *self {}
    }
    pub(crate) unsafe fn unmap(_: NonNull<u8>, _: usize) {}
    pub(crate) fn seal(&mut self, _: bool) -> io::Result<()> {
        match *self {}
    }
    pub(crate) fn is_fixed_at(&self, _: usize) -> io::Result<bool> {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum Connection {}

impl Connection {
    pub(crate) fn connect(_: &str, _: &Path, _: Duration) -> Result<Self, Error> {
        Err(Error::Platform)
    }
    pub(crate) fn send(&self, _: &[u8], _: &[&Memory]) -> io::Result<()> {
        match *self {}
    }
    pub(crate) fn receive(&self, _: &mut [u8; MESSAGE_BYTES_MAX]) -> Received {
        match *self {}
    }
    pub(crate) fn wait(&self, _: Duration) -> io::Result<bool> {
        match *self {}
    }
    pub(crate) fn hang_up(&self) {
        match *self {}
    }
    pub(crate) fn is_from_own_user(&self, _: &Memory) -> bool {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) pid: u32,
}

impl Peer {
    pub(crate) fn refusal(&self, _: &[u32]) -> Option<String> {
        None
    }
}

pub(crate) enum Listener {}

impl Listener {
    pub(crate) fn bind(_: PathBuf, _: &str, _: &[u32], _: Arc<Closer>) -> Result<Self, Error> {
        Err(Error::Platform)
    }
    pub(crate) fn wait(&mut self, _: &mut Vec<Event>, _: Option<Duration>) -> io::Result<()> {
        match *self {}
    }
    pub(crate) fn is_open(&self) -> bool {
        match *self {}
    }
    pub(crate) fn close(&mut self) {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum Closer {}

impl Closer {
    pub(crate) fn new() -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, Error::Platform))
    }
    pub(crate) fn close(&self) {
        match *self {}
    }
}

pub(crate) mod names {
    use super::*;

    pub(crate) fn own_directory() -> PathBuf {
        PathBuf::new()
    }
    pub(crate) fn create_private(_: &Path) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, Error::Platform))
    }
    pub(crate) fn why_unsafe(_: &Path) -> io::Result<Option<String>> {
        Ok(None)
    }
    pub(crate) fn lock(_: &Path) -> Result<(), Error> {
        Err(Error::Platform)
    }
    pub(crate) fn has_producer(_: &Path) -> Result<bool, Error> {
        Err(Error::Platform)
    }
}
