//! How each kind of recording is opened.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::kinds::{Kind, is_csv, is_recording, kind_of};
use crate::sample_file::{Annotation, SampleFile};
use crate::{folder, headerless, npy, sigmf, wav};

/// What is said of a file of another format.
const KNOWN: &str = ".sigmf-meta, .sigmf-data, .sigmf-collection, .sigmf, .wav, .npy and raw samples (.cf32, .cu8, .s16, ... or x.bin?format=cf32)";

impl SampleFile {
    /// Opens a recording: `.sigmf-meta`, `.sigmf-data`, `.sigmf-collection`, a `.sigmf` archive, `.wav` or `.npy`. A recording of several in
    /// an archive is named as if the archive were a folder: `x.sigmf/one/one.sigmf-meta`. Of raw samples the name says what they
    /// are: `x.cu8?rate=2.4M`, `x.bin?format=cf32&channels=2&frequency=100M`.
    ///
    /// # Errors
    /// An [`Error`] that names the file, where it is missing, empty, contradicts itself, or is of a kind that cannot be read. A
    /// truncated WAV opens as far as it goes, which a note says.
    pub fn open(path: &Path) -> Result<Self, Error> {
        match kind_of(path) {
            Some(Kind::SigMf) => sigmf::open(path),
            Some(Kind::Wav) => wav::open(path),
            Some(Kind::NumPy) => npy::open(path),
            None if headerless::is_raw(path) => headerless::open(path),
            None if is_csv(path) => {
                let what = "is text, which is read once: make a recording of it first (grebe convert x.csv x.sigmf-meta)";
                Err(Error::Content { path: path.into(), what: what.to_owned() })
            }
            None if path.is_dir() => Err(Error::Field { path: path.into(), what: folder::what_is_in(path) }),
            None => match Self::named(path) {
                Some(named) => sigmf::open(&named),
                None => Err(Error::Field {
                    path: path.into(),
                    what: format!("unknown kind of file; known are {KNOWN}"),
                }),
            },
        }
    }

    /// The file that opens a SigMF recording of this name, which may be without an extension, as a recorder takes it: the collection, where
    /// there is one, else the metadata. `None`: there is no such recording.
    pub fn named(path: &Path) -> Option<PathBuf> {
        let base = sigmf::Base::of(path);
        [base.collection(), base.meta()].into_iter().find(|file| file.is_file())
    }

    /// Opens a SigMF recording of which data files are still being copied: `place` knows where each of them lies until it has its name,
    /// of its full length. What has not come reads as whatever is there: ask who copies.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_arriving(
        path: &Path,
        place: &mut dyn FnMut(&Path) -> Option<PathBuf>,
    ) -> Result<Self, Error> {
        sigmf::open_arriving(path, place)
    }

    /// The recordings that a path names, to be opened one by one: all those of a `.sigmf` archive of several, else that of this
    /// [name](Self::named), else the path itself.
    ///
    /// # Errors
    /// An [`Error`] that names the archive, where it is none or cannot be read.
    pub fn recordings(path: &Path) -> Result<Vec<PathBuf>, Error> {
        match Self::named(path).filter(|_| !is_recording(path)) {
            Some(named) => Ok(vec![named]),
            None => sigmf::recordings(path),
        }
    }

    /// Adds annotations to a SigMF recording, or to each of a collection: its metadata are replaced in one step, its samples are not
    /// touched. How many were added; those that it has already are not.
    ///
    /// # Errors
    /// An [`Error`] that names the file: it is no SigMF recording in files of its own, its recorder is still at it or was cut off, or
    /// it cannot be written. What was there is as it was then.
    pub fn annotate(path: &Path, annotations: &[Annotation]) -> Result<usize, Error> {
        Self::check_annotatable(path)?;
        sigmf::annotate(path, annotations)
    }

    /// Whether [`annotate`](Self::annotate) can do so.
    ///
    /// # Errors
    /// As for [`annotate`](Self::annotate).
    pub fn check_annotatable(path: &Path) -> Result<(), Error> {
        if kind_of(path) == Some(Kind::SigMf) {
            return sigmf::check_annotatable(path);
        }
        let what = "annotations are written into SigMF only: convert it to NAME.sigmf-meta first".to_owned();
        Err(Error::Field { path: path.into(), what })
    }

    /// Whether a recorder has the name of this SigMF recording now.
    pub fn has_recorder(path: &Path) -> bool {
        kind_of(path) == Some(Kind::SigMf) && sigmf::Base::of(path).is_locked()
    }

    /// The name of the format that a path says: `SigMF`, `WAV`, `raw`; `None` where it is none that can be opened.
    pub fn format_name(path: &Path) -> Option<&'static str> {
        let raw = || headerless::is_raw(path).then_some("raw");
        kind_of(path).map(Kind::name).or_else(raw)
    }
}
