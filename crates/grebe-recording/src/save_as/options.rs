//! How a recording is written as another kind of file.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// How a recording is written as another kind of file.
#[derive(Debug, Clone, Default)]
pub struct SaveOptions {
    /// Replaces a file of the same name.
    pub overwrite: bool,
    /// What becomes of gaps in a file that cannot say where samples are missing.
    pub gaps: GapPolicy,
    /// Whether the lines of a text begin with the time of their sample, in seconds behind the first.
    pub times: bool,
    /// What the recording itself was made of, where its own files have names of the moment: by that a file that was begun is known again.
    pub made_from: Option<PathBuf>,
    /// Counts the samples per channel that were written, for whoever shows it.
    pub done_samples: Arc<AtomicU64>,
    /// How many of them somebody wrote before who was interrupted.
    pub resumed_samples: Arc<AtomicU64>,
}

/// What becomes of missing samples in a file that cannot say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GapPolicy {
    /// No such file is written.
    #[default]
    Refuse,
    /// Zeros stand for them, so that what follows keeps its time.
    Zeros,
    /// What follows them follows at once.
    Close,
}
