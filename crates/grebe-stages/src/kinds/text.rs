//! Lines of numbers.

use grebe_flow::{Count, Fault, Kind, Ports, Site, Stage, StageResult, Time};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{check_uri, claim, sink, source, source_options, wrong};
use crate::error::Error;
use crate::open::SinkOptions;
use crate::uri::Uri;

/// Reads lines of numbers, as microcontrollers and loggers print them: 1,2,3 or a:1,b:2.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TextIn {
    /// What carries them: serial:///dev/ttyACM0?baud=115200, pipe:?format=text&rate=100, tcp://HOST:PORT?format=text, udp://:PORT?format=text
    uri: String,
    /// Ends after this many lines, or with the stream.
    samples: Option<Count>,
    /// Fails once nothing has come for this long.
    idle_timeout: Option<Time>,
}

impl Kind for TextIn {
    const NAME: &'static str = "text_in";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        check_uri(text_uri(&self.uri))
    }

    fn claims(&self) -> Option<String> {
        claim(&self.uri, "input")
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        source(&text_uri(&self.uri)?, source_options(self.samples, self.idle_timeout, site), site)
    }
}

/// Writes lines of numbers: one of names, then one per sample.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TextOut {
    /// What carries them: pipe:?format=text, with &time each behind its time; tcp://HOST:PORT?format=text, serial:PORT
    uri: String,
}

impl Kind for TextOut {
    const NAME: &'static str = "text_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        check_uri(text_uri(&self.uri))
    }

    fn claims(&self) -> Option<String> {
        claim(&self.uri, "output")
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        sink(&text_uri(&self.uri)?, SinkOptions::default(), site)
    }
}

/// A stream of lines.
fn text_uri(text: &str) -> Result<Uri, Error> {
    match text.parse()? {
        uri @ Uri::Text(_) => Ok(uri),
        _ => Err(wrong(
            text,
            "is no stream of lines: write serial:PORT, or ?format=text, as in pipe:?format=text",
        )),
    }
}
