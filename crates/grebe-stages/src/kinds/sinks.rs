//! Sinks that a graph file can name.

use std::path::PathBuf;

use grebe_flow::{Fault, Kind, Ports, Site, Stage, StageError, Time};
use schemars::JsonSchema;
use serde::Deserialize;

use super::params::{burst, check_burst, check_uri, latency, shm_uri, transport, udp_uri};
use crate::open::{SinkOptions, open_sink};
use crate::uri::Uri;

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
        open(&Uri::File(self.file), &options, site)
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
        open(&udp_uri(&self.uri)?, &SinkOptions { transport, ..SinkOptions::default() }, site)
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
        open(&shm_uri(&self.uri)?, &SinkOptions::default(), site)
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
        open(&Uri::Pipe, &SinkOptions::default(), site)
    }
}

/// Opens the sink; what its opener is told becomes notes of the graph.
fn open(uri: &Uri, options: &SinkOptions, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
    Ok(open_sink(uri, options, &mut |notice| site.note(notice.to_string()))?.stage)
}
