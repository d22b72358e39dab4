//! Sources that a graph file can name, beside the generator.

use std::path::PathBuf;

use grebe_flow::{Count, Fault, Kind, Ports, Site, SizeBytes, Stage, StageError, Time};
use schemars::JsonSchema;
use serde::Deserialize;

use super::params::{burst, check_burst, check_uri, datagram_size, latency, shm_uri, transport, udp_uri};
use crate::open::{SourceOptions, Transport, open_source};
use crate::stream::check_datagram_bytes;
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
        open(&Uri::File(self.file), options, site)
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
        open(&udp_uri(&self.uri)?, options, site)
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
        open(&Uri::Pipe, SourceOptions { samples, ..SourceOptions::default() }, site)
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
        open(&shm_uri(&self.uri)?, options, site)
    }
}

/// Opens the source; what its opener is told becomes notes of the graph.
fn open(uri: &Uri, options: SourceOptions, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
    let source = open_source(uri, options, &mut |notice| site.note(notice.to_string()))?;
    if let Some(address) = source.address {
        site.note(format!("listening on {address}"));
    }
    Ok(source.stage)
}
