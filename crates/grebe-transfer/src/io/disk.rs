//! The disks at both ends: files as one stream of groups, each with its hash.
//!
//! ```text
//!  sending     source (which files) -> reader (groups, hashed) -> outgoing (what is sent, and sent again)
//!  receiving   writer (gathers groups) -> group_store (checks, writes) -> target (files) and journal (what is safe)
//! ```

mod group_store;
pub(super) mod groups;
mod journal;
pub(super) mod outgoing;
mod reader;
pub(crate) mod source;
mod target;
pub(super) mod writer;

use std::fs::File;
use std::io;
use std::time::Duration;

/// Whether threads that wait for each other are faster than one that does everything: each end of a transfer needs one core, and
/// both ends may be on this machine.
fn has_cores_to_spare() -> bool {
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() >= 4)
}

/// How long a disk may hold up the network before it gets a thread of its own.
struct Patience(Duration);

impl Patience {
    fn new() -> Self {
        // Several times: that another process had the core once says nothing about the disk.
        Self(5 * SLOW)
    }

    #[cfg(test)]
    fn none() -> Self {
        Self(Duration::ZERO)
    }

    /// Takes how long one group took, and returns whether the patience is over.
    fn is_over(&mut self, took: Duration) -> bool {
        if took > SLOW {
            self.0 = self.0.saturating_sub(took);
        }
        self.0.is_zero()
    }
}

/// What the peer sends meanwhile waits in the receiver's socket.
const SLOW: Duration = Duration::from_millis(20);

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, offset)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[read..];
        offset += read as u64;
    }
    Ok(())
}

#[cfg(windows)]
fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}
