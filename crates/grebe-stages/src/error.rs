//! What this crate refuses, and why.

use std::io;
use std::path::PathBuf;

/// Why a stream, a recording or a waveform cannot be had. The message names the address, the path or the setting, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file cannot be read to the place that was asked for.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file cannot be created, removed or renamed.
    #[error("cannot create {}: {source}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file cannot be written any further.
    #[error("cannot write {}: {source}; the {good_samples} samples per channel before that are good", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
        /// Samples per channel that stand in the file.
        good_samples: u64,
    },
    /// A recording of this name is there already.
    #[error("{} exists already: choose another name, or allow overwriting", path.display())]
    Exists {
        /// The file in the way.
        path: PathBuf,
    },
    /// The name does not say what kind of file it is.
    #[error("{}: unknown kind of file; known are {known}", path.display())]
    Kind {
        /// The file.
        path: PathBuf,
        /// The extensions that are known.
        known: &'static str,
    },
    /// A file is not well-formed JSON, or a field of it has the wrong type.
    #[error("{} is not valid metadata: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// A field of a file has a value that cannot be.
    #[error("{}: {field} is {got}: {must}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// The field.
        field: String,
        /// What it holds.
        got: String,
        /// What it must be, or what to do.
        must: &'static str,
    },
    /// A file is not what its name says.
    #[error("{} is no {expected} file: {why}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The kind of file it should be.
        expected: &'static str,
        /// What shows that it is not.
        why: &'static str,
    },
    /// A file without samples.
    #[error("{} holds no samples", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A file that ends too early.
    #[error("{} is truncated: {why}", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// What is missing, and what to do.
        why: String,
    },
    /// The data are not those the metadata were made for.
    #[error(
        "{} does not match core:sha512 in its metadata: it was truncated or changed; remove core:sha512 to read it as it is",
        path.display()
    )]
    Checksum {
        /// The data file.
        path: PathBuf,
    },
    /// Samples were asked for, or handed over, in a shape that does not fit.
    #[error("{what}: {got} where {expected} is expected")]
    Shape {
        /// What does not fit.
        what: &'static str,
        /// What was given.
        got: u64,
        /// What fits.
        expected: u64,
    },
    /// A setting is out of its range.
    #[error("{what} is {got}: {must}")]
    Setting {
        /// Name of the setting.
        what: &'static str,
        /// What was given.
        got: String,
        /// What it must be.
        must: &'static str,
    },
    /// Text that names no stream.
    #[error("'{uri}' {reason}")]
    Uri {
        /// What was written.
        uri: String,
        /// What is wrong with it, and how it is written.
        reason: String,
    },
    /// A host without an address.
    #[error("cannot find the host '{host}': {reason}")]
    Unresolved {
        /// The host.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// A name that is no waveform.
    #[error("'{name}' is no waveform: use sine, square, triangle, saw, chirp or noise")]
    Wave {
        /// What was given.
        name: String,
    },
    /// An address that cannot be listened on.
    #[error("cannot listen on {uri}: {source}")]
    Listen {
        /// The address.
        uri: String,
        /// Why.
        source: grebe_datagram::Error,
    },
    /// An address that cannot be sent to.
    #[error("cannot send to {uri}: {source}")]
    Send {
        /// The address.
        uri: String,
        /// Why.
        source: grebe_datagram::Error,
    },
    /// A stream in shared memory that cannot be made or read.
    #[error(transparent)]
    Shm(#[from] grebe_shm::Error),
    /// Standard input or output that is not there.
    #[error("{what} is closed: {source}")]
    Closed {
        /// Which of them.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The wait for a stream, or for its readers, was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// A stream whose sender has gone without an end of stream.
    #[error("nothing arrived for {timeout:?}: the sender is gone (it sent no end of stream)")]
    Idle {
        /// How long was waited.
        timeout: std::time::Duration,
    },
    /// A byte stream that is not frames back to back.
    #[error("the pipe carries no frame at byte {at}: {reason}")]
    Pipe {
        /// Bytes before the place.
        at: u64,
        /// Why it is none.
        reason: grebe_frame::Refusal,
    },
    /// A byte stream that ended within a frame.
    #[error("the pipe ended within a frame: {bytes} bytes of it arrived, at byte {at}")]
    PipeCut {
        /// Bytes before the frame.
        at: u64,
        /// Bytes of it that arrived.
        bytes: usize,
    },
    /// A frame that no chunk holds.
    #[error("a frame of {bytes} bytes: the largest is {most}")]
    FrameTooLarge {
        /// Its bytes.
        bytes: usize,
        /// The most that is taken.
        most: usize,
    },
    /// A stream that became another in the middle of a recording.
    #[error(
        "the stream changed from {was} to {is}: the recording ends before it, record the new stream on its own"
    )]
    Changed {
        /// What was recorded.
        was: String,
        /// What came then.
        is: String,
    },
}
