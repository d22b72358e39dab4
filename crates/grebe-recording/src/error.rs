use std::io;
use std::path::{Path, PathBuf};

pub(crate) use grebe_process::Error as ProcessError;

/// Reason why a recording cannot be read or written. The message names the path and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what the fields of its variant are")]
pub enum Error {
    /// A file cannot be opened, read or created.
    #[error("cannot {action} {}: {source}{}", path.display(), what_to_do(source, path))]
    File { action: &'static str, path: PathBuf, source: io::Error },
    /// A file cannot be written any further.
    #[error("cannot write {}: {source}{}{}", path.display(), what_to_do(source, path), what_is_good(*good_samples))]
    Write { path: PathBuf, source: io::Error, good_samples: u64 },
    /// A recording of this name is there already.
    #[error("{} exists already: choose another name, or remove it", path.display())]
    Exists { path: PathBuf },
    /// Another recorder writes a recording of this name.
    #[error("another process is writing {}: choose another name", path.display())]
    Busy { path: PathBuf },
    /// Insufficient room on the disk.
    #[error(
        "{} has room for {}, and {what} takes up to {}: keep less, or on another disk",
        path.display(), size(*free_bytes), size(*needs_bytes)
    )]
    Room { path: PathBuf, what: &'static str, needs_bytes: u64, free_bytes: u64 },
    /// A file without samples.
    #[error("{} holds no samples", path.display())]
    Empty { path: PathBuf },
    /// A file that contradicts its name or its metadata: truncated, changed, of another format.
    #[error("{} {what}", path.display())]
    Content { path: PathBuf, what: String },
    /// An invalid name, or an invalid field of a file.
    #[error("{}: {what}", path.display())]
    Field { path: PathBuf, what: String },
    /// A stream that became another in the middle of a recording.
    #[error(
        "the stream changed from {was} to {is}: the recording ends before it, record the new stream on its own"
    )]
    Changed { was: String, is: String },
    /// The work was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// Samples of another format, or of another channel, than the recording has.
    #[error(transparent)]
    Samples(#[from] grebe_frame::ChannelError),
    /// Samples or settings that do not fit.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

impl Error {
    /// Maps the system's error if a file cannot be opened, read or created: `map_err(Error::file("open", path))`.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { action, path: path.clone(), source }
    }

    /// Whether the disk is full, the user's quota is used up, or the file has reached its maximum size.
    pub fn is_full(&self) -> bool {
        match self {
            Self::File { source, .. } | Self::Write { source, .. } => {
                use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
                matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge)
            }
            Self::Room { .. } => true,
            _ => false,
        }
    }

    /// An invalid value of a field.
    pub(crate) fn field(path: &Path, field: &str, got: impl std::fmt::Display, must: &str) -> Self {
        Self::Field { path: path.into(), what: format!("{field} is {got}: {must}") }
    }

    pub(crate) fn truncated(path: &Path, why: &str) -> Self {
        Self::Content { path: path.into(), what: format!("is truncated: {why}") }
    }
}

/// How much of a recording is good that cannot be written any further.
fn what_is_good(samples: u64) -> String {
    if samples == 0 {
        String::new()
    } else {
        format!("; the {samples} samples per channel before that are good")
    }
}

/// Bytes as disks are sold.
fn size(bytes: u64) -> String {
    if bytes < 1_000_000_000 {
        format!("{:.1} MB", bytes as f64 / 1e6)
    } else {
        format!("{:.1} GB", bytes as f64 / 1e9)
    }
}

/// The remedy for a system error whose own text does not name it.
fn what_to_do(error: &io::Error, path: &Path) -> String {
    #[cfg(unix)]
    if error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) {
        return "; this process may have no more: raise its limit, for example with ulimit -n 1024"
            .to_owned();
    }
    match (error.kind(), path.parent()) {
        (io::ErrorKind::FileTooLarge, _) => {
            "; its file system (FAT has 4 GB) or this user's limit (ulimit -f) allows no larger one: record in parts (--rotate 2G)"
                .to_owned()
        }
        (io::ErrorKind::NotFound, Some(folder)) if !folder.as_os_str().is_empty() && !folder.exists() => {
            format!("; the folder {} does not exist", folder.display())
        }
        _ => String::new(),
    }
}
