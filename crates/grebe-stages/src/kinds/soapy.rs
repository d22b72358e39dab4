//! Radios behind SoapySDR.

use grebe_flow::{Count, Fault, Kind, Ports, Site, Stage, StageResult, Time};
use grebe_frame::SampleFormat;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{check_uri, receiver_options, sink, source, wrong};
use crate::error::Error;
use crate::open::SinkOptions;
use crate::soapy::Soapy;
use crate::uri::Uri;

/// Samples that a radio behind SoapySDR receives.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SoapyIn {
    /// The radio and what it is set to: soapy:driver=rtlsdr?frequency=100M&rate=2.4M&gain=20
    uri: String,
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
    /// Fails once nothing has come for this long.
    idle_timeout: Option<Time>,
}

impl Kind for SoapyIn {
    const NAME: &'static str = "soapy_in";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        check_uri(soapy(&self.uri))
    }

    fn channels(&self, _: Option<u32>) -> Result<Option<u32>, Fault> {
        Ok(soapy(&self.uri).ok().map(|soapy| soapy.channels.len().max(1) as u32))
    }

    fn format(&self, _: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        // Without a word, it is the device's own, which nobody knows yet.
        Ok(soapy(&self.uri).ok().and_then(|soapy| soapy.format))
    }

    fn rate_hz(&self, _: Option<f64>) -> Option<f64> {
        soapy(&self.uri).ok()?.rate_hz
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let uri = Uri::Soapy(Box::new(soapy(&self.uri)?));
        source(&uri, receiver_options(self.samples, self.idle_timeout, site), site)
    }
}

/// Sends a stream by a radio behind SoapySDR, at the pace at which it takes it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SoapyOut {
    /// The radio and what it is set to: soapy:driver=hackrf?frequency=433.92M&gain=10; its rate is the stream's.
    uri: String,
}

impl Kind for SoapyOut {
    const NAME: &'static str = "soapy_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        check_uri(soapy(&self.uri))
    }

    fn claims(&self) -> Option<String> {
        soapy(&self.uri).ok().map(|soapy| format!("the radio {}", soapy.short()))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        sink(&Uri::Soapy(Box::new(soapy(&self.uri)?)), SinkOptions::default(), site)
    }
}

fn soapy(text: &str) -> Result<Soapy, Error> {
    match text.parse()? {
        Uri::Soapy(soapy) => Ok(*soapy),
        _ => Err(wrong(text, "is no radio: write soapy:driver=rtlsdr?frequency=100M&rate=2.4M")),
    }
}
