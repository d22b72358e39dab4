//! Recordings: how they are read, played and written. A new format is a row in [`FORMATS`] and a module beside `wav`.

mod encoding;
mod headerless;
mod output;
mod play;
mod raw;
mod record;
mod sample_file;
mod save_as;
mod sigmf;
mod wav;

use std::path::Path;

use crate::error::Error;

pub(crate) use play::{FileSource, PlayOptions};
pub(crate) use record::{RecordOptions, SigmfSink};
pub use {
    output::write_whole,
    sample_file::{Annotation, Block, SampleFile, Segment},
    sigmf::{SigmfSettings, SigmfSummary, SigmfWriter},
};

/// A format of recordings.
struct Format {
    /// How its files end, in lower case.
    extensions: &'static [&'static str],
    open: fn(&Path) -> Result<SampleFile, Error>,
}

const FORMATS: [Format; 2] = [
    Format { extensions: &["sigmf-meta", "sigmf-data", "sigmf-collection", "sigmf"], open: sigmf::open },
    Format { extensions: &["wav", "wave"], open: wav::open },
];

/// What is said of a file of another format.
const KNOWN: &str = ".sigmf-meta, .sigmf-data, .sigmf-collection, .sigmf, .wav and raw samples (.cf32, .cu8, .s16, ... or x.bin?format=cf32)";

impl SampleFile {
    /// Opens a recording: `.sigmf-meta`, `.sigmf-data`, `.sigmf-collection`, a `.sigmf` archive or `.wav`. A recording of several in
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
            None => Err(Error::Field {
                path: path.into(),
                what: format!("unknown kind of file; known are {KNOWN}"),
            }),
        }
    }
}

/// Whether the name is that of a recording.
pub(crate) fn is_recording(path: &Path) -> bool {
    format_of(path).is_some() || headerless::is_raw(path)
}

/// Whether the name is that of a WAV file.
fn is_wav(path: &Path) -> bool {
    format_of(path).is_some_and(|format| format.extensions.contains(&"wav"))
}

fn format_of(path: &Path) -> Option<&'static Format> {
    let extension = path.extension()?.to_string_lossy().to_ascii_lowercase();
    FORMATS.iter().find(|format| format.extensions.contains(&extension.as_str()))
}
