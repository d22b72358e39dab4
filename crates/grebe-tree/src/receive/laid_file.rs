//! A new file with data that was written before its plan came.

use std::fs::File;
use std::io;

use crate::delta::Laid;
use crate::directories::Place;
use crate::receive::partial::Temporary;
use crate::receive::session::Session;
use crate::system::{self, Directory};
use crate::wire::short;

/// New file under a temporary name, with the data written ahead.
#[derive(Debug)]
pub(super) struct LaidFile {
    /// Length, as listed.
    bytes: u64,
    pub(super) open: File,
    temporary: Temporary,
    pub(super) laid: Laid,
}

impl LaidFile {
    /// Makes the file under a temporary name.
    pub(super) fn create(session: &Session, place: Place, mode: u16, bytes: u64) -> io::Result<Self> {
        let into = session.directories.open(place)?;
        let (open, temporary) = session.partial.create(&into, mode)?;
        Ok(Self { bytes, open, temporary, laid: Laid::default() })
    }

    /// Takes the file under its temporary name.
    pub(super) fn take(self) -> (File, Temporary) {
        (self.open, self.temporary)
    }

    /// Takes the file under a new, unused name.
    pub(super) fn rename(mut self, to: &Directory, name: &[u8]) -> io::Result<File> {
        self.temporary.rename(to, name)?;
        Ok(self.open)
    }

    /// Writes data that arrived before the plan.
    pub(super) fn add(&mut self, at: u64, content: &[u8]) -> io::Result<()> {
        // Data beyond the end is useless.
        if at.saturating_add(content.len() as u64) > self.bytes {
            return Ok(());
        }
        write_early(&self.open, &mut self.laid, at, content)
    }
}

pub(super) fn write_early(open: &File, laid: &mut Laid, at: u64, content: &[u8]) -> io::Result<()> {
    write(open, at, content, laid.end())?;
    laid.add(at..at + content.len() as u64, short(&blake3::hash(content)));
    Ok(())
}

/// Beyond `end` nothing was written, and a hole reads as zeros.
pub(super) fn write(open: &File, mut at: u64, bytes: &[u8], end: u64) -> io::Result<()> {
    for bytes in bytes.chunks(STEP_BYTES) {
        if at < end || bytes.iter().any(|byte| *byte != 0) {
            system::write_all_at(open, bytes, at)?;
        }
        at += bytes.len() as u64;
    }
    Ok(())
}

/// Zeros of this length stay holes.
const STEP_BYTES: usize = 64 << 10;
