//! A scheme of streams: its names, properties, and constructors of sources and sinks.
//!
//! A bridge is a folder that implements [`Scheme`] for the type of its name, and a row in the table of
//! [`Uri`](crate::Uri). Other code uses [`Traits`] and knows no scheme.

use std::fmt;
use std::net::SocketAddr;

use grebe_flow::Kinds;
use grebe_frame::SampleFormat;
use grebe_process::stream::{DATAGRAM_BYTES_MAX, check_datagram_bytes};

use crate::error::Error;
use crate::open::{Notify, OpenSink, OpenSource, SinkOptions, SourceOptions, Transport};

/// The name of a stream of one scheme.
pub(crate) trait Scheme: Sized {
    /// Its form, for the error about an unknown scheme: `udp://HOST:PORT`.
    const WRITTEN: &'static str;
    /// Error about a name of another scheme, with the right form.
    const OTHERWISE: &'static str;
    /// Cargo feature that this build lacks for it.
    const ABSENT: Option<&'static str> = None;

    /// Parses a name. `None`: it belongs to another scheme.
    fn parse(name: &str) -> Option<Result<Self, String>>;

    /// Error about a name whose query alone is wrong for this scheme. `None`: it belongs to another scheme.
    fn mistake(_: &str) -> Option<String> {
        None
    }

    /// Writes the form that [`parse`](Self::parse) reads.
    ///
    /// # Errors
    /// The formatter's.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    fn traits(&self) -> Traits;

    /// Opens it as a source.
    ///
    /// # Errors
    /// The stream cannot be opened, or the wait was cancelled.
    fn open_source(&self, options: SourceOptions, notify: Notify<'_>) -> Result<OpenSource, Error> {
        let _ = (options, notify);
        Err(Error::Name { name: self.uri(), reason: "cannot be read".to_owned() })
    }

    /// Opens it as a sink.
    ///
    /// # Errors
    /// The stream cannot be opened, or the wait was cancelled.
    fn open_sink(&self, options: &SinkOptions, notify: Notify<'_>) -> Result<OpenSink, Error> {
        let _ = (options, notify);
        Err(Error::Name { name: self.uri(), reason: "cannot be sent to".to_owned() })
    }

    /// Adds its kinds of stages for graph files.
    fn kinds(_: &mut Kinds) {}

    /// Checks by its name that it can be this end of a stream.
    ///
    /// # Errors
    /// The reason why it cannot.
    fn check(&self, _: End) -> Result<(), String> {
        Ok(())
    }

    /// Checks that this build has it, and that its name allows this end of a stream.
    ///
    /// # Errors
    /// The reason why not.
    fn check_end(&self, end: End) -> Result<(), String> {
        match Self::ABSENT {
            Some(feature) => Err(format!(
                "needs {feature}, and this grebe was built without it: cargo build --release --features {feature}"
            )),
            None => self.check(end),
        }
    }

    /// The exclusive resource of that end, as a text. A graph refuses two stages with the same one.
    fn claim(&self, _: End) -> Option<String> {
        None
    }

    /// Properties of the source's samples, as far as the name states them.
    fn samples(&self) -> Samples {
        Samples::default()
    }

    /// Checks that a sink accepts such samples.
    ///
    /// # Errors
    /// The reason why not.
    fn takes(&self, _: Option<SampleFormat>, _: Option<u32>) -> Result<(), String> {
        Ok(())
    }

    /// Bytes of the datagrams that frames should fit into: the requested size, or its default.
    ///
    /// # Errors
    /// They are out of range, or the host has no address.
    fn datagram_bytes_by(&self, transport: &Transport) -> Result<usize, Error> {
        match transport.datagram_bytes {
            Some(bytes) => Ok(check_datagram_bytes(bytes).map(|()| bytes)?),
            None => self.datagram_bytes(),
        }
    }

    /// Default bytes of the datagrams of a sink.
    ///
    /// # Errors
    /// The host has no address.
    fn datagram_bytes(&self) -> Result<usize, Error> {
        Ok(DATAGRAM_BYTES_MAX)
    }

    /// The URI by which readers open a stream with this sink. `None`: no reader can.
    fn uri_for_readers(&self) -> Option<String> {
        None
    }

    /// The URI by which producers send to a source that listens on this address. `None`: none can.
    fn uri_for_senders(&self, _: Option<SocketAddr>) -> Option<String> {
        None
    }

    /// The name as text.
    fn uri(&self) -> String {
        fmt::from_fn(|f| self.write(f)).to_string()
    }

    /// Parses the name of a stage in a graph file.
    ///
    /// # Errors
    /// It belongs to another scheme, or is malformed.
    fn named(text: &str, end: End) -> Result<Self, Error> {
        let wrong = |reason: String| Error::Name { name: text.to_owned(), reason };
        // A mistake within a name is reported before a wrong scheme.
        let other = || Err(Self::mistake(text).unwrap_or_else(|| Self::OTHERWISE.to_owned()));
        let named = Self::parse(text).unwrap_or_else(other).map_err(wrong)?;
        named.check_end(end).map_err(wrong)?;
        Ok(named)
    }
}

/// An end of a stream: source or sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Source,
    Sink,
}

/// Properties of the samples that a name states.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Samples {
    pub(crate) channels: Option<u32>,
    pub(crate) format: Option<SampleFormat>,
    pub(crate) rate_hz: Option<f64>,
}

/// Properties of a stream, independent of its scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// It runs with or without a reader. Otherwise its writer waits for its reader.
    pub is_live: bool,
    /// This machine's clock stamps its frames, from the start of the machine.
    pub is_local: bool,
    /// Others can read the same stream.
    pub is_shared: bool,
    /// Its source listens on a port, and must be open before a sender starts.
    pub is_datagram: bool,
    /// Its samples lie in memory of the stream, which limits the batches that wait for a reader.
    pub is_lent: bool,
    /// Standard input or output, which exist once.
    pub is_pipe: bool,
}

impl Traits {
    /// A device or a connection of this machine.
    pub(crate) const LIVE: Self = Self {
        is_live: true,
        is_local: true,
        is_shared: true,
        is_datagram: false,
        is_lent: false,
        is_pipe: false,
    };
    /// Datagrams, possibly of another host.
    pub(crate) const DATAGRAMS: Self = Self { is_local: false, is_datagram: true, ..Self::LIVE };
    pub(crate) const PIPE: Self = Self { is_live: false, is_shared: false, is_pipe: true, ..Self::LIVE };
}
