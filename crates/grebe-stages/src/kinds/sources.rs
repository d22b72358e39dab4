//! Sources that a graph file can name, beside the generator.

use std::path::PathBuf;
use std::time::Duration;

use grebe_datagram::Options;
use grebe_flow::{Count, Fault, Kind, KindPorts, Site, SizeBytes, Stage, StageError, Time};
use grebe_shm::SubscriberOptions;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    DATAGRAM_BYTES, FileSource, FileSourceOptions, HostPort, PipeSource, ShmName, ShmSource, StagesError,
    UdpSource, Uri, stdin_pipe,
};

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
    /// Ends after this many samples a channel, or with the file.
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
    const PORTS: KindPorts = KindPorts::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        check_datagram(self.datagram_size)?;
        match self.speed {
            Some(speed) if !(speed.is_finite() && speed > 0.0) => {
                Err(Fault::new("speed", "give a factor above 0, for example 0.5 or 100"))
            }
            Some(_) if self.free_run => Err(Fault::new("speed", "give 'speed' or 'free_run', not both")),
            _ => Ok(()),
        }
    }

    fn channels(&self, _: Option<u32>) -> Result<Option<u32>, Fault> {
        Ok(None)
    }

    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        let mut source = FileSource::open(&self.file)?;
        source.notes().iter().for_each(|note| site.note(note));
        source.set(FileSourceOptions {
            speed: if self.free_run { None } else { Some(self.speed.unwrap_or(1.0)) },
            repeat: self.repeat,
            samples: self.samples.map(|samples| samples.0),
            datagram_bytes: self.datagram_size.0,
            flush_every: self.latency.0 / 4,
        });
        Ok(Box::new(source))
    }
}

/// Receives a stream over UDP.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UdpIn {
    /// The address to listen on: udp://:5000 on all addresses of this machine, or udp://HOST:PORT.
    uri: String,
    /// Ends after this many samples a channel, or with the stream.
    samples: Option<Count>,
    /// Fails once the sender has been silent for this long.
    idle_timeout: Option<Time>,
    /// Datagrams a system call, 1 to 128; 1 is the lowest latency.
    #[serde(default = "burst")]
    burst: u32,
    /// End-to-end latency budget: the receiver sleeps for up to a half of it.
    #[serde(default = "latency")]
    latency: Time,
}

impl Kind for UdpIn {
    const NAME: &'static str = "udp_in";
    const PORTS: KindPorts = KindPorts::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        udp_address(&self.uri).map_err(|error| Fault::new("uri", error.to_string()))?;
        check_burst(self.burst)
    }

    fn channels(&self, _: Option<u32>) -> Result<Option<u32>, Fault> {
        Ok(None)
    }

    fn claims(&self) -> Option<String> {
        Some(format!("the address {}", self.uri))
    }

    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        let address = udp_address(&self.uri)?.to_listen()?;
        let source = UdpSource::bind(address, &udp_options(self.burst, self.latency))
            .map_err(|error| format!("cannot listen on {}: {error}", self.uri))?;
        site.note(format!("listening on {}", source.local_addr()?));
        if source.granted().is_clamped() {
            site.note(source.granted().to_string());
        }
        let samples = self.samples.map(|samples| samples.0);
        Ok(Box::new(source.idle_timeout(self.idle_timeout.map(|timeout| timeout.0)).samples(samples)))
    }
}

/// Reads a stream from standard input.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PipeIn {
    /// Ends after this many samples a channel, or with the stream.
    samples: Option<Count>,
}

impl Kind for PipeIn {
    const NAME: &'static str = "pipe_in";
    const PORTS: KindPorts = KindPorts::SOURCE;

    fn channels(&self, _: Option<u32>) -> Result<Option<u32>, Fault> {
        Ok(None)
    }

    fn claims(&self) -> Option<String> {
        Some("standard input".to_owned())
    }

    fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        let stdin = stdin_pipe().map_err(|error| format!("standard input is closed: {error}"))?;
        Ok(Box::new(PipeSource::new(stdin).samples(self.samples.map(|samples| samples.0))))
    }
}

/// Reads a stream in shared memory that another process of this machine makes; it must be there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShmIn {
    /// The stream: shm://NAME, or shm://NAME?policy=drop_latest for what happens where this reader is too slow.
    uri: String,
    /// Ends after this many samples a channel, or with the stream.
    samples: Option<Count>,
    /// Fails once the producer has been silent for this long.
    idle_timeout: Option<Time>,
}

impl Kind for ShmIn {
    const NAME: &'static str = "shm_in";
    const PORTS: KindPorts = KindPorts::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        shm_name(&self.uri).map(drop).map_err(|error| Fault::new("uri", error.to_string()))
    }

    fn channels(&self, _: Option<u32>) -> Result<Option<u32>, Fault> {
        Ok(None)
    }

    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        let shm = shm_name(&self.uri)?;
        let mut options = SubscriberOptions { name: site.id().to_owned(), ..SubscriberOptions::default() };
        options.policy = shm.policy.unwrap_or(options.policy);
        let source = ShmSource::connect(&shm.name, &options)?;
        let samples = self.samples.map(|samples| samples.0);
        Ok(Box::new(source.idle_timeout(self.idle_timeout.map(|timeout| timeout.0)).samples(samples)))
    }
}

pub(super) fn shm_name(uri: &str) -> Result<ShmName, StagesError> {
    let wrong = |reason: &str| StagesError::Uri { uri: uri.to_owned(), reason: reason.to_owned() };
    match uri.parse()? {
        Uri::Shm(shm) if shm.wait_consumers > 0 => Err(wrong("has wait=, and a graph waits for nobody")),
        Uri::Shm(shm) => Ok(shm),
        _ => Err(wrong("is no stream in shared memory: write shm://NAME")),
    }
}

pub(super) fn check_datagram(bytes: SizeBytes) -> Result<(), Fault> {
    if (DATAGRAM_BYTES_LEAST..=grebe_datagram::MAX_DATAGRAM_BYTES).contains(&bytes.0) {
        return Ok(());
    }
    let most = grebe_datagram::MAX_DATAGRAM_BYTES;
    Err(Fault::new("datagram_size", format!("{} bytes: give {DATAGRAM_BYTES_LEAST} to {most}", bytes.0)))
}

pub(super) fn check_burst(burst: u32) -> Result<(), Fault> {
    match burst {
        1..=128 => Ok(()),
        _ => Err(Fault::new("burst", format!("{burst} datagrams a call: give 1 to 128"))),
    }
}

pub(super) fn udp_address(uri: &str) -> Result<HostPort, StagesError> {
    match uri.parse()? {
        Uri::Udp(address) => Ok(address),
        _ => {
            let reason = "is no UDP address: write udp://HOST:PORT".to_owned();
            Err(StagesError::Uri { uri: uri.to_owned(), reason })
        }
    }
}

pub(super) fn udp_options(burst: u32, latency: Time) -> Options {
    Options { burst: burst as usize, latency: latency.0, ..Options::default() }
}

pub(super) fn datagram_size() -> SizeBytes {
    SizeBytes(DATAGRAM_BYTES)
}

pub(super) fn burst() -> u32 {
    128
}

pub(super) fn latency() -> Time {
    Time(Duration::from_micros(500))
}

/// A header and one sample of eight channels.
const DATAGRAM_BYTES_LEAST: usize = 80;
