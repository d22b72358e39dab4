use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a stream, a recording or a waveform cannot be had. The message names the address, the path or the setting, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what the fields of its variant are")]
pub enum Error {
    /// A file cannot be opened, read or created.
    #[error("cannot {action} {}: {source}{}", path.display(), what_to_do(source))]
    File { action: &'static str, path: PathBuf, source: io::Error },
    /// A file cannot be written any further.
    #[error("cannot write {}: {source}{}{}", path.display(), what_to_do(source), what_is_good(*good_samples))]
    Write { path: PathBuf, source: io::Error, good_samples: u64 },
    /// A recording of this name is there already.
    #[error("{} exists already: choose another name, or remove it", path.display())]
    Exists { path: PathBuf },
    /// Another recorder writes a recording of this name.
    #[error("{} is being recorded by another: choose another name", path.display())]
    Busy { path: PathBuf },
    /// A disk without room for what is to be kept on it.
    #[error(
        "{} has room for {}, and {what} takes up to {}: keep less, or on another disk",
        path.display(), size(*free_bytes), size(*needs_bytes)
    )]
    Room { path: PathBuf, what: &'static str, needs_bytes: u64, free_bytes: u64 },
    /// A file without samples.
    #[error("{} holds no samples", path.display())]
    Empty { path: PathBuf },
    /// A file is not what its name or its metadata say: truncated, changed, of another format.
    #[error("{} {what}", path.display())]
    Content { path: PathBuf, what: String },
    /// A name or a field of a file cannot be read, or says what cannot be.
    #[error("{}: {what}", path.display())]
    Field { path: PathBuf, what: String },
    /// Samples were asked for, or handed over, in a shape that does not fit.
    #[error("{what}: {got} where {expected} is expected")]
    Shape { what: &'static str, got: u64, expected: u64 },
    /// Samples of another format, or of another channel, than a stage takes.
    #[error(transparent)]
    Samples(#[from] grebe_frame::ChannelError),
    /// A stream that receivers of the first GFH2 do not know.
    #[error(
        "the stream is {format} in {channels} channels, and wire=gfh2 is i16 in 1 to 8: put convert or select before it, or leave wire=gfh2 out"
    )]
    Wire { format: grebe_frame::SampleFormat, channels: u32 },
    /// Samples that a stage cannot work on, whatever their format is converted to.
    #[error("{what}")]
    Takes { what: String },
    /// A setting is out of its range.
    #[error("{what} is {got}: {must}")]
    Setting { what: &'static str, got: String, must: &'static str },
    /// Text that names no stream, or no waveform.
    #[error("'{name}' {reason}")]
    Name { name: String, reason: String },
    /// A host without an address.
    #[error("cannot find the host '{host}': {reason}")]
    Unresolved { host: String, reason: String },
    /// An address that cannot be listened on, or sent to.
    #[error("cannot {action} {uri}: {source}")]
    Udp { action: &'static str, uri: String, source: grebe_datagram::Error },
    /// A host that cannot be connected to, or an address that cannot be listened on.
    #[error("cannot {action} {uri}: {source}")]
    Tcp { action: &'static str, uri: String, source: io::Error },
    /// A device of this machine that cannot be used.
    #[error("cannot {action} {name}: {source}{advice}")]
    Device { action: &'static str, name: String, source: io::Error, advice: &'static str },
    /// Somebody else at the other end than its name says.
    #[error("{uri} {what}")]
    Peer { uri: String, what: &'static str },
    /// A stream that is not what a sink without headers was told.
    #[error(
        "the stream is {format} in {channels} channels, and the sink was told {wanted}: say so in its name, or put convert or select before it"
    )]
    Raw { format: grebe_frame::SampleFormat, channels: u32, wanted: String },
    /// A stream of VITA-49 packets whose samples cannot be taken.
    #[error("{stream} {what}")]
    Vita49 { stream: String, what: String },
    /// A radio behind SoapySDR that cannot be opened, set or started.
    #[error("cannot {action} {uri}: {why}")]
    Soapy { action: String, uri: String, why: String },
    /// A device that went away while it was used.
    #[error(
        "{uri} has gone: {why}; what came until then is good, and with reconnect in its name grebe waits for it"
    )]
    DeviceGone { uri: String, why: String },
    /// A library that is loaded when it is used, and is not on this machine.
    #[error("{what} needs {library}, which cannot be loaded ({why}): {install}")]
    Library { what: &'static str, library: &'static str, why: String, install: &'static str },
    /// A stream in shared memory that cannot be made or read.
    #[error(transparent)]
    Shm(#[from] grebe_shm::Error),
    /// Standard input or output that is not there.
    #[error("{what} is closed: {source}")]
    Closed { what: &'static str, source: io::Error },
    /// The wait for a stream, or for its readers, was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// A stream whose sender has gone without an end of stream.
    #[error("nothing arrived for {timeout:?}: the sender is gone (it sent no end of stream)")]
    Idle { timeout: Duration },
    /// A lab that cannot be joined, or a stream that cannot be had in it.
    #[error(transparent)]
    Lab(#[from] grebe_zenoh::Error),
    /// A stream over Zenoh whose producer has gone without an end of stream.
    #[error(
        "{uri}: its producer is gone (it sent no end of stream); what came until then is good, and with reconnect in its name grebe waits for it"
    )]
    ProducerGone { uri: String },
    /// A name that nobody announces.
    #[error("nobody announces {name}; asked: {reach}")]
    Unannounced { name: String, reach: String },
    /// A byte stream that was closed without an end of stream.
    #[error(
        "the pipe was closed without an end of stream: its writer is gone, and what it wrote last may be missing"
    )]
    Gone,
    /// A byte stream that is not whole frames back to back.
    #[error("the pipe carries no frame at byte {at}: {why}")]
    Pipe { at: u64, why: String },
    /// A stream that became another in the middle of a recording.
    #[error(
        "the stream changed from {was} to {is}: the recording ends before it, record the new stream on its own"
    )]
    Changed { was: String, is: String },
}

impl Error {
    /// What to make of the system's error where a file cannot be opened, read or created: `map_err(Error::file("open", path))`.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { action, path: path.clone(), source }
    }

    /// Whether there is no room on the disk, or none for this user, or none in one file.
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

    /// A field of a file that says what cannot be.
    pub(crate) fn field(path: &Path, field: &str, got: impl std::fmt::Display, must: &str) -> Self {
        Self::Field { path: path.into(), what: format!("{field} is {got}: {must}") }
    }

    pub(crate) fn truncated(path: &Path, why: &str) -> Self {
        Self::Content { path: path.into(), what: format!("is truncated: {why}") }
    }
}

/// What an error of the system asks for, where its own words do not say.
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

fn what_to_do(error: &io::Error) -> &'static str {
    #[cfg(unix)]
    if error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) {
        return "; this process may have no more: raise its limit, for example with ulimit -n 1024";
    }
    match error.kind() {
        io::ErrorKind::FileTooLarge => {
            "; its file system (FAT has 4 GB) or this user's limit (ulimit -f) allows no larger one: record in parts (--rotate 2G)"
        }
        _ => "",
    }
}
