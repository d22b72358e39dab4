//! The files that are sent, as one run of content: the list of them, their bytes, and last a status of each.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::directory::{Directory, Kind, Metadata, metadata, open_as_seen};
use super::system::{failed, read_exact_at};
use super::{FileStatus, LeftOut, groups};
use crate::error::{Error, Result};
use crate::proto::index::{Entry, INDEX_BYTES_MAX, Index, is_reserved, printable};

/// Files and directories to send, looked at but not read yet.
#[derive(Debug)]
pub struct Source {
    files: Vec<SourceFile>,
    index: Vec<u8>,
    content_bytes: u64,
    content: [u8; 32],
    touched: [u8; 8],
    names: Vec<String>,
    left_out: Vec<LeftOut>,
}

#[derive(Debug)]
struct SourceFile {
    path: PathBuf,
    /// Where it begins in the content.
    start: u64,
    /// What the user named may be a link.
    follows: bool,
    /// What it was when it was listed: nothing else is sent.
    seen: Metadata,
}

impl Source {
    /// Looks at `paths` and, where they are directories, at all in them. Names are those of the paths' last components. What cannot
    /// be sent is [left out](Self::left_out).
    ///
    /// # Errors
    /// [`Error::File`] where one of the paths cannot be looked at or is neither a file nor a directory, or where nothing is left to
    /// send; [`Error::Index`] where two have the same name, or where there are too many files.
    pub fn open(paths: &[PathBuf]) -> Result<Self> {
        let mut walk = Walk::default();
        for path in paths {
            walk.add_top(path)?;
        }
        if let (true, Some(LeftOut { path, why })) = (walk.index.entries.is_empty(), walk.left_out.first()) {
            return Err(failed("send", path, io::Error::other(why.clone())));
        }
        walk.index.check()?;
        let index = walk.index.encode();
        if index.len() > INDEX_BYTES_MAX {
            let name = format!("{} files", walk.index.entries.len());
            return Err(Error::Index { name, why: "too many for one transfer; pack them into one file" });
        }
        let mut start = index.len() as u64;
        for file in &mut walk.files {
            file.start = start;
            start += file.seen.bytes;
        }
        let tops = walk.index.entries.iter().filter(|entry| entry.is_top());
        Ok(Self {
            names: tops.map(|entry| printable(&entry.name)).collect(),
            content_bytes: start + walk.files.len() as u64,
            content: name_of_content(&walk.index, &walk.files),
            touched: touched(&walk.files),
            files: walk.files,
            index,
            left_out: walk.left_out,
        })
    }

    /// Bytes of all files.
    pub fn file_bytes(&self) -> u64 {
        self.content_bytes - (self.index.len() + self.files.len()) as u64
    }

    /// Files in it.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// What was named, for people.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// What is not sent: links and devices in directories, what cannot be read, and names that cannot be sent.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    pub(crate) fn index_bytes(&self) -> u64 {
        self.index.len() as u64
    }

    pub(crate) fn stream_bytes(&self) -> u64 {
        groups::stream_bytes(self.content_bytes)
    }

    /// The same files, unchanged, have the same name in a later session.
    pub(crate) fn content(&self) -> [u8; 32] {
        self.content
    }

    /// Another one in a later session: files may have been changed, although they have the same length and times.
    pub(crate) fn touched(&self) -> [u8; 8] {
        self.touched
    }
}

/// Modes are no part of it: a change of them changes no byte.
fn name_of_content(index: &Index, files: &[SourceFile]) -> [u8; 32] {
    let mut index = index.clone();
    index.entries.iter_mut().for_each(|entry| entry.mode = 0);
    // Each change in a directory changes its time.
    index
        .entries
        .iter_mut()
        .filter(|entry| entry.bytes.is_none())
        .for_each(|entry| entry.modified_unix_ns = 0);
    let mut hasher = blake3::Hasher::new();
    hasher.update(&index.encode());
    files.iter().flat_map(|file| file.seen.identity).for_each(|part| {
        hasher.update(&part.to_be_bytes());
    });
    *hasher.finalize().as_bytes()
}

fn touched(files: &[SourceFile]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    files.iter().flat_map(|file| file.seen.touched).for_each(|part| {
        hasher.update(&part.to_be_bytes());
    });
    std::array::from_fn(|at| hasher.finalize().as_bytes()[at])
}

