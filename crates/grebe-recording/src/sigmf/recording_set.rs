//! Recordings of several streams at the same time: one per stream, and a collection that relates their times.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::json;

use super::archive::Files;
use super::collection::sum_of;
use super::layout::{BY_TIME, Base, Collection, CollectionFile, Stream, VERSION};
use super::metadata_text::read_json;
use super::reader::collected;
use super::staged::Staged;
use crate::error::Error;
use crate::output::{NameLock, write_whole};
use crate::sample_file::{SampleFile, common_clock};

/// The names of recordings made together, and of their collection: `NAME_1.sigmf-meta`, `NAME_2.sigmf-meta`,
/// ..., and `NAME.sigmf-collection`.
///
/// ```
/// use grebe_recording::{RecordingSet, SampleFile, SigmfSettings, SigmfWriter};
///
/// let folder = tempfile::tempdir()?;
/// let set = RecordingSet::create(&folder.path().join("both"), false)?;
/// let names = [set.recording(1), set.recording(2)];
/// let mut begun = set.begin(&names)?; // who records for long ties them as they begin
/// let mut made = Vec::new();
/// for number in 1..=2 {
///     let settings = SigmfSettings { sample_rate_hz: 1e3, ..SigmfSettings::default() };
///     let mut writer = SigmfWriter::create(&set.recording(number), &settings)?;
///     writer.write(0, &[&[1i16; 5_000]])?;
///     writer.finish()?;
///     made.push(set.recording(number));
///     assert_eq!(begun.tie()?, number == 2);
/// }
/// let both = SampleFile::open(set.tie(&made)?)?;
/// assert_eq!(both.channels(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RecordingSet {
    base: Base,
    _name: NameLock,
}

impl RecordingSet {
    /// Takes the name: `path` is it with or without one of SigMF's extensions.
    ///
    /// # Errors
    /// [`Error::Field`] for an invalid name, [`Error::Busy`] while another recorder has the name,
    /// [`Error::Exists`] if a recording or collection of that name exists and must not be overwritten,
    /// [`Error::File`] if nothing can be created there.
    pub fn create(path: &Path, overwrite: bool) -> Result<Self, Error> {
        let base = Base::to_record(path)?;
        let name = base.lock()?;
        match [base.meta(), base.collection()].into_iter().find(|path| path.exists()) {
            Some(path) if !overwrite => Err(Error::Exists { path }),
            _ => Ok(Self { base, _name: name }),
        }
    }

    /// Path of one of them, numbered from 1.
    pub fn recording(&self, number: usize) -> PathBuf {
        self.base.numbered(number).meta()
    }

    /// Call before the first of these recordings begins: a recorder cut off later leaves a collection of
    /// those that were [tied](BegunSet::tie) by then. An existing collection is removed, because it has sums
    /// of files that will be replaced.
    ///
    /// # Errors
    /// If an existing collection cannot be removed.
    pub fn begin(&self, recordings: &[PathBuf]) -> Result<BegunSet<'_>, Error> {
        let recordings = recordings.iter().map(|path| Beginning {
            path: path.clone(),
            before: written(path),
            has_begun: false,
        });
        let recordings = recordings.collect();
        let path = self.base.collection();
        let replaced = fs::read(&path).ok();
        if replaced.is_some() {
            fs::remove_file(&path).map_err(Error::file("replace", &path))?;
        }
        Ok(BegunSet { set: self, recordings, tied: 0, replaced })
    }

    /// Writes the collection of these recordings, and returns its path. Opening it gives the channels of all,
    /// over the time that all have samples. Each recording may itself be a collection of its channels.
    ///
    /// # Errors
    /// Where one of them cannot be read, or the collection not be written.
    pub fn tie(&self, recordings: &[PathBuf]) -> Result<PathBuf, Error> {
        write(&self.base, recordings, Sums::Whole)?;
        Ok(self.base.collection())
    }
}

