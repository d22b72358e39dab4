use std::io;
use std::time::Duration;

/// An error of opening or using a stream. The message names the address or the device, and a remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what the fields of its variant are")]
pub enum Error {
    /// A stream that receivers of the first GFH2 cannot read.
    #[error(transparent)]
    Wire(#[from] grebe_link::wire::Unknown),
    /// An invalid name of a stream.
    #[error("'{name}' {reason}")]
    Name { name: String, reason: String },
    /// A host without an address.
    #[error("cannot find the host '{host}': {reason}")]
    Unresolved { host: String, reason: String },
    /// An address that cannot be listened on, or sent to.
    #[error("cannot {action} {uri}: {source}{}", busy_advice(source))]
    Udp { action: &'static str, uri: String, source: grebe_datagram::Error },
    /// A host that cannot be connected to, or an address that cannot be listened on.
    #[error("cannot {action} {uri}: {source}{}", refused_advice(action, source))]
    Tcp { action: &'static str, uri: String, source: io::Error },
    /// A device of this machine that cannot be used.
    #[error("cannot {action} {name}: {source}{advice}")]
    Device { action: &'static str, name: String, source: io::Error, advice: &'static str },
    /// An unexpected peer at the other end.
    #[error("{uri} {what}")]
    Peer { uri: String, what: &'static str },
    /// A stream that does not match a headerless sink's options.
    #[error(
        "the stream is {format} in {}, but the sink expects {wanted}: change format= and channels= in its URI, or put a stage convert or select before it, or run grebe convert on a recording first", channels_text(*channels as usize)
    )]
    Raw { format: grebe_frame::SampleFormat, channels: u32, wanted: String },
    /// A VITA-49 stream with unsupported samples.
    #[error("{stream} {what}")]
    Vita49 { stream: String, what: String },
    /// A SoapySDR radio that cannot be opened, set or started.
    #[error("cannot {action} {uri}: {why}")]
    Soapy { action: String, uri: String, why: String },
    /// A device lost while in use.
    #[error(
        "{uri} is lost: {why}; the samples before that are good, and with reconnect in its name grebe waits for it"
    )]
    DeviceGone { uri: String, why: String },
    /// A library, loaded at first use, that is not installed.
    #[error("{what} needs {library}, which cannot be loaded ({why}): {install}")]
    Library { what: &'static str, library: &'static str, why: String, install: &'static str },
    /// A stream in shared memory that cannot be made or read.
    #[error(transparent)]
    Shm(#[from] grebe_shm::Error),
    /// Closed standard input or output.
    #[error("{what} is closed: {source}")]
    Closed { what: &'static str, source: io::Error },
    /// The wait for a stream, or for its readers, was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// A stream whose sender has gone without an end of stream.
    #[error("nothing arrived for {timeout:?}: no sender is there, or it is gone (it sent no end of stream)")]
    Idle { timeout: Duration },
    /// A lab that cannot be joined, or a stream that cannot be read from it.
    #[error(transparent)]
    Lab(#[from] grebe_zenoh::Error),
    /// A stream over Zenoh whose producer has gone without an end of stream.
    #[error(
        "{uri}: its producer is gone (it sent no end of stream); the samples before that are good, and with reconnect in its name grebe waits for it"
    )]
    ProducerGone { uri: String },
    /// A name without a producer.
    #[error("no producer announces {name} (searched {reach})")]
    Unannounced { name: String, reach: String },
    /// A byte stream that was closed without an end of stream.
    #[error(
        "the pipe was closed without an end of stream: its writer is gone, and its last samples may be missing"
    )]
    Gone,
    /// A byte stream with an invalid frame.
    #[error("invalid frame at byte {at} of the pipe: {why}")]
    Pipe { at: u64, why: String },
    /// A recording that cannot be read or written.
    #[error(transparent)]
    Recording(#[from] grebe_recording::Error),
    /// Samples or settings that do not match.
    #[error(transparent)]
    Process(#[from] grebe_process::Error),
}

/// Advice for a port that another program has.
fn busy_advice(source: &grebe_datagram::Error) -> &'static str {
    match source {
        grebe_datagram::Error::Open { source, .. } if source.kind() == io::ErrorKind::AddrInUse => IN_USE,
        _ => "",
    }
}

const IN_USE: &str = "; another program listens there: stop it, or choose another port";

/// `1 channel`, `4 channels`.
pub(crate) fn channels_text(channels: usize) -> String {
    if channels == 1 { "1 channel".to_owned() } else { format!("{channels} channels") }
}

/// Advice after a refused connection.
fn refused_advice(action: &str, source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => IN_USE,
        io::ErrorKind::ConnectionRefused if action == "connect to" => {
            "; no server runs there: start it, or correct the address"
        }
        _ => "",
    }
}
