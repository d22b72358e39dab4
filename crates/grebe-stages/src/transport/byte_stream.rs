//! The byte stream of a carrier: standard input or output, a connection, a serial port.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::standard::{Stdin, Stdout, readable};
use crate::serial::SerialPort;

/// The byte stream of a carrier.
#[derive(Debug)]
pub(crate) enum ByteStream {
    Input(Stdin),
    Output(Stdout),
    Tcp(TcpStream),
    Serial(SerialPort),
}

impl ByteStream {
    /// Waits for up to 100 ms until there is something to read. Returns whether there is.
    pub(crate) fn readable(&self) -> io::Result<bool> {
        match self {
            Self::Input(input) => readable(input),
            Self::Output(_) => Ok(false),
            Self::Tcp(stream) => readable(stream),
            Self::Serial(port) => readable(port),
        }
    }
}

impl Read for ByteStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Input(input) => input.read(bytes),
            Self::Output(_) => Ok(0),
            Self::Tcp(stream) => stream.read(bytes),
            Self::Serial(port) => port.read(bytes),
        }
    }
}

impl Write for ByteStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Input(_) => Ok(0),
            Self::Output(output) => output.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
            Self::Serial(port) => port.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Input(_) => Ok(()),
            Self::Output(output) => output.flush(),
            Self::Tcp(stream) => stream.flush(),
            Self::Serial(port) => port.flush(),
        }
    }
}
