//! VITA-49 packets.

use grebe_flow::{Count, Fault, Kind, Ports, Site, SizeBytes, Stage, StageResult, Time};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{check_uri, sink, source, source_options, wrong};
use crate::error::Error;
use crate::open::{SinkOptions, Transport};
use crate::stream::check_datagram_bytes;
use crate::uri::Uri;

/// Receives VITA-49 packets over UDP, DIFI among them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Vita49In {
    /// The address to listen on: vrt://:4991; ?stream=0x1f takes that stream, ?format=ci16&rate=2.4M says what context packets do not.
    uri: String,
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
    /// Fails once the sender has been silent for this long, also where it never came.
    idle_timeout: Option<Time>,
}

impl Kind for Vita49In {
    const NAME: &'static str = "vita49_in";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        check_uri(vita49_uri(&self.uri))
    }

    fn claims(&self) -> Option<String> {
        Some(format!("the address {}", self.uri))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        source(&vita49_uri(&self.uri)?, source_options(self.samples, self.idle_timeout, site), site)
    }
}

/// Sends a stream as VITA-49 packets over UDP.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Vita49Out {
    /// The receiver's address: vrt://HOST:PORT; ?profile=difi, ?stream=0x1f, ?time=gps say how.
    uri: String,
    /// Bytes of a packet at most; 1400 where it is not given, and no more than 10 ms of the signal.
    datagram_size: Option<SizeBytes>,
}

impl Kind for Vita49Out {
    const NAME: &'static str = "vita49_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        if let Some(size) = self.datagram_size {
            check_datagram_bytes(size.0).map_err(|error| Fault::new("datagram_size", error.to_string()))?;
        }
        check_uri(vita49_uri(&self.uri))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let datagram_bytes = self.datagram_size.map(|size| size.0);
        let transport = Transport { datagram_bytes, ..Transport::default() };
        sink(&vita49_uri(&self.uri)?, SinkOptions { transport, ..SinkOptions::default() }, site)
    }
}

/// A stream of VITA-49 packets.
fn vita49_uri(text: &str) -> Result<Uri, Error> {
    match text.parse()? {
        uri @ Uri::Vita49(_) => Ok(uri),
        _ => Err(wrong(text, "is no VITA-49 stream: write vrt://HOST:PORT")),
    }
}
