//! Streams over Zenoh, and streams by their names.

use grebe_flow::{Count, Fault, Kind, Ports, Site, Stage, StageResult, Time};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{check_uri, sink, source, source_options, wrong};
use crate::error::Error;
use crate::open::{SinkOptions, SourceOptions};
use crate::uri::Uri;
use crate::zenoh::way_to_read;

/// Receives a stream of frames over Zenoh.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ZenohIn {
    /// The key: zenoh://WORD/WORD; ?reconnect where a producer that is gone is waited for.
    uri: String,
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
    /// Fails once nothing has come for this long.
    idle_timeout: Option<Time>,
}

impl Kind for ZenohIn {
    const NAME: &'static str = "zenoh_in";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        check_uri(zenoh_uri(&self.uri))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let options = source_options(self.samples, self.idle_timeout, site);
        source(&zenoh_uri(&self.uri)?, options, site)
    }
}

/// Sends a stream of frames over Zenoh.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ZenohOut {
    /// The key: zenoh://WORD/WORD; ?wait where the graph is to start once somebody reads it.
    uri: String,
}

impl Kind for ZenohOut {
    const NAME: &'static str = "zenoh_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        check_uri(zenoh_uri(&self.uri))
    }

    fn claims(&self) -> Option<String> {
        let Ok(Uri::Zenoh(to)) = zenoh_uri(&self.uri) else { return None };
        Some(format!("the key {}", to.key))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        sink(&zenoh_uri(&self.uri)?, SinkOptions::default(), site)
    }
}

/// Reads a stream that some host announces, by the best way there is; it is waited for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NamedIn {
    /// The stream: lab/mast3/adc; ?way=shm, ?way=udp or ?way=zenoh where another way than the best is wanted.
    name: String,
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
    /// Fails once nothing has come for this long.
    idle_timeout: Option<Time>,
}

impl Kind for NamedIn {
    const NAME: &'static str = "named_in";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        named(&self.name).map(drop).map_err(|error| Fault::new("name", error.to_string()))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let options = SourceOptions {
            reader: site.id().to_owned(),
            waits: true,
            ..source_options(self.samples, self.idle_timeout, site)
        };
        source(&named(&self.name)?, options, site)
    }
}

/// Announces a stream under a name, and sends it to readers that have no other way: by UDP where they ask for that, else over Zenoh.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NamedOut {
    /// The stream: lab/mast3/adc.
    name: String,
    /// Where other sinks of the graph send the same: URIs of shm_out and udp_out, which readers take where they can.
    #[serde(default)]
    ways: Vec<String>,
}

impl Kind for NamedOut {
    const NAME: &'static str = "named_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        named(&self.name).map_err(|error| Fault::new("name", error.to_string()))?;
        self.ways().map(drop).map_err(|error| Fault::new("ways", error.to_string()))
    }

    fn claims(&self) -> Option<String> {
        Some(format!("the name {}", self.name))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let options =
            SinkOptions { producer: "run".to_owned(), ways: self.ways()?, ..SinkOptions::default() };
        sink(&named(&self.name)?, options, site)
    }
}

impl NamedOut {
    fn ways(&self) -> Result<Vec<String>, Error> {
        let read = |way: &String| {
            let uri = way.parse()?;
            way_to_read(&uri)
                .ok_or_else(|| wrong(way, "is no way to read a stream: shm://NAME and udp://HOST:PORT are"))
        };
        self.ways.iter().map(read).collect()
    }
}

fn zenoh_uri(text: &str) -> Result<Uri, Error> {
    match text.parse()? {
        uri @ Uri::Zenoh(_) => Ok(uri),
        _ => Err(wrong(text, "is no key of Zenoh's: write zenoh://WORD/WORD")),
    }
}

fn named(text: &str) -> Result<Uri, Error> {
    match text.parse() {
        Ok(uri @ Uri::Named(_)) => Ok(uri),
        Err(error @ Error::Name { .. }) if text.contains("?way=") => Err(error),
        _ => Err(wrong(
            text,
            "is no name of a stream: write words with slashes between, such as lab/mast3/adc",
        )),
    }
}
