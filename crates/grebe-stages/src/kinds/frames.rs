//! Streams of frames: over UDP, in shared memory, through a pipe.

use grebe_flow::{Count, Fault, Kind, Ports, Site, Stage, StageResult, Time};
use grebe_frame::SampleFormat;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{check_uri, latency, sink, source, source_options, wrong};
use crate::error::Error;
use crate::open::{SinkOptions, SourceOptions, Transport};
use crate::uri::{ShmName, Uri, Wire};

/// Receives a stream over UDP.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UdpIn {
    /// The address to listen on: udp://:5000 on all addresses of this machine, or udp://HOST:PORT.
    uri: String,
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
    /// Fails once the sender has been silent for this long, also where it never came.
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
        check_uri(udp_uri(&self.uri))?;
        check_burst(self.burst)
    }

    fn claims(&self) -> Option<String> {
        Some(format!("the address {}", self.uri))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let options = SourceOptions {
            transport: transport(self.burst, self.latency),
            ..source_options(self.samples, self.idle_timeout, site)
        };
        source(&udp_uri(&self.uri)?, options, site)
    }
}

/// Sends a stream over UDP, one datagram a frame.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UdpOut {
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
        check_uri(udp_uri(&self.uri))?;
        check_burst(self.burst)
    }

    fn channels(&self, incoming: Option<u32>) -> Result<Option<u32>, Fault> {
        self.check_wire(None, incoming)?;
        Ok(incoming)
    }

    fn format(&self, incoming: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        self.check_wire(incoming, None)?;
        Ok(incoming)
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let transport = transport(self.burst, self.latency);
        sink(&udp_uri(&self.uri)?, SinkOptions { transport, ..SinkOptions::default() }, site)
    }
}

impl UdpOut {
    /// Refuses what its receivers do not know, as far as it is known here.
    fn check_wire(&self, format: Option<SampleFormat>, channels: Option<u32>) -> Result<(), Fault> {
        let Ok(Uri::Udp(_, wire)) = udp_uri(&self.uri) else { return Ok(()) };
        let (format, channels) = (format.unwrap_or(SampleFormat::I16), channels.unwrap_or(1));
        wire.check(format, channels).map_err(|error| Fault::new("uri", error.to_string()))
    }
}

/// Reads a stream in shared memory that another process of this machine makes; it must be there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShmIn {
    /// The stream: shm://NAME, or shm://NAME?policy=drop_latest for what happens where this reader is too slow.
    uri: String,
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
    /// Fails once the producer has been silent for this long.
    idle_timeout: Option<Time>,
}

impl Kind for ShmIn {
    const NAME: &'static str = "shm_in";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        check_uri(shm_to_read(&self.uri))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let options = SourceOptions {
            reader: site.id().to_owned(),
            ..source_options(self.samples, self.idle_timeout, site)
        };
        source(&Uri::Shm(shm_to_read(&self.uri)?), options, site)
    }
}

/// Lends a stream to other processes of this machine, in shared memory.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShmOut {
    /// The stream: shm://NAME; ?wait=N where the graph is to start once N read it, ?block=no where no reader may make it wait,
    /// ?readers=N where not 4 are to share its memory, ?memory=1G where not 256 MiB.
    uri: String,
}

impl Kind for ShmOut {
    const NAME: &'static str = "shm_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        check_uri(shm_name(&self.uri))
    }

    fn claims(&self) -> Option<String> {
        // By what the stream is called, not by how it is made.
        let shm = shm_name(&self.uri).ok()?;
        Some(format!("the stream shm://{}", shm.name))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        sink(&Uri::Shm(shm_name(&self.uri)?), SinkOptions::default(), site)
    }
}

/// Reads a stream from standard input.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PipeIn {
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
}

impl Kind for PipeIn {
    const NAME: &'static str = "pipe_in";
    const PORTS: Ports = Ports::SOURCE;

    fn claims(&self) -> Option<String> {
        Some("standard input".to_owned())
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let samples = self.samples.map(|samples| samples.0);
        source(&Uri::Pipe(Wire::Every), SourceOptions { samples, ..SourceOptions::default() }, site)
    }
}

/// Writes a stream to standard output.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PipeOut {}

impl Kind for PipeOut {
    const NAME: &'static str = "pipe_out";
    const PORTS: Ports = Ports::SINK;

    fn claims(&self) -> Option<String> {
        Some("standard output".to_owned())
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        sink(&Uri::Pipe(Wire::Every), SinkOptions::default(), site)
    }
}

/// The URI of a UDP address.
fn udp_uri(text: &str) -> Result<Uri, Error> {
    match text.parse()? {
        uri @ Uri::Udp(..) => Ok(uri),
        _ => Err(wrong(text, "is no UDP address: write udp://HOST:PORT")),
    }
}

/// The name of a stream in shared memory.
fn shm_name(text: &str) -> Result<ShmName, Error> {
    match text.parse()? {
        Uri::Shm(shm) => Ok(shm),
        _ => Err(wrong(text, "is no stream in shared memory: write shm://NAME")),
    }
}

/// The same of one that is read.
fn shm_to_read(text: &str) -> Result<ShmName, Error> {
    match shm_name(text)? {
        shm if shm.wait_consumers > 0 => {
            Err(wrong(text, "has wait=, which is for the stage that makes the stream: shm_out"))
        }
        shm => Ok(shm),
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
