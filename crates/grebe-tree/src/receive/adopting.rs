//! Adopts existing files under other names: moved or renamed ones, and files in directories that the user
//! named.
//!
//! A file of the same length and time is copied to its future place, and its hash is sent. The sender
//! confirms it or sends its own file. The hash covers the copy, so nobody can change it meanwhile.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::delta::{FOUND_BYTES_MIN, Found};
use crate::name::{bytes_of, os_name};
use crate::receive::pending::{Adopted, Pending};
use crate::receive::session::Session;
use crate::system::{Directory, clone_content, read_at, regular, write_all_at};
use crate::wire::{GROUP_BYTES, ShortHash, short};

/// Files found under other names so far.
pub(super) struct Elsewhere {
    found: Found,
}

/// Minimum search time, in addition to the time that sending would take at 100 Mbit/s.
const LOOK_AT_LEAST: Duration = Duration::from_millis(20);
const SENT_BYTES_PER_S: f64 = 12.5e6;

impl Elsewhere {
    pub(super) fn new(session: &Session) -> Self {
        let options = &session.options;
        let mut directories = Vec::new();
        // Within one host, and in a dry run, this saves no bytes.
        let is_looked = session.handover.is_none() && session.stranger.is_none();
        // A sender without a login must not learn of other files here.
        if is_looked && !options.dry_run && !options.whole_file {
            let destination = &session.destination;
            directories.extend(options.also_look_in.iter().map(|directory| destination.path.join(directory)));
            directories.extend(destination.there());
        }
        Self { found: Found::in_directories(directories) }
    }

    /// Copies a file with the same length and time, and returns its hash.
    pub(super) fn adopt(&mut self, session: &Session, file: &Pending) -> Option<(ShortHash, Arc<Adopted>)> {
        if file.bytes < FOUND_BYTES_MIN {
            return None;
        }
        self.look(session, file.bytes);
        let mtime_s = file.modified_ns.div_euclid(1_000_000_000);
        let same = self.found.same(file.bytes, mtime_s, os_name(&file.name)?)?;
        // On failure the file is sent instead.
        copy(session, file, &same.path).ok()?
    }

    /// A file of the same name and similar length.
    pub(super) fn similar(&self, file: &Pending) -> Option<(PathBuf, u64)> {
        let similar = self.found.similar(file.bytes, os_name(&file.name)?)?;
        Some((similar.path.clone(), similar.bytes))
    }

    fn look(&mut self, session: &Session, bytes: u64) {
        let until = Instant::now() + LOOK_AT_LEAST + Duration::from_secs_f64(bytes as f64 / SENT_BYTES_PER_S);
        self.found.look(|| Instant::now() < until && !session.is_stopped());
    }
}

/// Opens a found file, if it still is a regular file.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let file = Directory::open(above)?.read_file(&bytes_of(name), false)?;
    regular(&file).map(|_| file)
}

/// `None`: its length changed, or the copy is over.
fn copy(session: &Session, file: &Pending, from: &Path) -> io::Result<Option<(ShortHash, Arc<Adopted>)>> {
    let from = open(from)?;
    let into = session.directories.open(file.place)?;
    let (to, temporary) = session.partial.create(&into, file.mode)?;
    let adopted = Adopted::new(temporary);
    // Nobody else can change shared content after cloning, so the clone is hashed.
    let is_shared = clone_content(&from, &to).is_ok();
    let read = if is_shared { &to } else { &from };
    let (mut hasher, mut buffer, mut at) = (blake3::Hasher::new(), vec![0; GROUP_BYTES], 0);
    loop {
        if session.is_stopped() {
            return Ok(None);
        }
        let bytes = match read_at(read, &mut buffer, at)? {
            0 => break,
            bytes => &buffer[..bytes],
        };
        hasher.update(bytes);
        // A hole reads the same.
        if !is_shared && bytes.iter().any(|byte| *byte != 0) {
            write_all_at(&to, bytes, at)?;
        }
        at += bytes.len() as u64;
    }
    to.set_len(at)?;
    Ok((at == file.bytes).then(|| (short(&hasher.finalize()), Arc::new(adopted))))
}
