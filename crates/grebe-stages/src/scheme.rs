//! A scheme of streams: how its name is read and written, what it is, and what opens either end.
//!
//! A bridge implements [`Scheme`] for the type of its name, in a folder of its own, and has a row in the table of
//! [`Uri`](crate::Uri). No other place knows of it: commands ask for [`Traits`].

use std::fmt;
use std::net::SocketAddr;

use grebe_flow::Kinds;
use grebe_frame::SampleFormat;
use grebe_process::stream::{DATAGRAM_BYTES_MAX, check_datagram_bytes};

use crate::error::Error;
use crate::open::{Notify, OpenSink, OpenSource, SinkOptions, SourceOptions, Transport};

/// The name of a stream of one scheme.
pub(crate) trait Scheme: Sized {
    /// How it is written, for who wrote a name of no scheme: `udp://HOST:PORT`.
    const WRITTEN: &'static str;
    /// What is wrong with the name of another scheme, and how to write this one.
    const OTHERWISE: &'static str;
    /// The feature of cargo that it needs, where this grebe was built without it.
    const ABSENT: Option<&'static str> = None;

    /// Reads a name; `None`: it is of another scheme.
    fn parse(name: &str) -> Option<Result<Self, String>>;

    /// What is wrong with a name that only its query keeps from being one of these; `None`: it is of another scheme.
    fn mistake(_: &str) -> Option<String> {
        None
    }

    /// Writes what [`parse`](Self::parse) reads.
    ///
    /// # Errors
    /// The formatter's.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    fn traits(&self) -> Traits;

    /// Opens it as a source.
    ///
    /// # Errors
    /// What cannot be had, or that the wait was cancelled.
    fn open_source(&self, options: SourceOptions, notify: Notify<'_>) -> Result<OpenSource, Error> {
        let _ = (options, notify);
        Err(Error::Name { name: self.uri(), reason: "cannot be read".to_owned() })
    }

    /// Opens it as a sink.
    ///
    /// # Errors
    /// What cannot be had, or that the wait was cancelled.
    fn open_sink(&self, options: &SinkOptions, notify: Notify<'_>) -> Result<OpenSink, Error> {
        let _ = (options, notify);
        Err(Error::Name { name: self.uri(), reason: "cannot be sent to".to_owned() })
    }

    /// Adds the kinds of stages by which graph files name it.
    fn kinds(_: &mut Kinds) {}

    /// Whether it can be that end of a stream, as far as its name says.
    ///
    /// # Errors
    /// Why it cannot.
    fn check(&self, _: End) -> Result<(), String> {
        Ok(())
    }

    /// Whether this grebe has it, and its name says that it can be that end of a stream.
    ///
    /// # Errors
    /// Why it cannot.
    fn check_end(&self, end: End) -> Result<(), String> {
        match Self::ABSENT {
            Some(feature) => Err(format!(
                "needs {feature}, and this grebe was built without it: cargo build --release --features {feature}"
            )),
            None => self.check(end),
        }
    }

    /// What that end has for itself, in words: two stages of a graph that say the same are refused.
    fn claim(&self, _: End) -> Option<String> {
        None
    }

    /// What the name says of the samples that come.
    fn samples(&self) -> Samples {
        Samples::default()
    }

    /// Whether a sink takes such samples.
    ///
    /// # Errors
    /// Why it does not.
    fn takes(&self, _: Option<SampleFormat>, _: Option<u32>) -> Result<(), String> {
        Ok(())
    }

    /// Bytes of the datagrams that frames to it should fit into: those that were asked for, or that suit it.
    ///
    /// # Errors
    /// They are out of their range, or the host has no address.
    fn datagram_bytes_by(&self, transport: &Transport) -> Result<usize, Error> {
        match transport.datagram_bytes {
            Some(bytes) => Ok(check_datagram_bytes(bytes).map(|()| bytes)?),
            None => self.datagram_bytes(),
        }
    }

    /// Bytes of the datagrams that suit it as a sink.
    ///
    /// # Errors
    /// The host has no address.
    fn datagram_bytes(&self) -> Result<usize, Error> {
        Ok(DATAGRAM_BYTES_MAX)
    }

    /// What to tell readers of a stream that goes there; `None`: nobody else can read that.
    fn way_to_read(&self) -> Option<String> {
        None
    }

    /// What to tell who wants to send to a source that listens at this address; `None`: nobody can.
    fn way_to_send(&self, _: Option<SocketAddr>) -> Option<String> {
        None
    }

    /// The name as text.
    fn uri(&self) -> String {
        fmt::from_fn(|f| self.write(f)).to_string()
    }

    /// The name that a graph file gives a stage of this scheme.
    ///
    /// # Errors
    /// It is of another scheme, or malformed.
    fn named(text: &str, end: End) -> Result<Self, Error> {
        let wrong = |reason: String| Error::Name { name: text.to_owned(), reason };
        // A mistake within a name counts more than that it is of another scheme.
        let other = || Err(Self::mistake(text).unwrap_or_else(|| Self::OTHERWISE.to_owned()));
        let named = Self::parse(text).unwrap_or_else(other).map_err(wrong)?;
        named.check_end(end).map_err(wrong)?;
        Ok(named)
    }
}

/// Which end of a stream: where it comes from, or where it goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Source,
    Sink,
}

/// What the name of a stream says of its samples.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Samples {
    pub(crate) channels: Option<u32>,
    pub(crate) format: Option<SampleFormat>,
    pub(crate) rate_hz: Option<f64>,
}

/// What a stream is to those who open it, whatever its scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// It goes on whether somebody reads it or not; otherwise its writer waits for its reader.
    pub is_live: bool,
    /// Its frames are stamped by the clock of this machine, since it was started.
    pub is_local: bool,
    /// Others can read the same stream.
    pub is_shared: bool,
    /// Its source listens on a port: it has to be open before somebody sends.
    pub is_datagram: bool,
    /// Its samples lie in memory of the stream's, which bounds what may wait for a reader.
    pub is_lent: bool,
    /// Standard input or output, of which there is one.
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
    /// Datagrams of another host's, maybe.
    pub(crate) const DATAGRAMS: Self = Self { is_local: false, is_datagram: true, ..Self::LIVE };
    pub(crate) const PIPE: Self = Self { is_live: false, is_shared: false, is_pipe: true, ..Self::LIVE };
}
