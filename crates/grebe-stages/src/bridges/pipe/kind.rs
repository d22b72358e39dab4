//! Standard input and output.

use grebe_flow::{Count, Kind, Ports, Site, Stage, StageResult};
use schemars::JsonSchema;
use serde::Deserialize;

use super::uri::PipeStream;
use crate::kind::{sink, source, source_options};
use crate::open::SinkOptions;
use crate::scheme::{End, Scheme as _};

/// Reads a stream from standard input.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PipeIn {
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
}

impl Kind for PipeIn {
    const NAME: &'static str = "pipe_in";
    const PORTS: Ports = Ports::SOURCE;

    fn claims(&self) -> Option<String> {
        PipeStream::default().claim(End::Source)
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        source(&PipeStream::default(), source_options(self.samples, None, site), site)
    }
}

/// Writes a stream to standard output.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PipeOut {}

impl Kind for PipeOut {
    const NAME: &'static str = "pipe_out";
    const PORTS: Ports = Ports::SINK;

    fn claims(&self) -> Option<String> {
        PipeStream::default().claim(End::Sink)
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        sink(&PipeStream::default(), SinkOptions::default(), site)
    }
}
