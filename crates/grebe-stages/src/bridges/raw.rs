//! Samples without headers, for other programs, over a pipe, TCP, UDP or a serial port. The name states their format:
//! `pipe:?format=cu8&rate=2.4M`.

mod byte_stream;
mod kind;
mod udp_sink;
mod udp_source;
mod uri;

pub(crate) use byte_stream::{RawSink, RawSource, Retune, Retuned, interleaved};
#[cfg(fuzzing)]
pub(crate) use udp_source::fuzz;
pub use uri::RawStream;

use std::fmt;

use grebe_flow::Kinds;
use grebe_process::query::Query;
use grebe_process::stream::DATAGRAM_BYTES_MAX;
use kind::{RawIn, RawOut};
use udp_sink::RawUdpSink;
use udp_source::RawUdpSource;

use crate::error::Error;
use crate::open::{Notice, Notify, OpenSink, OpenSource, SinkOptions, SourceOptions};
use crate::scheme::{End, Scheme, Traits};
use crate::session::Bounded as _;
use crate::transport::{ByteStream, Carrier, is_text, listen, send_to};

impl Scheme for RawStream {
    const WRITTEN: &'static str = "tcp://HOST:PORT?format=...";
    const OTHERWISE: &'static str = "is not a stream of plain samples: write pipe:, tcp:// or udp:// with format=, as in pipe:?format=cu8&rate=2.4M";

    fn parse(name: &str) -> Option<Result<Self, String>> {
        let (name, query) = name.split_once('?').unwrap_or((name, ""));
        let carrier = Carrier::parse(name).filter(|_| !is_text(name, query))?;
        Some(carrier.and_then(|mut carrier| {
            let mut query = Query::new(query)?;
            if carrier.has_frames() {
                query.mention("wire");
            }
            carrier.take(&mut query)?;
            Self::of_query(carrier, query)
        }))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.carrier, self.carrier.write(self.pairs()))
    }

    fn traits(&self) -> Traits {
        self.carrier.traits()
    }

    fn claim(&self, end: End) -> Option<String> {
        self.carrier.claim(end)
    }

    fn datagram_bytes(&self) -> Result<usize, Error> {
        match &self.carrier {
            Carrier::Udp(at) => at.datagram_bytes(),
            _ => Ok(DATAGRAM_BYTES_MAX),
        }
    }

    fn open_source(&self, options: SourceOptions, notify: Notify<'_>) -> Result<OpenSource, Error> {
        let source = match &self.carrier {
            Carrier::Udp(at) => {
                let (receiver, address) = listen(&self.uri(), at, &options.transport, notify)?;
                match self.number {
                    None => notify(Notice::LossByClock(
                        "the datagrams have no sequence numbers: losses on the network",
                    )),
                    Some(number) if number.bytes == 1 => notify(Notice::UnseenLoss(
                        "the datagrams are numbered in one byte: a loss of more than 127 in a row",
                    )),
                    Some(_) => {}
                }
                let source = RawUdpSource::new(receiver, self.clone());
                let second_sender = Some(source.second_sender());
                let source = source.bounded(&options);
                OpenSource { address: Some(address), second_sender, ..OpenSource::of(source) }
            }
            carrier => {
                let patience = options.patience(carrier.reconnects());
                let (stream, reconnect) = carrier.open(End::Source, &patience, notify)?;
                let source = RawSource::new(stream, ByteStream::readable, self.clone()).reconnects(reconnect);
                let source = if carrier.keeps_time() { source.by_the_clock() } else { source };
                OpenSource::of(source.bounded(&options))
            }
        };
        Ok(OpenSource { rate_hz: self.known_rate_hz(), ..source })
    }

    fn open_sink(&self, options: &SinkOptions, notify: Notify<'_>) -> Result<OpenSink, Error> {
        if let Carrier::Udp(to) = &self.carrier {
            let sender = send_to(&self.uri(), to, &options.transport, notify)?;
            let datagram_bytes = self.datagram_bytes_by(&options.transport)?;
            let given = options.transport.datagram_bytes;
            return Ok(OpenSink::of(RawUdpSink::new(sender, self.clone(), given, datagram_bytes)));
        }
        let (to, reconnect) =
            self.carrier.open(End::Sink, &options.patience(self.carrier.reconnects()), notify)?;
        Ok(OpenSink::of(RawSink::new(to, self.clone()).reconnects(reconnect)))
    }

    fn kinds(kinds: &mut Kinds) {
        kinds.add::<RawIn>().add::<RawOut>();
    }
}
