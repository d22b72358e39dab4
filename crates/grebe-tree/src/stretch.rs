//! A part of a file as a reader.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use crate::system::read_at;

/// Reads a range of a file by offset. Fails once the copy is stopped.
pub(crate) struct Stretch<'a, S> {
    file: &'a File,
    at: u64,
    end: u64,
    is_stopped: S,
}

impl<'a, S: Fn() -> bool> Stretch<'a, S> {
    pub(crate) fn of(file: &'a File, range: Range<u64>, is_stopped: S) -> Self {
        Self { file, at: range.start, end: range.end, is_stopped }
    }

    pub(crate) fn whole(file: &'a File, is_stopped: S) -> Self {
        Self::of(file, 0..u64::MAX, is_stopped)
    }
}

impl<S: Fn() -> bool> Read for Stretch<'_, S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if (self.is_stopped)() {
            return Err(io::Error::other("stopped"));
        }
        let room = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(out.len());
        let read = read_at(self.file, &mut out[..room], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<S: Fn() -> bool> Seek for Stretch<'_, S> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(at) = to else { return Err(io::ErrorKind::Unsupported.into()) };
        self.at = at;
        Ok(at)
    }
}