/// The content of one transfer, and what became of its files while they were read.
#[derive(Debug)]
pub(in crate::io) struct Content {
    source: Arc<Source>,
    statuses: Mutex<Vec<FileStatus>>,
    /// The statuses as they are sent. What happens later the receiver finds by its hashes.
    sent_statuses: OnceLock<Vec<u8>>,
}

impl Content {
    pub(in crate::io) fn new(source: Arc<Source>) -> Self {
        let statuses = Mutex::new(vec![FileStatus::Good; source.files.len()]);
        Self { source, statuses, sent_statuses: OnceLock::new() }
    }

    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// Whether a group cannot be read again from the disk as it was: where a list and a file share it, the file may change.
    pub(super) fn is_read_once(&self, group: u64) -> bool {
        let group_of = |content_at: u64| content_at / groups::GROUP_BYTES;
        let statuses_start = self.source.content_bytes - self.source.files.len() as u64;
        group == group_of(self.source.index_bytes().saturating_sub(1)) || group >= group_of(statuses_start)
    }

    /// Files that did not arrive as they are.
    pub(in crate::io) fn left_out(&self) -> Vec<LeftOut> {
        let statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        let bad = self.source.files.iter().zip(&*statuses).filter(|(_, status)| **status != FileStatus::Good);
        bad.map(|(file, status)| LeftOut { path: file.path.clone(), why: status.why().into() }).collect()
    }

    fn mark(&self, number: usize, status: FileStatus) {
        let mut statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        if statuses[number] == FileStatus::Good {
            statuses[number] = status;
        }
    }

    /// Looks at all files once more, when everything has been read.
    fn look_again(&self) -> Vec<u8> {
        for (number, file) in self.source.files.iter().enumerate() {
            match metadata(&file.path, file.follows) {
                Ok(now) if now == file.seen => {}
                Ok(_) => self.mark(number, FileStatus::Changed),
                Err(_) => self.mark(number, FileStatus::Unreadable),
            }
        }
        let statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        statuses.iter().map(|status| *status as u8).collect()
    }
}

/// Reads content from anywhere; the file read last stays open.
pub(super) struct ContentReader {
    content: Arc<Content>,
    /// `None`: it cannot be read, or is no longer as it was.
    open: Option<(usize, Option<File>)>,
}

impl ContentReader {
    pub(super) fn new(content: Arc<Content>) -> Self {
        Self { content, open: None }
    }

    /// A file that cannot be read, or is no longer as it was, is noted and does not hold up the others: what is missing is zeros.
    pub(super) fn read_at(&mut self, mut bytes: &mut [u8], mut at: u64) {
        let source = self.content.source.clone();
        while !bytes.is_empty() {
            let number = source.files.partition_point(|file| file.start + file.seen.bytes <= at);
            let take = match source.files.get(number) {
                _ if at < source.index_bytes() => copy_from(&source.index, at as usize, bytes),
                Some(file) => {
                    let take = (file.start + file.seen.bytes - at).min(bytes.len() as u64) as usize;
                    self.read_file(number, file, &mut bytes[..take], at - file.start);
                    take
                }
                None => {
                    let statuses = self.content.sent_statuses.get_or_init(|| self.content.look_again());
                    let start = source.content_bytes - statuses.len() as u64;
                    copy_from(statuses, (at - start) as usize, bytes)
                }
            };
            (at, bytes) = (at + take as u64, &mut bytes[take..]);
        }
    }

    fn read_file(&mut self, number: usize, file: &SourceFile, bytes: &mut [u8], at: u64) {
        if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
            let opened = match open_as_seen(&file.path, file.follows, &file.seen) {
                Ok(Some((opened, now))) if now == file.seen => Some(opened),
                Ok(_) => {
                    self.content.mark(number, FileStatus::Changed);
                    None
                }
                Err(_) => {
                    self.content.mark(number, FileStatus::Unreadable);
                    None
                }
            };
            self.open = Some((number, opened));
        }
        let opened = self.open.as_ref().and_then(|(_, opened)| opened.as_ref());
        match opened.map(|opened| read_exact_at(opened, bytes, at)) {
            Some(Ok(())) => return,
            Some(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.content.mark(number, FileStatus::Changed);
            }
            Some(Err(_)) => self.content.mark(number, FileStatus::Unreadable),
            None => {}
        }
        bytes.fill(0);
    }
}

