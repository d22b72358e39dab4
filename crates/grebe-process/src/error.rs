use std::path::PathBuf;

/// Why samples cannot be made or processed. The message names the setting or the samples, and says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what the fields of its variant are")]
pub enum Error {
    /// A setting is out of its range.
    #[error("{what} is {got}: {must}")]
    Setting { what: &'static str, got: String, must: &'static str },
    /// Text that names no waveform.
    #[error("'{name}' {reason}")]
    Name { name: String, reason: String },
    /// Samples were asked for, or handed over, in a shape that does not fit.
    #[error("{what}: {got} where {expected} is expected")]
    Shape { what: &'static str, got: u64, expected: u64 },
    /// Samples that a stage cannot work on, whatever their format is converted to.
    #[error("{what}")]
    Takes { what: String },
    /// Samples of another format, or of another channel, than a stage takes.
    #[error(transparent)]
    Samples(#[from] grebe_frame::ChannelError),
    /// A stream that became another in the middle of what is made of it.
    #[error("the stream changed from {was} to {is}: it ends before that, start again for the new one")]
    Changed { was: String, is: String },
    /// A file that holds no taps of a filter.
    #[error("{}: {what}", path.display())]
    Taps { path: PathBuf, what: String },
}
