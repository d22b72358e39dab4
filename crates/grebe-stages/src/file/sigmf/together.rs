//! Recordings of several streams that are made together: each is one of its own, and a collection ties them and says how their times relate.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::checksum::Sum;
use super::layout::{BY_TIME, Base, Collection, CollectionFile, Stream, VERSION};
use super::reader::collected;
use super::staged::Staged;
use crate::error::Error;
use crate::file::output::NameLock;
use crate::file::sample_file::{SampleFile, common_clock};

/// The names of recordings that are made together, and of what ties them: `NAME_1.sigmf-meta`, `NAME_2.sigmf-meta`, ..., and
/// `NAME.sigmf-collection`.
///
/// ```
/// use grebe_stages::{RecordingSet, SampleFile, SigmfSettings, SigmfWriter};
///
/// let folder = tempfile::tempdir()?;
/// let set = RecordingSet::create(&folder.path().join("both"), false)?;
/// let mut made = Vec::new();
/// for number in 1..=2 {
///     let settings = SigmfSettings { sample_rate_hz: 1e3, ..SigmfSettings::default() };
///     let mut writer = SigmfWriter::create(&set.recording(number), &settings)?;
///     writer.write(0, &[&[1i16; 5_000]])?;
///     writer.finish()?;
///     made.push(set.recording(number));
/// }
/// let both = SampleFile::open(&set.tie(&made)?)?;
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
    /// [`Error::Field`] for what no recording can be called, [`Error::Busy`] while another recorder has the name, [`Error::Exists`] where a
    /// recording or collection of that name is there and must not be overwritten, [`Error::File`] where nothing can be created there.
    pub fn create(path: &Path, overwrite: bool) -> Result<Self, Error> {
        let base = Base::to_record(path)?;
        let name = base.lock()?;
        match [base.meta(), base.collection()].into_iter().find(|path| path.exists()) {
            Some(path) if !overwrite => Err(Error::Exists { path }),
            _ => Ok(Self { base, _name: name }),
        }
    }

    /// What one of them is called, numbered from 1.
    pub fn recording(&self, number: usize) -> PathBuf {
        self.base.numbered(number).meta()
    }

    /// Writes the collection of the recordings that were made, and returns its path: whoever opens that has the channels of all, as far as
    /// all have samples of the same time. Each of them may be a collection, of its channels.
    ///
    /// # Errors
    /// Where one of them cannot be read, or the collection not be written.
    pub fn tie(&self, recordings: &[PathBuf]) -> Result<PathBuf, Error> {
        let files = recordings.iter().map(|path| SampleFile::open(path)).collect::<Result<Vec<_>, _>>()?;
        let clock = common_clock(&files);
        let mut streams = Vec::new();
        for (path, file) in recordings.iter().zip(&files) {
            let axis = clock.and_then(|clock| file.axis_by(clock, 0));
            for base in collected(path)? {
                streams.push(Stream::Object { name: base.name(), hash: Some(hash(&base.meta())?), axis });
            }
        }
        let collection = Collection {
            version: VERSION.into(),
            extensions: vec![
                json!({ "name": "grebe", "version": env!("CARGO_PKG_VERSION"), "optional": true }),
            ],
            alignment: Some(BY_TIME.to_owned()),
            streams,
            ..Collection::default()
        };
        let mut staged = Staged::default();
        staged.json(self.base.collection(), &CollectionFile { collection }, true)?;
        staged.commit()?;
        Ok(self.base.collection())
    }
}

fn hash(path: &Path) -> Result<String, Error> {
    let failed = Error::file("open", path);
    let file = File::open(path).map_err(&failed)?;
    let bytes = file.metadata().map_err(&failed)?.len();
    Sum::new(file).finish(bytes).map_err(failed)
}
