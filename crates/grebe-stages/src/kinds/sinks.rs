//! Sinks that a graph file can name.

use std::path::PathBuf;

use grebe_flow::{Fault, Kind, KindPorts, Site, Stage, StageError, Time};
use schemars::JsonSchema;
use serde::Deserialize;

use super::sources::{burst, check_burst, latency, shm_name, udp_address, udp_options};
use crate::{PipeSink, RecordOptions, ShmSink, SigmfSink, UdpSink, stdout_pipe};

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
    const PORTS: KindPorts = KindPorts::SINK;

    fn check(&self) -> Result<(), Fault> {
        match self.file.file_name() {
            Some(_) => Ok(()),
            None => Err(Fault::new("file", "names no file: write NAME.sigmf-meta")),
        }
    }

    fn claims(&self) -> Option<String> {
        Some(format!("the file {}", self.file.display()))
    }

    fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        let options = RecordOptions { duration: self.duration.map(|time| time.0), overwrite: self.overwrite };
        Ok(Box::new(SigmfSink::create(&self.file, options)?))
    }
}

/// Sends a stream over UDP, one datagram a frame.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UdpOut {
    /// The receiver's address: udp://HOST:PORT.
    uri: String,
    /// Datagrams a system call, 1 to 128; 1 is the lowest latency.
    #[serde(default = "burst")]
    burst: u32,
    /// End-to-end latency budget.
    #[serde(default = "latency")]
    latency: Time,
}

impl Kind for UdpOut {
    const NAME: &'static str = "udp_out";
    const PORTS: KindPorts = KindPorts::SINK;

    fn check(&self) -> Result<(), Fault> {
        udp_address(&self.uri).map_err(|error| Fault::new("uri", error.to_string()))?;
        check_burst(self.burst)
    }

    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        let address = udp_address(&self.uri)?.to_send()?;
        let sink = UdpSink::connect(address, &udp_options(self.burst, self.latency))
            .map_err(|error| format!("cannot send to {}: {error}", self.uri))?;
        if sink.granted().is_clamped() {
            site.note(sink.granted().to_string());
        }
        Ok(Box::new(sink))
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
    const PORTS: KindPorts = KindPorts::SINK;

    fn check(&self) -> Result<(), Fault> {
        shm_name(&self.uri).map(drop).map_err(|error| Fault::new("uri", error.to_string()))
    }

    fn claims(&self) -> Option<String> {
        Some(format!("the stream {}", self.uri))
    }

    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        let shm = shm_name(&self.uri)?;
        let sink = ShmSink::create(&shm.name, shm.publisher_options())?;
        site.note(format!("lending as shm://{}: {}", shm.name, sink.footprint()));
        Ok(Box::new(sink))
    }
}

/// Writes a stream to standard output.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PipeOut {}

impl Kind for PipeOut {
    const NAME: &'static str = "pipe_out";
    const PORTS: KindPorts = KindPorts::SINK;

    fn claims(&self) -> Option<String> {
        Some("standard output".to_owned())
    }

    fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        let stdout = stdout_pipe().map_err(|error| format!("standard output is closed: {error}"))?;
        Ok(Box::new(PipeSink::new(stdout)))
    }
}
