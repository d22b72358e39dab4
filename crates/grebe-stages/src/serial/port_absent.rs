//! Stub for systems without a serial bridge.

use std::convert::Infallible;
use std::io::{self, Read, Write};

use crate::error::Error;
use crate::serial::SerialEnd;

/// Uninhabited.
#[derive(Debug)]
pub(crate) struct SerialPort(Infallible);

impl SerialPort {
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn open(end: &SerialEnd) -> Result<Self, Error> {
        let name = format!("serial://{}", end.path.display());
        let source = io::ErrorKind::Unsupported.into();
        Err(Error::Device { action: "open", name, source, advice: "; serial ports are for Linux and macOS" })
    }
}

impl Read for SerialPort {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }
}

impl Write for SerialPort {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}
