//! Location of a recording's files: a folder, or a `.sigmf` archive.
//!
//! An archive is a tar that stores the bytes of each file contiguously: nothing is unpacked. A file in it has
//! a path through the archive, `x.sigmf/one/one.sigmf-meta`.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use super::layout::Base;
use crate::error::Error;
use crate::unpacked::{self, plain_name};

/// Container of the files of a recording.
#[derive(Debug)]
pub(super) enum Files {
    Folder,
    Archive(Archive),
    /// A folder whose data files may still be arriving: their final and their current paths.
    Arriving(Vec<(PathBuf, PathBuf)>),
}

/// A file, or a range of an archive.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) file: File,
    pub(super) offset_bytes: u64,
    pub(super) bytes: u64,
}

#[derive(Debug)]
pub(super) struct Archive {
    path: PathBuf,
    file: File,
    file_bytes: u64,
    /// In the order of their names.
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    /// Path within the archive, for messages.
    path: PathBuf,
    offset_bytes: u64,
    bytes: u64,
}

impl Files {
    /// The container of the recording at `path`, and that recording's path: an archive may stand for its only
    /// recording.
    pub(super) fn of(path: &Path) -> Result<(Self, PathBuf), Error> {
        let is_archive = |at: &&Path| has_archive_name(at) && (*at == path || at.is_file());
        let Some(at) = path.ancestors().find(is_archive) else {
            return Ok((Files::Folder, path.into()));
        };
        let archive = Archive::open(at)?;
        let recording = if at == path { archive.only_recording()? } else { path.into() };
        Ok((Files::Archive(archive), recording))
    }

    /// The recordings and collections of an archive, or the path itself, where it names one of them or no archive.
    pub(super) fn recordings(path: &Path) -> Result<Vec<PathBuf>, Error> {
        if !has_archive_name(path) {
            return Ok(vec![path.into()]);
        }
        let archive = Archive::open(path)?;
        // The code that opens the archive handles none and one.
        let all: Vec<PathBuf> = archive.recordings().map(|inside| path.join(inside)).collect();
        Ok(if all.len() > 1 && archive.only_recording().is_err() { all } else { vec![path.into()] })
    }

    pub(super) fn holds(&self, path: &Path) -> bool {
        match self {
            Files::Folder | Files::Arriving(_) => path.exists(),
            Files::Archive(archive) => archive.member(path).is_some(),
        }
    }

    pub(super) fn open(&self, path: &Path) -> Result<Part, Error> {
        let failed = Error::file("open", path);
        match self {
            Files::Folder => open_file(path).map_err(failed),
            Files::Archive(archive) => archive.part(path),
            Files::Arriving(elsewhere) => {
                let place = elsewhere.iter().find(|(its, _)| its == path).map(|(_, place)| place);
                // The file may have been renamed meanwhile.
                let opened = place.map(|place| open_file(place)).filter(Result::is_ok);
                opened.unwrap_or_else(|| open_file(path)).map_err(failed)
            }
        }
    }

    /// Whether data may be missing, so that no sum can be verified.
    pub(super) fn is_arriving(&self) -> bool {
        matches!(self, Files::Arriving(_))
    }

    /// The base of a collection's recording: beside the collection, or in an archive perhaps in its own folder.
    pub(super) fn of_collection(&self, collection: &Base, name: &str) -> Base {
        let beside = collection.beside(name);
        match self {
            Files::Archive(archive) if archive.member(&beside.meta()).is_none() => {
                let meta = beside.meta();
                let mut found = archive.members.iter().filter(|it| it.path.file_name() == meta.file_name());
                match (found.next(), found.next()) {
                    (Some(only), None) => Base::of(&archive.path.join(&only.path)),
                    _ => beside,
                }
            }
            _ => beside,
        }
    }
}

fn open_file(path: &Path) -> io::Result<Part> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    Ok(Part { file, offset_bytes: 0, bytes })
}

