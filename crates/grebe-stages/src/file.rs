//! Recordings: how they are read, played and written. A new format is a row in [`FORMATS`] and a module beside `wav`.

mod annotation_fields;
mod bytes;
mod csv;
mod disk;
mod encoding;
mod folder;
mod headerless;
mod heard_labels;
mod labels;
mod npy;
mod output;
mod play;
mod raw;
mod read_ahead;
mod record;
mod ring;
mod rotate;
mod said;
mod sample_file;
mod save_as;
mod sigmf;
mod summary;
mod wav;

use std::path::{Path, PathBuf};

use crate::error::Error;

pub(crate) use csv::CsvWriter;
pub(crate) use encoding::{Encoding, Order};
pub(crate) use headerless::format_named;
pub(crate) use play::{FileSource, PlayOptions, Schedule};
pub(crate) use record::{RecordOptions, SigmfSink};
pub(crate) use ring::make_folder as make_ring_folder;
pub use {
    csv::{CsvOptions, import_csv},
    disk::{DiskMeasure, DiskReport, WriteWay, measure_disk},
    folder::newest_recording,
    output::write_whole,
    record::LeftOut,
    ring::{RingLabel, RingLength, RingPlan, RingSaved, RingStretch, ring_parts, save_ring},
    rotate::Rotate,
    sample_file::{Alignment, Annotation, Block, Gap, SampleFile, Segment},
    save_as::{GapPolicy, SaveOptions},
    sigmf::{
        BegunSet, RecordingSet, Repaired, SigmfSettings, SigmfSummary, SigmfWriter, Verified, repair, verify,
    },
    summary::{Extremes, LevelSums, SummarizedFile, Summary, SummaryState},
};

/// A format of recordings.
struct Format {
    name: &'static str,
    /// How its files end, in lower case.
    extensions: &'static [&'static str],
    open: fn(&Path) -> Result<SampleFile, Error>,
}

const FORMATS: [Format; 3] = [
    Format {
        name: "SigMF",
        extensions: &["sigmf-meta", "sigmf-data", "sigmf-collection", "sigmf"],
        open: sigmf::open,
    },
    Format { name: "WAV", extensions: &["wav", "wave"], open: wav::open },
    Format { name: "NumPy", extensions: &["npy"], open: npy::open },
];

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
        match format_of(path) {
            Some(format) => (format.open)(path),
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
        if Self::format_name(path) == Some("SigMF") {
            return sigmf::check_annotatable(path);
        }
        let what = "annotations are written into SigMF only: convert it to NAME.sigmf-meta first".to_owned();
        Err(Error::Field { path: path.into(), what })
    }

    /// The name of the format that a path says: `SigMF`, `WAV`, `raw`; `None` where it is none that can be opened.
    pub fn format_name(path: &Path) -> Option<&'static str> {
        let raw = || headerless::is_raw(path).then_some("raw");
        format_of(path).map(|format| format.name).or_else(raw)
    }
}

/// Whether the name is that of a recording.
pub(crate) fn is_recording(path: &Path) -> bool {
    format_of(path).is_some() || headerless::is_raw(path)
}

/// Whether the name is that of comma-separated values, which [`import_csv`] reads.
pub fn is_csv(path: &Path) -> bool {
    let (path, _) = headerless::split(path);
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
}

/// Whether the name is that of a NumPy array.
fn is_npy(path: &Path) -> bool {
    format_of(path).is_some_and(|format| format.name == "NumPy")
}

/// Whether the name is that of a WAV file.
fn is_wav(path: &Path) -> bool {
    format_of(path).is_some_and(|format| format.extensions.contains(&"wav"))
}

fn format_of(path: &Path) -> Option<&'static Format> {
    let (path, query) = headerless::split(path);
    let extension = path.extension()?.to_string_lossy().to_ascii_lowercase();
    // Of these, only an array's name says what the file does not.
    let may_ask = |format: &&Format| query.is_none() || format.name == "NumPy";
    FORMATS.iter().filter(may_ask).find(|format| format.extensions.contains(&extension.as_str()))
}
