//! Streams of frames over UDP.

use grebe_flow::{Count, Fault, Kind, Ports, Site, Stage, StageResult, Time};
use grebe_frame::SampleFormat;
use schemars::JsonSchema;
use serde::Deserialize;

use super::uri::UdpStream;
use crate::kind::{check, latency, sink, source, source_options};
use crate::open::{SinkOptions, SourceOptions, Transport};
use crate::scheme::{End, Scheme as _};

/// Receives a stream over UDP.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UdpIn {
    /// The address to listen on: udp://:5000 on all addresses of this machine, or udp://HOST:PORT.
    uri: String,
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
    /// Fails when the sender is silent for this long, also before its first frame.
    idle_timeout: Option<Time>,
    /// Datagrams per system call, 1 to 128; 1 is the lowest latency.
    #[serde(default = "burst")]
    burst: u32,
    /// End-to-end latency budget: the receiver sleeps for up to a half of it.
    #[serde(default = "latency")]
    latency: Time,
}

impl Kind for UdpIn {
    const NAME: &'static str = "udp_in";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        check(UdpStream::named(&self.uri, End::Source))?;
        check_burst(self.burst)
    }

    fn claims(&self) -> Option<String> {
        UdpStream::named(&self.uri, End::Source).ok()?.claim(End::Source)
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let options = SourceOptions {
            transport: transport(self.burst, self.latency),
            ..source_options(self.samples, self.idle_timeout, site)
        };
        source(&UdpStream::named(&self.uri, End::Source)?, options, site)
    }
}

/// Sends a stream over UDP, one frame per datagram.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UdpOut {
    /// The receiver's address: udp://HOST:PORT.
    uri: String,
    /// Datagrams per system call, 1 to 128; 1 is the lowest latency.
    #[serde(default = "burst")]
    burst: u32,
    /// End-to-end latency budget.
    #[serde(default = "latency")]
    latency: Time,
}

impl Kind for UdpOut {
    const NAME: &'static str = "udp_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        check(UdpStream::named(&self.uri, End::Sink))?;
        check_burst(self.burst)
    }

    fn channels(&self, incoming: Option<u32>) -> Result<Option<u32>, Fault> {
        self.check_takes(None, incoming)?;
        Ok(incoming)
    }

    fn format(&self, incoming: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        self.check_takes(incoming, None)?;
        Ok(incoming)
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let transport = transport(self.burst, self.latency);
        sink(
            &UdpStream::named(&self.uri, End::Sink)?,
            SinkOptions { transport, ..SinkOptions::default() },
            site,
        )
    }
}

impl UdpOut {
    /// Refuses formats that older receivers do not know.
    fn check_takes(&self, format: Option<SampleFormat>, channels: Option<u32>) -> Result<(), Fault> {
        let stream = UdpStream::named(&self.uri, End::Sink);
        stream.map_or(Ok(()), |stream| stream.takes(format, channels)).map_err(|why| Fault::new("uri", why))
    }
}

fn check_burst(burst: u32) -> Result<(), Fault> {
    match burst {
        1..=128 => Ok(()),
        _ => Err(Fault::new("burst", format!("{burst} datagrams per call: give 1 to 128"))),
    }
}

fn transport(burst: u32, latency: Time) -> Transport {
    Transport { burst: burst as usize, latency: latency.0, ..Transport::default() }
}

fn burst() -> u32 {
    128
}
