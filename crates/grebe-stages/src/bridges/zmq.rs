//! ZeroMQ for GNU Radio's blocks: `zmq://HOST:PORT?type=sub&format=cf32&rate=1M`.
//!
//! ZMTP 3.0 without encryption is small for these four socket types, so no library is needed:
//!
//! ```text
//!  both ends                     greeting (64 bytes), READY with the type of the socket
//!  SUB -> PUB                    subscription: the first bytes of messages
//!  PUB -> SUB, PUSH -> PULL      messages: a flag, a length, the bytes; a message may have several parts
//!
//!  a message of GNU Radio        [key] ([header with tags] samples)
//! ```

mod kind;
mod meet;
mod reader;
mod sink;
mod tags;
mod uri;
mod wire;

pub use uri::Zmq;
#[cfg(fuzzing)]
pub(crate) use {reader::fuzz as fuzz_messages, tags::fuzz as fuzz_tags, wire::fuzz as fuzz_wire};

use std::fmt;

use grebe_flow::Kinds;

use crate::error::Error;
use crate::open::{Notice, Notify, OpenSink, OpenSource, SinkOptions, SourceOptions};
use crate::scheme::{End, Scheme, Traits};
use crate::session::Bounded as _;
use kind::{ZmqIn, ZmqOut};
use meet::Meeting;
use sink::ZmqSink;
use uri::Socket;

impl Scheme for Zmq {
    const WRITTEN: &'static str = "zmq://HOST:PORT?format=...";
    const OTHERWISE: &'static str = "is not a ZeroMQ stream: write zmq://HOST:PORT?type=sub&format=cf32";

    fn parse(name: &str) -> Option<Result<Self, String>> {
        name.strip_prefix("zmq://").map(Self::parse)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "zmq://{}{}", self.end.at, self.pairs())
    }

    fn traits(&self) -> Traits {
        Traits::LIVE
    }

    fn check(&self, end: End) -> Result<(), String> {
        let reads = match self.socket {
            Some(socket) if socket.reads() != (end == End::Source) => socket.reads(),
            _ => return Ok(()),
        };
        let (does, others, is) =
            if reads { ("reads", "sends", "pub or push") } else { ("sends", "reads", "sub or pull") };
        Err(format!("{does}: what {others} is type={is}"))
    }

    fn open_source(&self, options: SourceOptions, notify: Notify<'_>) -> Result<OpenSource, Error> {
        let socket = self.socket.unwrap_or(Socket::Sub);
        let meeting = Meeting::new(self, socket, notify)?;
        let patience = options.patience(self.end.reconnects);
        let peer = patience.open(notify, |_| meeting.open(patience.cancel, patience.within))?;
        let source = reader::source(self, meeting, peer);
        if self.loses_unseen(socket) {
            notify(Notice::UnseenLoss("messages without tags: drops of a PUB for a slow reader"));
        }
        let source = source.bounded(&options);
        Ok(OpenSource { rate_hz: self.raw.known_rate_hz(), ..OpenSource::of(source) })
    }

    fn open_sink(&self, options: &SinkOptions, notify: Notify<'_>) -> Result<OpenSink, Error> {
        let socket = self.socket.unwrap_or(Socket::Pub);
        let sink = options
            .patience(self.end.reconnects)
            .open(notify, |notify| ZmqSink::open(self, socket, &options.cancel, notify))?;
        Ok(OpenSink::of(sink))
    }

    fn kinds(kinds: &mut Kinds) {
        kinds.add::<ZmqIn>().add::<ZmqOut>();
    }
}

#[cfg(test)]
mod tests;