fn copy_from(from: &[u8], at: usize, into: &mut [u8]) -> usize {
    let take = into.len().min(from.len() - at);
    into[..take].copy_from_slice(&from[at..at + take]);
    take
}

#[derive(Default)]
struct Walk {
    index: Index,
    files: Vec<SourceFile>,
    left_out: Vec<LeftOut>,
}

impl Walk {
    fn add_top(&mut self, path: &Path) -> Result<()> {
        let failed = |source| failed("look at", path, source);
        // What the user names is followed if it is a link, and has the name that the user gave.
        let seen = metadata(path, true).map_err(failed)?;
        let named = match path.file_name() {
            Some(_) => path.to_path_buf(),
            None => fs::canonicalize(path).map_err(failed)?,
        };
        if !matches!(seen.kind, Kind::File | Kind::Directory) {
            return Err(failed(io::Error::other("it is neither a file nor a directory")));
        }
        self.add(path.to_path_buf(), true, Vec::new(), named.file_name().unwrap_or_default(), seen);
        Ok(())
    }

    /// Adds a file, or a directory with all in it. `above` is the name of the directory that it is in, with a slash.
    fn add(&mut self, path: PathBuf, follows: bool, above: Vec<u8>, own: &OsStr, seen: Metadata) {
        let name = match name_bytes(own) {
            Some(own) if is_reserved(own) => {
                return self.leave_out(path, "such names are for grebe's own files");
            }
            Some(own) if above.len() + own.len() <= usize::from(u16::MAX) => [&above, own].concat(),
            Some(_) => return self.leave_out(path, "its name is too long"),
            None => return self.leave_out(path, "its name is not Unicode"),
        };
        let is_file = seen.kind == Kind::File;
        let inside = match is_file {
            true => open_as_seen(&path, follows, &seen).map(|open| open.map(|_| Vec::new())),
            false => inside(&path, follows, &seen),
        };
        let inside = match inside {
            Ok(Some(inside)) => inside,
            Ok(None) => return self.leave_out(path, "something else has taken its place: send it again"),
            Err(error) => return self.leave_out(path, &error.to_string()),
        };
        self.index.entries.push(Entry {
            name: name.clone(),
            bytes: is_file.then_some(seen.bytes),
            mode: seen.mode,
            modified_unix_ns: seen.modified_unix_ns,
        });
        if is_file {
            return self.files.push(SourceFile { path, start: 0, follows, seen });
        }
        for (own, seen) in inside {
            let path = path.join(&own);
            match seen {
                Ok(seen) => match seen.kind {
                    Kind::File | Kind::Directory => {
                        self.add(path, false, [&name[..], b"/"].concat(), &own, seen);
                    }
                    Kind::Symlink => self.leave_out(path, "a symbolic link"),
                    Kind::Special => self.leave_out(path, "neither a file nor a directory"),
                },
                Err(error) => self.leave_out(path, &error.to_string()),
            }
        }
    }

    fn leave_out(&mut self, path: PathBuf, why: &str) {
        self.left_out.push(LeftOut { path, why: why.to_owned() });
    }
}

/// A name in a directory, and what it is.
type Inside = (OsString, io::Result<Metadata>);

/// All names in a directory, in an order that a later session finds again; `None` where something else has taken its place.
fn inside(path: &Path, follows: bool, seen: &Metadata) -> io::Result<Option<Vec<Inside>>> {
    let Some(directory) = Directory::open_as_seen(path, follows, seen)? else { return Ok(None) };
    let mut names = directory.names()?;
    names.sort();
    let look = |name: OsString| {
        let metadata = directory.metadata(name.as_ref());
        (name, metadata)
    };
    Ok(Some(names.into_iter().map(look).collect()))
}

#[cfg(unix)]
fn name_bytes(name: &OsStr) -> Option<&[u8]> {
    Some(std::os::unix::ffi::OsStrExt::as_bytes(name))
}

#[cfg(not(unix))]
fn name_bytes(name: &OsStr) -> Option<&[u8]> {
    name.to_str().map(str::as_bytes)
}

#[cfg(test)]
mod tests;
