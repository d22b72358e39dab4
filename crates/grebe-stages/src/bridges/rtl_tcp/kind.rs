//! Receivers behind rtl_tcp, and servers.

use grebe_flow::{Fault, Kind, Ports, Site, Stage, StageName, StageResult};
use grebe_frame::SampleFormat;
use schemars::JsonSchema;
use serde::Deserialize;

use super::uri::RtlTcp;
use crate::bridges::soapy::SoapyIn;
use crate::error::Error;
use crate::kind::{check, sink, stream_kinds, tuner_of};
use crate::open::SinkOptions;
use crate::scheme::{End, Scheme as _};

stream_kinds! {
    /// Samples of a receiver behind rtl_tcp.
    source RtlTcpIn = "rtl_tcp_in" of RtlTcp {
        /// The server and its tuning: rtl_tcp://HOST:PORT?frequency=100M&rate=2.4M&gain=20
        uri,
        /// Ends after this many samples per channel, or with the stream.
        samples,
        /// Fails after this long without samples.
        idle_timeout,
    }
}

/// Serves cu8 samples to all clients of rtl_tcp. A slow client loses samples, and holds up no other.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RtlTcpOut {
    /// The address to listen on: rtl_tcp://:1234?listen. With ?wait=N the graph starts after N clients have connected;
    /// default 1.
    uri: String,
    /// The receiver that clients may tune: the id of its stage, a soapy_in or rtl_tcp_in. Without it, commands are only
    /// counted.
    tunes: Option<String>,
}

impl RtlTcpOut {
    fn stream(&self) -> Result<RtlTcp, Error> {
        RtlTcp::named(&self.uri, End::Sink)
    }
}

impl Kind for RtlTcpOut {
    const NAME: &'static str = "rtl_tcp_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        check(self.stream())
    }

    fn format(&self, incoming: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        self.stream()
            .map_or(Ok(()), |stream| stream.takes(incoming, None))
            .map_err(|why| Fault::new("uri", why))?;
        Ok(incoming)
    }

    fn claims(&self) -> Option<String> {
        self.stream().ok()?.claim(End::Sink)
    }

    fn names(&self) -> Option<StageName<'_>> {
        let id = self.tunes.as_deref()?;
        Some(StageName { param: "tunes", id, kinds: &[SoapyIn::NAME, RtlTcpIn::NAME] })
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let tuner = self.tunes.as_deref().map(|receiver| tuner_of(receiver, site));
        sink(&self.stream()?, SinkOptions { tuner, ..SinkOptions::default() }, site)
    }
}
