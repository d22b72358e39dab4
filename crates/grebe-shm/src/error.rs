//! Errors of this crate.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Error of a stream in shared memory. The message names the stream, and a remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what the fields of its variant are")]
pub enum Error {
    /// Invalid stream name.
    #[error(
        "'{0}' cannot name a stream: use 1 to 64 letters, digits, '-', '_' and '.', the first a letter or digit"
    )]
    Name(String),
    /// Setting out of range.
    #[error("{what} is {got}: {must}")]
    Setting { what: &'static str, got: u64, must: &'static str },
    /// The directory of the control sockets is unusable.
    #[error("cannot use {} for streams in shared memory: {why}", path.display())]
    Directory { path: PathBuf, why: String },
    /// A producer with this name exists already.
    #[error("a stream '{0}' exists already: choose another name, or stop its producer")]
    InUse(String),
    /// No producer with this name exists.
    #[error("the stream '{name}' does not exist: its producer has not started, or has ended ({})", path.display())]
    NoStream { name: String, path: PathBuf },
    /// The producer refuses this consumer.
    #[error("the producer of '{name}' refuses: {reason}")]
    Refused { name: String, reason: String },
    /// The producer disconnected this consumer.
    #[error("the producer of '{name}' has cut this consumer off: {reason}")]
    CutOff { name: String, reason: String },
    /// The producer ended without an end of stream.
    #[error("producer gone: '{0}' ended without an end of stream; everything before is complete")]
    ProducerGone(String),
    /// The producer did not answer.
    #[error(
        "the producer of '{name}' did not answer within {timeout:?}: it is stopped, or speaks another protocol"
    )]
    Silent { name: String, timeout: Duration },
    /// The producer's shared data is invalid.
    #[error("the shared memory of '{name}' is damaged: {what}")]
    Damaged { name: String, what: String },
    /// Batch outside the stream's own pool.
    #[error("a batch of another pool cannot be lent as '{0}': copy it into a batch of the stream's own pool")]
    ForeignBatch(String),
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    System { action: &'static str, source: io::Error },
    /// This platform has no shared memory of this kind.
    #[error("shared memory (shm://) needs Linux, Windows or macOS: use udp:// or pipe:")]
    Platform,
}

impl Error {
    /// Names the failed action, as a verb.
    #[cfg(not(loom))]
    pub(crate) fn tried<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Error::System { action, source: error.into() }
    }
}
