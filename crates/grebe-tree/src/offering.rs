//! Offers for a receiver without a login here: files are listed in advance, and nothing else is sent.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossbeam_channel::bounded;
use grebe_packet::Cancel;

use crate::directories::{Directories, Listed, Seen};
use crate::error::{Error, Result};
use crate::exclude::Exclude;
use crate::name::printable;
use crate::options::Options;
use crate::progress::Progress;
use crate::scan::{Scanned, Scanner, means_contents};
use crate::wire::{EntryKind, OfferedNames, TOP};

/// Contents of an offer: the names at the top for display, and the amount below them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offer {
    /// Names at the top, with control characters escaped.
    pub names: Vec<String>,
    /// Total number of files.
    pub files: u64,
    /// Total bytes.
    pub bytes: u64,
}

/// Decides whether to accept an offer. It may take its time, because the sender waits.
pub type Accept = dyn Fn(&Offer) -> bool + Send + Sync;

/// Files and directories listed in advance, for [`send_offer`](crate::send_offer).
///
/// Skips links in directories, devices, sockets and named pipes. Later also skips files that were replaced or
/// added after the listing.
#[derive(Debug)]
pub struct Offering {
    pub(crate) sources: Vec<PathBuf>,
    pub(crate) options: Options,
    pub(crate) names: OfferedNames,
    pub(crate) listed: Arc<Seen>,
}

impl Offering {
    /// Lists the sources and everything below them, except for the patterns in [exclude](Options::exclude). A
    /// source that is a link stands for its target.
    ///
    /// # Errors
    /// [`Error::Source`] and [`Error::File`] for a source that cannot be sent, [`Error::Pattern`],
    /// [`Error::Cancelled`].
    pub fn look(sources: &[PathBuf], exclude: &[String], cancel: &Cancel) -> Result<Self> {
        let exclude = exclude.to_vec();
        let options = Options { recursive: true, short_hashes: true, exclude, ..Options::default() };
        let patterns = Exclude::new(&options.exclude)?;
        let sources = sources.iter().map(|source| named(source)).collect::<Result<Vec<_>>>()?;
        let directories = Directories::that_lists(Listed::noting());
        let (progress, mut names, mut why_not) =
            (Progress::default(), OfferedNames::default(), None::<String>);
        let is_all = std::thread::scope(|scope| {
            let (names_in, scanned) = bounded(8);
            let scanner = Scanner::new(&options, patterns, &directories, &progress, cancel, names_in);
            let sources = &sources;
            scope.spawn(move || scanner.run(sources));
            for scanned in scanned {
                match scanned {
                    Scanned::Names(found) => {
                        for one in found.found {
                            if let EntryKind::File { bytes, .. } = one.entry.kind {
                                names.files += 1;
                                names.bytes += bytes;
                            }
                            if found.directory == TOP {
                                names.tops.push(one.entry.name.into());
                            }
                        }
                    }
                    Scanned::LeftOut { why, .. } => {
                        why_not.get_or_insert(why);
                    }
                    Scanned::Done { .. } => return true,
                }
            }
            false
        });
        let first = || sources.first().cloned().unwrap_or_default();
        if !is_all {
            return Err(Error::Cancelled);
        }
        if names.tops.is_empty() {
            let why = why_not.unwrap_or_else(|| "nothing was named".to_owned());
            return Err(Error::File { action: "send", path: first(), source: io::Error::other(why) });
        }
        if !names.fits() {
            return Err(Error::Source { path: first(), why: "too many are named: name their directory" });
        }
        Ok(Self { sources, options, names, listed: Arc::new(directories.listed().take()) })
    }

    /// Contents of the offer for display.
    pub fn offer(&self) -> Offer {
        (&self.names).into()
    }
}

impl From<&OfferedNames> for Offer {
    fn from(names: &OfferedNames) -> Self {
        let shown = names.tops.iter().map(|name| printable(name)).collect();
        Self { names: shown, files: names.files, bytes: names.bytes }
    }
}

/// Source with the name under which it is sent.
fn named(source: &Path) -> Result<PathBuf> {
    let failed = |cause| Error::File { action: "send", path: source.to_path_buf(), source: cause };
    let metadata = source.metadata().map_err(failed)?;
    if !metadata.is_file() && !metadata.is_dir() {
        return Err(failed(io::Error::other("it is neither a file nor a directory")));
    }
    if !means_contents(source) {
        return Ok(source.to_path_buf());
    }
    match source.file_name() {
        // A trailing slash has no meaning here, because every source keeps its name.
        Some(name) => Ok(source.with_file_name(name)),
        None => {
            let path = source.canonicalize().map_err(failed)?;
            if path.file_name().is_none() {
                return Err(Error::Source { path, why: "it has no name: name what is in it" });
            }
            Ok(path)
        }
    }
}
