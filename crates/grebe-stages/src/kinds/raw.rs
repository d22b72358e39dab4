//! Samples without headers.

use grebe_flow::{Count, Fault, Kind, Ports, Site, Stage, StageResult, Time};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{check_uri, claim, sink, source, source_options, wrong};
use crate::error::Error;
use crate::open::SinkOptions;
use crate::uri::Uri;

/// Reads samples without headers, as other programs send them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawIn {
    /// What carries them and what they are: pipe:?format=cu8&rate=2.4M, tcp://HOST:PORT?format=..., udp://HOST:PORT?format=...
    uri: String,
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
    /// Fails once nothing has come for this long.
    idle_timeout: Option<Time>,
}

impl Kind for RawIn {
    const NAME: &'static str = "raw_in";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        check_uri(raw_uri(&self.uri))
    }

    fn claims(&self) -> Option<String> {
        claim(&self.uri, "input")
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        source(&raw_uri(&self.uri)?, source_options(self.samples, self.idle_timeout, site), site)
    }
}

/// Writes samples without headers, as other programs take them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawOut {
    /// What carries them and what they are: pipe:?format=cf32, tcp://HOST:PORT?format=..., udp://HOST:PORT?format=...
    uri: String,
}

impl Kind for RawOut {
    const NAME: &'static str = "raw_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        check_uri(raw_uri(&self.uri))
    }

    fn claims(&self) -> Option<String> {
        claim(&self.uri, "output")
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        sink(&raw_uri(&self.uri)?, SinkOptions::default(), site)
    }
}

/// A stream without headers.
fn raw_uri(text: &str) -> Result<Uri, Error> {
    match text.parse()? {
        uri @ Uri::Raw(_) => Ok(uri),
        _ => Err(wrong(
            text,
            "does not say what its samples are: add ?format=, as in pipe:?format=cu8&rate=2.4M",
        )),
    }
}
