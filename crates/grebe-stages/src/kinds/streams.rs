//! Sources and sinks that a graph file can name, beside the generator.

use std::path::PathBuf;
use std::time::Duration;

use grebe_flow::{Count, Fault, Kind, Ports, Site, SizeBytes, Stage, StageError, Time};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::Error;
use crate::open::{SinkOptions, SourceOptions, Transport, open_sink, open_source};
use crate::stream::{DATAGRAM_BYTES, check_datagram_bytes};
use crate::uri::Uri;

/// Plays a recording, SigMF or WAV, with the gaps that were recorded.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Play {
    /// A recording: .sigmf-meta, .sigmf-collection or .wav.
    file: PathBuf,
    /// Times the recorded rate at which it is played; 1 where it is not given.
    speed: Option<f64>,
    /// Does not keep to the rate: as fast as the stream is taken.
    #[serde(default)]
    free_run: bool,
    /// Begins again at the end, for ever.
    #[serde(default)]
    repeat: bool,
    /// Ends after this many samples per channel, or with the file.
    samples: Option<Count>,
    /// Bytes of the datagrams that the frames should fit into; larger frames cost less where no network lies between.
    #[serde(default = "datagram_size")]
    datagram_size: SizeBytes,
    /// End-to-end latency budget: frames wait for each other for up to a quarter of it.
    #[serde(default = "latency")]
    latency: Time,
}

impl Kind for Play {
    const NAME: &'static str = "play";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        check_datagram_bytes(self.datagram_size.0)
            .map_err(|error| Fault::new("datagram_size", error.to_string()))?;
        match self.speed {
            Some(speed) if !(speed.is_finite() && speed > 0.0) => {
                Err(Fault::new("speed", "give a factor above 0, for example 0.5 or 100"))
            }
            Some(_) if self.free_run => Err(Fault::new("speed", "give 'speed' or 'free_run', not both")),
            _ => Ok(()),
        }
    }

    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        let options = SourceOptions {
            transport: Transport {
                datagram_bytes: Some(self.datagram_size.0),
                latency: self.latency.0,
                ..Transport::default()
            },
            speed: if self.free_run { None } else { Some(self.speed.unwrap_or(1.0)) },
            repeat: self.repeat,
            samples: self.samples.map(|samples| samples.0),
            ..SourceOptions::default()
        };
        source(&Uri::File(self.file), options, site)
    }
}

/// Receives a stream over UDP.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UdpIn {
    /// The address to listen on: udp://:5000 on all addresses of this machine, or udp://HOST:PORT.
    uri: String,
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
    /// Fails once the sender has been silent for this long.
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

    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        let options = SourceOptions {
            transport: transport(self.burst, self.latency),
            samples: self.samples.map(|samples| samples.0),
            idle_timeout: self.idle_timeout.map(|timeout| timeout.0),
            ..SourceOptions::default()
        };
        source(&udp_uri(&self.uri)?, options, site)
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

    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        let samples = self.samples.map(|samples| samples.0);
        source(&Uri::Pipe, SourceOptions { samples, ..SourceOptions::default() }, site)
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
        check_uri(shm_uri(&self.uri))
    }

    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        let options = SourceOptions {
            reader: site.id().to_owned(),
            samples: self.samples.map(|samples| samples.0),
            idle_timeout: self.idle_timeout.map(|timeout| timeout.0),
            ..SourceOptions::default()
        };
        source(&shm_uri(&self.uri)?, options, site)
    }
}

/// Opens a source; what its opener is told becomes notes of the graph.
fn source(uri: &Uri, options: SourceOptions, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
    let source = open_source(uri, options, &mut |notice| site.note(notice.to_string()))?;
    if let Some(address) = source.address {
        site.note(format!("listening on {address}"));
    }
    Ok(source.stage)
}

/// Records a stream as SigMF, with a segment at each gap.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    /// The recording to make: NAME.sigmf-meta.
    file: PathBuf,
    /// Ends after this much of the signal.
    duration: Option<Time>,
    /// Replaces a recording of the same name.
    #[serde(default)]
    overwrite: bool,
}

impl Kind for Record {
    const NAME: &'static str = "record";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        match self.file.file_name() {
            Some(_) => Ok(()),
            None => Err(Fault::new("file", "names no file: write NAME.sigmf-meta")),
        }
    }

    fn claims(&self) -> Option<String> {
        Some(format!("the file {}", self.file.display()))
    }

    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        let duration = self.duration.map(|time| time.0);
        let options = SinkOptions { duration, overwrite: self.overwrite, ..SinkOptions::default() };
        sink(&Uri::File(self.file), &options, site)
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

    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        let transport = transport(self.burst, self.latency);
        sink(&udp_uri(&self.uri)?, &SinkOptions { transport, ..SinkOptions::default() }, site)
    }
}

/// Lends a stream to other processes of this machine, in shared memory.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShmOut {
    /// The stream: shm://NAME; ?block=no where no reader may make it wait, ?readers=N where not 4 are to share its memory.
    uri: String,
}

impl Kind for ShmOut {
    const NAME: &'static str = "shm_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        check_uri(shm_uri(&self.uri))
    }

    fn claims(&self) -> Option<String> {
        Some(format!("the stream {}", self.uri))
    }

    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        sink(&shm_uri(&self.uri)?, &SinkOptions::default(), site)
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

    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        sink(&Uri::Pipe, &SinkOptions::default(), site)
    }
}

/// Opens a sink, with notes of the graph as [`source`] has them.
fn sink(uri: &Uri, options: &SinkOptions, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
    Ok(open_sink(uri, options, &mut |notice| site.note(notice.to_string()))?.stage)
}

/// The URI of a UDP address.
fn udp_uri(text: &str) -> Result<Uri, Error> {
    match text.parse()? {
        uri @ Uri::Udp(_) => Ok(uri),
        _ => Err(wrong(text, "is no UDP address: write udp://HOST:PORT")),
    }
}

/// The URI of a stream in shared memory.
fn shm_uri(text: &str) -> Result<Uri, Error> {
    match text.parse()? {
        Uri::Shm(shm) if shm.wait_consumers > 0 => {
            Err(wrong(text, "has wait=, and a graph waits for nobody"))
        }
        uri @ Uri::Shm(_) => Ok(uri),
        _ => Err(wrong(text, "is no stream in shared memory: write shm://NAME")),
    }
}

fn wrong(uri: &str, reason: &str) -> Error {
    Error::Uri { uri: uri.to_owned(), reason: reason.to_owned() }
}

fn check_uri(uri: Result<Uri, Error>) -> Result<(), Fault> {
    uri.map(drop).map_err(|error| Fault::new("uri", error.to_string()))
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

fn datagram_size() -> SizeBytes {
    SizeBytes(DATAGRAM_BYTES)
}

fn burst() -> u32 {
    128
}

fn latency() -> Time {
    Time(Duration::from_micros(500))
}
