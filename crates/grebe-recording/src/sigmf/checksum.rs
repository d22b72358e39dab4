//! The SHA-512 of files that may be large.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use ring::digest::{Context, SHA512};

use crate::hexadecimal::hex;

/// The sum of a file's bytes.
pub(super) struct Sum {
    file: File,
    begin: u64,
    sum: Context,
    bytes: u64,
    buffer: Vec<u8>,
}

/// Writes through, and sums.
pub(super) struct Summing<W> {
    inner: W,
    sum: Context,
}

impl Sum {
    /// Sums a file opened for reading, from its beginning.
    pub(super) fn new(file: File) -> Self {
        Self::from(file, 0)
    }

    /// Sums a file opened for reading, from byte `begin` on.
    pub(super) fn from(file: File, begin: u64) -> Self {
        Self { file, begin, sum: Context::new(&SHA512), bytes: 0, buffer: vec![0; BUFFER_BYTES] }
    }

    /// Adds the next bytes before `end`, one buffer at most.
    fn step(&mut self, end: u64) -> io::Result<()> {
        let length = end.saturating_sub(self.bytes).min(BUFFER_BYTES as u64) as usize;
        let buffer = &mut self.buffer[..length];
        self.file.seek(SeekFrom::Start(self.begin + self.bytes))?;
        self.file.read_exact(buffer)?;
        self.sum.update(buffer);
        self.bytes += length as u64;
        Ok(())
    }

    /// The sum of the first `end` bytes.
    pub(super) fn finish(mut self, end: u64) -> io::Result<String> {
        while self.bytes < end {
            self.step(end)?;
        }
        Ok(hex(self.sum.finish().as_ref()))
    }
}

impl<W: Write> Summing<W> {
    pub(super) fn new(inner: W) -> Self {
        Self { inner, sum: Context::new(&SHA512) }
    }

    /// The wrapped writer, and the sum of the written bytes.
    pub(super) fn finish(self) -> (W, String) {
        (self.inner, hex(self.sum.finish().as_ref()))
    }
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.sum.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

const BUFFER_BYTES: usize = 256 << 10;
