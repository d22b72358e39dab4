//! What GNU Radio's ZMQ blocks send and take.

use grebe_flow::{Count, Fault, Kind, Ports, Site, Stage, StageResult, Time};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{check_uri, sink, source, source_options, wrong};
use crate::error::Error;
use crate::open::SinkOptions;
use crate::uri::Uri;

/// Reads what a ZMQ block of GNU Radio sends.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ZmqIn {
    /// The block and what its items are: zmq://HOST:PORT?type=sub&format=cf32&rate=1M; type=pull, and tags where it passes tags.
    uri: String,
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
    /// Fails once nothing has come for this long.
    idle_timeout: Option<Time>,
}

impl Kind for ZmqIn {
    const NAME: &'static str = "zmq_in";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        check_uri(zmq_uri(&self.uri))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        source(&zmq_uri(&self.uri)?, source_options(self.samples, self.idle_timeout, site), site)
    }
}

/// Sends a stream to ZMQ blocks of GNU Radio.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ZmqOut {
    /// Where they connect to, and what its items are: zmq://:PORT?type=pub&format=cf32&listen; type=push, and tags where they pass tags.
    uri: String,
}

impl Kind for ZmqOut {
    const NAME: &'static str = "zmq_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        check_uri(zmq_uri(&self.uri))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        sink(&zmq_uri(&self.uri)?, SinkOptions::default(), site)
    }
}

fn zmq_uri(text: &str) -> Result<Uri, Error> {
    match text.parse()? {
        uri @ Uri::Zmq(_) => Ok(uri),
        _ => Err(wrong(text, "is no ZeroMQ: write zmq://HOST:PORT?type=sub&format=cf32")),
    }
}
