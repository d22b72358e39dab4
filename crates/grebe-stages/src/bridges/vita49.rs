//! VITA-49 radio transport (VRT), with DIFI as a profile: samples in UDP packets with a header that many receivers and
//! modems share.
//!
//! ```text
//!  datagram -> prologue (header) -> continuity (gaps) -> source: frames
//!                    \-> context (signal properties) -> payload_format
//!  frames -> sink -> prologue, context
//! ```

mod byte_order;
mod class;
mod context;
mod continuity;
mod intake;
mod kind;
mod packets;
mod payload_format;
mod prologue;
mod sample_clock;
mod sink;
mod source;
mod stamp;
mod streams;
mod template;
mod uri;

pub use uri::Vita49Stream;

#[cfg(fuzzing)]
pub(crate) use intake::fuzz;

use std::fmt;
use std::net::SocketAddr;

use grebe_flow::Kinds;
use grebe_process::stream::DATAGRAM_BYTES;
use kind::{Vita49In, Vita49Out};
use sink::Vita49Sink;
use source::Vita49Source;

use crate::error::Error;
use crate::open::{Notify, OpenSink, OpenSource, SinkOptions, SourceOptions};
use crate::scheme::{End, Scheme, Traits};
use crate::session::Bounded as _;
use crate::transport::{listen, reachable, send_to};

impl Scheme for Vita49Stream {
    const WRITTEN: &'static str = "vrt://HOST:PORT";
    const OTHERWISE: &'static str = "is not a VITA-49 stream: write vrt://HOST:PORT";

    fn parse(name: &str) -> Option<Result<Self, String>> {
        name.strip_prefix("vrt://").map(Self::parse)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vrt://{}{}", self.at, self.pairs())
    }

    fn traits(&self) -> Traits {
        Traits::DATAGRAMS
    }

    fn claim(&self, end: End) -> Option<String> {
        (end == End::Source).then(|| format!("the address {}", self.uri()))
    }

    /// Readers on this machine are other programs, which may not expect longer packets.
    fn datagram_bytes(&self) -> Result<usize, Error> {
        Ok(DATAGRAM_BYTES)
    }

    fn uri_for_senders(&self, at: Option<SocketAddr>) -> Option<String> {
        at.map(|at| format!("vrt://{}", reachable(at)))
    }

    fn open_source(&self, options: SourceOptions, notify: Notify<'_>) -> Result<OpenSource, Error> {
        let (receiver, address) = listen(&self.uri(), &self.at, &options.transport, notify)?;
        let source = Vita49Source::new(receiver, self.clone());
        let second_sender = Some(source.second_sender());
        let source = source.bounded(&options);
        let rate_hz = self.known_rate_hz();
        Ok(OpenSource { address: Some(address), second_sender, rate_hz, ..OpenSource::of(source) })
    }

    fn open_sink(&self, options: &SinkOptions, notify: Notify<'_>) -> Result<OpenSink, Error> {
        let sender = send_to(&self.uri(), &self.at, &options.transport, notify)?;
        let datagram_bytes = self.datagram_bytes_by(&options.transport)?;
        let given = options.transport.datagram_bytes;
        Ok(OpenSink::of(Vita49Sink::new(sender, self.clone(), given, datagram_bytes)))
    }

    fn kinds(kinds: &mut Kinds) {
        kinds.add::<Vita49In>().add::<Vita49Out>();
    }
}

#[cfg(test)]
mod tests;
