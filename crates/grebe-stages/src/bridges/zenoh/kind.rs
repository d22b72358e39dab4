//! Streams over Zenoh, and streams by their names.

use grebe_flow::{Count, Fault, Kind, Ports, Site, Stage, StageResult, Time};
use schemars::JsonSchema;
use serde::Deserialize;

use super::routes::uri_for_readers;
use super::uri::{NamedStream, ZenohKey};
use crate::error::Error;
use crate::kind::{sink, source, source_options, stream_kinds};
use crate::open::{SinkOptions, SourceOptions};
use crate::scheme::{End, Scheme as _};

stream_kinds! {
    /// Receives a stream of frames over Zenoh.
    source ZenohIn = "zenoh_in" of ZenohKey {
        /// The key: zenoh://WORD/WORD. ?reconnect waits for a lost producer.
        uri,
        /// Ends after this many samples per channel, or with the stream.
        samples,
        /// Fails after this long without samples.
        idle_timeout,
    }

    /// Sends a stream of frames over Zenoh.
    sink ZenohOut = "zenoh_out" of ZenohKey {
        /// The key: zenoh://WORD/WORD. ?wait starts the graph after a reader has joined.
        uri,
    }
}

/// Reads a stream that a host announces, by the best route. Waits for the announcement.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedIn {
    /// The stream: lab/mast3/adc. ?route=shm, ?route=udp or ?route=zenoh selects a route instead of the best one.
    name: String,
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
    /// Fails after this long without samples.
    idle_timeout: Option<Time>,
}

impl Kind for NamedIn {
    const NAME: &'static str = "named_in";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        NamedStream::named(&self.name, End::Source)
            .map(drop)
            .map_err(|error| Fault::new("name", error.to_string()))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let options = SourceOptions { waits: true, ..source_options(self.samples, self.idle_timeout, site) };
        source(&NamedStream::named(&self.name, End::Source)?, options, site)
    }
}

/// Announces a stream under a name. Sends it to readers without another route: by UDP if they request it, otherwise
/// over Zenoh.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedOut {
    /// The stream: lab/mast3/adc.
    name: String,
    /// URIs of other sinks of the graph with the same stream, shm_out and udp_out, which readers use if they can.
    #[serde(default)]
    routes: Vec<String>,
}

impl Kind for NamedOut {
    const NAME: &'static str = "named_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        NamedStream::named(&self.name, End::Sink).map_err(|error| Fault::new("name", error.to_string()))?;
        self.routes().map(drop).map_err(|error| Fault::new("routes", error.to_string()))
    }

    fn claims(&self) -> Option<String> {
        Some(format!("the name {}", self.name))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let options =
            SinkOptions { producer: "run".to_owned(), routes: self.routes()?, ..SinkOptions::default() };
        sink(&NamedStream::named(&self.name, End::Sink)?, options, site)
    }
}

impl NamedOut {
    fn routes(&self) -> Result<Vec<String>, Error> {
        let read = |route: &String| {
            let reason = || "is not a route to a stream: write shm://NAME or udp://HOST:PORT".to_owned();
            uri_for_readers(route).ok_or_else(|| Error::Name { name: route.clone(), reason: reason() })
        };
        self.routes.iter().map(read).collect()
    }
}
