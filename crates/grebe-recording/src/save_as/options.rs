//! How a recording is written as another kind of file.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// How a recording is written as another kind of file.
#[derive(Debug, Clone, Default)]
pub struct SaveOptions {
    /// Replaces a file of the same name.
    pub overwrite: bool,
    /// Treatment of gaps in a file that cannot mark missing samples.
    pub gaps: GapPolicy,
    /// Start each line of a text with the time of its sample, in seconds since the first.
    pub times: bool,
    /// The original source, if the recording's own files have temporary names: identifies an interrupted
    /// file.
    pub made_from: Option<PathBuf>,
    /// Description of the conversion. Another conversion does not continue the file.
    pub made_as: Option<String>,
    /// Counts the samples per channel written, for a progress display.
    pub done_samples: Arc<AtomicU64>,
    /// Samples that an interrupted run had already written.
    pub resumed_samples: Arc<AtomicU64>,
}

/// Treatment of missing samples in a file that cannot mark them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GapPolicy {
    /// No such file is written.
    #[default]
    Refuse,
    /// Write zeros, so that later samples keep their time.
    Zeros,
    /// Join the samples on both sides of the gap.
    Close,
}
