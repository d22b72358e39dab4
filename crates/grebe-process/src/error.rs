use std::path::PathBuf;

/// Error in the generation or processing of samples. The message names the setting or the samples, and a remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what the fields of its variant are")]
pub enum Error {
    /// Setting out of range.
    #[error("{what} is {got}: {must}")]
    Setting { what: &'static str, got: String, must: &'static str },
    /// Unknown waveform.
    #[error("'{name}': {reason}")]
    Name { name: String, reason: String },
    /// Wrong shape of requested or given samples.
    #[error("{what}: {got} where {expected} is expected")]
    Shape { what: &'static str, got: u64, expected: u64 },
    /// Samples that a stage cannot process, even after a conversion of their format.
    #[error("{what}")]
    Takes { what: String },
    /// Samples of another format or channel than the stage accepts.
    #[error(transparent)]
    Samples(#[from] grebe_frame::ChannelError),
    /// Change of a stream in the middle of an output.
    #[error("the stream changed from {was} to {is}: it ends before that, start again for the new one")]
    Changed { was: String, is: String },
    /// File without valid filter taps.
    #[error("{}: {what}", path.display())]
    Taps { path: PathBuf, what: String },
}