/// Recordings that are being made together.
#[derive(Debug)]
pub struct BegunSet<'a> {
    set: &'a RecordingSet,
    recordings: Vec<Beginning>,
    /// How many of them the collection has.
    tied: usize,
    /// The previous file of that name.
    replaced: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Beginning {
    path: PathBuf,
    /// The previous file of that name.
    before: Written,
    has_begun: bool,
}

/// The metadata of a recording, and when they were written.
type Written = Vec<(Base, Option<SystemTime>)>;

impl BegunSet<'_> {
    /// Writes the collection of the recordings that are readable by now, if their number has grown; returns
    /// `true` once it has all. It has no sums, because their metadata change, so it stays valid. Call it
    /// repeatedly.
    ///
    /// # Errors
    /// Where the collection cannot be written.
    pub fn tie(&mut self) -> Result<bool, Error> {
        for recording in self.recordings.iter_mut().filter(|recording| !recording.has_begun) {
            let Beginning { path, before, .. } = recording;
            recording.has_begun = written(path) != *before && SampleFile::open(path).is_ok();
        }
        let begun = self.recordings.iter().filter(|recording| recording.has_begun);
        let begun: Vec<PathBuf> = begun.map(|recording| recording.path.clone()).collect();
        if begun.len() > self.tied {
            write(&self.set.base, &begun, Sums::None)?;
            self.tied = begun.len();
        }
        Ok(self.tied == self.recordings.len())
    }

    /// For recordings that never began: an existing file of that name stays.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn put_back(self) -> Result<(), Error> {
        let path = self.set.base.collection();
        match self.replaced {
            Some(replaced) if self.tied == 0 => {
                write_whole(&path, &replaced).map_err(Error::file("create", &path))
            }
            _ => Ok(()),
        }
    }
}

/// Sums in a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sums {
    /// No sums, while recorders are running.
    None,
    /// Sums of each recording's complete metadata, and the time of its first sample.
    Whole,
}

/// Writes a collection of recordings aligned by time.
pub(super) fn write(base: &Base, recordings: &[PathBuf], sums: Sums) -> Result<(), Error> {
    let mut streams = Vec::new();
    let files = match sums {
        Sums::None => Vec::new(),
        Sums::Whole => recordings.iter().map(SampleFile::open).collect::<Result<Vec<_>, _>>()?,
    };
    let clock = common_clock(&files);
    for (number, path) in recordings.iter().enumerate() {
        let axis = clock.and_then(|clock| files.get(number)?.axis_by(clock, 0));
        for base in collected(path)? {
            let hash = match sums {
                Sums::None => None,
                Sums::Whole => Some(sum_of(&base).map_err(Error::file("open", &base.meta()))?),
            };
            streams.push(Stream::Object { name: base.name(), hash, axis });
        }
    }
    // Keeps fields that a user or another program added.
    let before = read_json::<CollectionFile>(&Files::Folder, &base.collection());
    let Collection { description, extensions: others, rest, .. } =
        before.map_or_else(|_| Collection::default(), |before| before.collection);
    let own = json!({ "name": EXTENSION, "version": env!("CARGO_PKG_VERSION"), "optional": true });
    let others = others.into_iter().filter(|other| other["name"] != EXTENSION);
    let collection = Collection {
        version: VERSION.into(),
        description,
        extensions: [own].into_iter().chain(others).collect(),
        alignment: Some(BY_TIME.to_owned()),
        streams,
        rest,
    };
    let mut staged = Staged::default();
    staged.json(base.collection(), &CollectionFile { collection }, true)?;
    staged.commit()
}

/// When the metadata of a recording were written, if they are there.
fn written(path: &Path) -> Written {
    let bases = collected(path).unwrap_or_default();
    let modified = |base: &Base| fs::metadata(base.meta()).and_then(|meta| meta.modified()).ok();
    bases.into_iter().map(|base| (base.clone(), modified(&base))).collect()
}

const EXTENSION: &str = "grebe";
