//! Receivers, and what serves them.

use grebe_flow::{Count, Fault, Kind, Ports, Site, Stage, StageName, StageResult, Time};
use grebe_frame::SampleFormat;
use schemars::JsonSchema;
use serde::Deserialize;

use super::soapy::SoapyIn;
use super::{check_uri, receiver_options, sink, source, tuner_of, wrong};
use crate::error::Error;
use crate::open::SinkOptions;
use crate::uri::Uri;

/// Samples of a receiver behind rtl_tcp.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RtlTcpIn {
    /// The server and what it is to be tuned to: rtl_tcp://HOST:PORT?frequency=100M&rate=2.4M&gain=20
    uri: String,
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
    /// Fails once nothing has come for this long.
    idle_timeout: Option<Time>,
}

impl Kind for RtlTcpIn {
    const NAME: &'static str = "rtl_tcp_in";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        check_uri(rtl_tcp_uri(&self.uri))
    }

    fn channels(&self, _: Option<u32>) -> Result<Option<u32>, Fault> {
        Ok(Some(1))
    }

    fn format(&self, _: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        Ok(Some(SampleFormat::Cu8))
    }

    fn rate_hz(&self, _: Option<f64>) -> Option<f64> {
        match rtl_tcp_uri(&self.uri) {
            Ok(Uri::RtlTcp(rtl)) => Some(rtl.tuning.rate_hz),
            _ => None,
        }
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        source(&rtl_tcp_uri(&self.uri)?, receiver_options(self.samples, self.idle_timeout, site), site)
    }
}

/// Sends cu8 samples to all clients of rtl_tcp that connect; one that is too slow loses some, and holds up nobody.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RtlTcpOut {
    /// The address to listen on: rtl_tcp://:1234?listen; ?wait=N where the graph is to start once N clients are there, and not one.
    uri: String,
    /// The receiver that clients may tune: the id of its stage, a soapy_in or rtl_tcp_in. Without it, what they ask for is only counted.
    tunes: Option<String>,
}

impl Kind for RtlTcpOut {
    const NAME: &'static str = "rtl_tcp_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        check_uri(rtl_tcp_uri(&self.uri))
    }

    fn format(&self, incoming: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        match incoming {
            None | Some(SampleFormat::Cu8) => Ok(incoming),
            Some(format) => Err(Fault::new(
                "uri",
                format!("rtl_tcp carries cu8, and {format} comes in: put convert before it"),
            )),
        }
    }

    fn claims(&self) -> Option<String> {
        Some(format!("the address {}", self.uri))
    }

    fn names(&self) -> Option<StageName<'_>> {
        let id = self.tunes.as_deref()?;
        Some(StageName { param: "tunes", id, kinds: &[SoapyIn::NAME, RtlTcpIn::NAME] })
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let tuner = self.tunes.as_deref().map(|receiver| tuner_of(receiver, site));
        sink(&rtl_tcp_uri(&self.uri)?, SinkOptions { tuner, ..SinkOptions::default() }, site)
    }
}

fn rtl_tcp_uri(text: &str) -> Result<Uri, Error> {
    match text.parse()? {
        uri @ Uri::RtlTcp(_) => Ok(uri),
        _ => Err(wrong(text, "is no rtl_tcp: write rtl_tcp://HOST:PORT?frequency=100M&rate=2.4M")),
    }
}
