//! `udp://HOST:PORT`: datagrams, one frame each.

mod intake;
mod kind;
mod sink;
mod source;
mod uri;

pub use {sink::UdpSink, source::UdpSource, uri::UdpStream};

use std::fmt;
use std::net::SocketAddr;

use grebe_flow::Kinds;
use grebe_frame::SampleFormat;
use grebe_link::wire::Wire;
use kind::{UdpIn, UdpOut};

use crate::bridges::raw::RawStream;
use crate::error::Error;
use crate::open::{Notify, OpenSink, OpenSource, SinkOptions, SourceOptions};
use crate::scheme::{End, Scheme, Traits};
use crate::session::Bounded as _;
use crate::transport::{listen, reachable, send_to};

impl Scheme for UdpStream {
    const WRITTEN: &'static str = "udp://HOST:PORT";
    const OTHERWISE: &'static str = "carries no frames over UDP: write udp://HOST:PORT";

    fn parse(name: &str) -> Option<Result<Self, String>> {
        Self::parse(name.strip_prefix("udp://")?)
    }

    fn mistake(name: &str) -> Option<String> {
        name.strip_prefix("udp://")?;
        RawStream::parse(name)?.err()
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "udp://{}{}", self.at, self.pairs())
    }

    fn traits(&self) -> Traits {
        Traits::DATAGRAMS
    }

    fn claim(&self, end: End) -> Option<String> {
        (end == End::Source).then(|| format!("the address {}", self.uri()))
    }

    fn takes(&self, format: Option<SampleFormat>, channels: Option<u32>) -> Result<(), String> {
        let (format, channels) = (format.unwrap_or(SampleFormat::I16), channels.unwrap_or(1));
        self.wire.check(format, channels).map_err(|error| error.to_string())
    }

    fn datagram_bytes(&self) -> Result<usize, Error> {
        self.at.datagram_bytes()
    }

    fn uri_for_readers(&self) -> Option<String> {
        (self.wire == Wire::Every).then(|| format!("udp://{}", self.at))
    }

    fn uri_for_senders(&self, at: Option<SocketAddr>) -> Option<String> {
        at.map(|at| format!("udp://{}", reachable(at)))
    }

    fn open_source(&self, options: SourceOptions, notify: Notify<'_>) -> Result<OpenSource, Error> {
        let (receiver, address) = listen(&self.uri(), &self.at, &options.transport, notify)?;
        let mut source = UdpSource::new(receiver, &options.transport.socket_options(&self.at)?)
            .bounded(&options)
            .listens_on(options.listens_on);
        if let Some(pool) = options.pool {
            source = source.pool(pool);
        }
        let second_sender = Some(source.second_sender());
        Ok(OpenSource { address: Some(address), second_sender, ..OpenSource::of(source) })
    }

    fn open_sink(&self, options: &SinkOptions, notify: Notify<'_>) -> Result<OpenSink, Error> {
        let sender = send_to(&self.uri(), &self.at, &options.transport, notify)?;
        let failed = |source| Error::Udp { action: "send to", uri: self.uri(), source };
        Ok(OpenSink::of(UdpSink::new(sender).map_err(failed)?.wire(self.wire)))
    }

    fn kinds(kinds: &mut Kinds) {
        kinds.add::<UdpIn>().add::<UdpOut>();
    }
}
