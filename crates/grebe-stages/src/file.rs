//! Recordings: which formats there are, and how they are read, played and written.

mod open;
mod play;
mod raw;
mod record;
mod sample_file;
mod sigmf;
mod wav;

pub(crate) use open::is_recording;
pub(crate) use play::{FileSource, PlayOptions};
pub(crate) use record::{RecordOptions, SigmfSink};
pub use {
    sample_file::{Block, SampleFile, Segment},
    sigmf::{SigmfSettings, SigmfSummary, SigmfWriter},
};
