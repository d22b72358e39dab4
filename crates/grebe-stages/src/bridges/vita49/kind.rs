//! VITA-49 packets.

use grebe_flow::{Fault, Kind, Ports, Site, SizeBytes, Stage, StageResult};
use grebe_process::stream::check_datagram_bytes;
use schemars::JsonSchema;
use serde::Deserialize;

use super::uri::Vita49Stream;
use crate::kind::{check, sink, stream_kinds};
use crate::open::{SinkOptions, Transport};
use crate::scheme::{End, Scheme as _};

stream_kinds! {
    /// Receives VITA-49 packets over UDP, DIFI among them.
    source Vita49In = "vita49_in" of Vita49Stream {
        /// The address to listen on: vrt://:4991. ?stream=0x1f selects a stream, ?format=ci16&rate=2.4M replaces
        /// context packets.
        uri,
        /// Ends after this many samples per channel, or with the stream.
        samples,
        /// Fails when the sender is silent for this long, also before its first packet.
        idle_timeout,
    }
}

/// Sends a stream as VITA-49 packets over UDP.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vita49Out {
    /// The receiver's address: vrt://HOST:PORT; options ?profile=difi, ?stream=0x1f, ?time=gps.
    uri: String,
    /// Maximum bytes of a packet; default 1400, and at most 10 ms of the signal.
    datagram_size: Option<SizeBytes>,
}

impl Kind for Vita49Out {
    const NAME: &'static str = "vita49_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        if let Some(size) = self.datagram_size {
            check_datagram_bytes(size.0).map_err(|error| Fault::new("datagram_size", error.to_string()))?;
        }
        check(Vita49Stream::named(&self.uri, End::Sink))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let datagram_bytes = self.datagram_size.map(|size| size.0);
        let transport = Transport { datagram_bytes, ..Transport::default() };
        sink(
            &Vita49Stream::named(&self.uri, End::Sink)?,
            SinkOptions { transport, ..SinkOptions::default() },
            site,
        )
    }
}