impl Part {
    /// Its bytes, a number of them at most.
    pub(super) fn read(&self, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut file = &self.file;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(self.offset_bytes))?;
        file.take(self.bytes.min(bytes_max)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Archive {
    fn open(path: &Path) -> Result<Self, Error> {
        let file = unpacked::open_by_content(path)?;
        let file_bytes = file.metadata().map_err(Error::file("open", path))?.len();
        let no_tar = |error: io::Error| {
            let what = format!("is not a SigMF archive (a tar): {error}");
            Error::Content { path: path.into(), what }
        };
        let mut members = Vec::new();
        let mut tar = tar::Archive::new(Headers { file: &file, left_bytes: HEADERS_BYTES_MAX });
        for entry in tar.entries_with_seek().map_err(no_tar)?.take(MEMBERS_MAX) {
            let entry = match entry {
                Ok(entry) => entry,
                // Cut off after the members found: their sizes show whether that matters.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof && !members.is_empty() => break,
                Err(error) => return Err(no_tar(error)),
            };
            let kind = entry.header().entry_type();
            // The rest has no bytes of its own, or not all of them.
            if kind.is_file() || kind.is_contiguous() {
                let written = entry.path().map_err(no_tar)?;
                let path = written.components().filter(|part| matches!(part, Component::Normal(_))).collect();
                let (offset_bytes, bytes) = (entry.raw_file_position(), entry.size());
                members.push(Member { path, offset_bytes, bytes });
            }
        }
        members.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { path: path.into(), file, file_bytes, members })
    }

    /// Collections and recordings; those that a collection ties together are among them.
    fn recordings(&self) -> impl Iterator<Item = &PathBuf> {
        self.of_kind("sigmf-collection").chain(self.of_kind("sigmf-meta"))
    }

    fn of_kind(&self, kind: &'static str) -> impl Iterator<Item = &PathBuf> {
        let paths = self.members.iter().map(|member| &member.path);
        paths.filter(move |path| path.extension().is_some_and(|extension| extension == kind))
    }

    /// The collection of an archive, or its recording where there is one.
    fn only_recording(&self) -> Result<PathBuf, Error> {
        let collections: Vec<&PathBuf> = self.of_kind("sigmf-collection").collect();
        let mut recordings: Vec<&PathBuf> = self.of_kind("sigmf-meta").collect();
        match (collections.as_slice(), recordings.as_slice()) {
            ([only], _) | ([], [only]) => return Ok(self.path.join(only)),
            _ => {}
        }
        let what = if recordings.is_empty() {
            "holds no recording (a .sigmf-meta)".to_owned()
        } else {
            recordings.splice(..0, collections);
            let (example, count) = (self.path.join(recordings[0]), recordings.len());
            let mut names: Vec<String> =
                recordings.iter().take(NAMES_MAX).map(|path| path.display().to_string()).collect();
            if count > NAMES_MAX {
                names.push("...".to_owned());
            }
            format!(
                "holds {count} recordings: name one of them, as in {}; there are {}",
                example.display(),
                names.join(", ")
            )
        };
        Err(Error::Content { path: self.path.clone(), what })
    }

    fn member(&self, path: &Path) -> Option<&Member> {
        let inside = path.strip_prefix(&self.path).ok()?;
        // Of equal names the last one wins, as when unpacking.
        self.members.iter().rev().find(|member| member.path == inside)
    }

    fn part(&self, path: &Path) -> Result<Part, Error> {
        let Some(member) = self.member(path) else {
            return Err(Error::file("open", path)(io::Error::new(
                ErrorKind::NotFound,
                "the archive does not hold it",
            )));
        };
        let Member { offset_bytes, bytes, .. } = *member;
        let there = self.file_bytes.saturating_sub(offset_bytes);
        if bytes > there {
            let inside = member.path.display();
            let why = format!("{inside} should have {bytes} bytes, but has {there}");
            return Err(Error::truncated(&self.path, &why));
        }
        let file = self.file.try_clone().map_err(Error::file("open", path))?;
        Ok(Part { file, offset_bytes, bytes })
    }
}

/// The headers of an archive, whose content is passed over: names of any length are read into memory.
struct Headers<'a> {
    file: &'a File,
    left_bytes: usize,
}

impl Read for Headers<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left_bytes == 0 {
            return Err(io::Error::new(ErrorKind::InvalidData, "its names are longer than those of any"));
        }
        let most = out.len().min(self.left_bytes);
        let read = self.file.read(&mut out[..most])?;
        self.left_bytes -= read;
        Ok(read)
    }
}

impl Seek for Headers<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

fn has_archive_name(path: &Path) -> bool {
    plain_name(path).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("sigmf"))
}

/// A recording has two files: this leaves room for others.
const MEMBERS_MAX: usize = 100_000;
const HEADERS_BYTES_MAX: usize = 256 << 20;
/// Recordings that an error lists.
const NAMES_MAX: usize = 10;
