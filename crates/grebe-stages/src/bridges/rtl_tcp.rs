//! The protocol of `rtl_tcp`, by which an RTL-SDR is used over a network: `rtl_tcp://HOST:PORT?frequency=100M&rate=2.4M`.
//!
//! ```text
//!  server                                  client
//!    | -- RTL0, tuner, number of gains ----> |    12 bytes, once
//!    | -- I Q I Q I Q ... -----------------> |    unsigned bytes, without end
//!    | <---- command, value ---------------- |    5 bytes, whenever the client likes
//! ```

mod kind;
mod receiver;
mod server;
mod uri;
mod wire;

pub(crate) use kind::RtlTcpIn;
pub use uri::RtlTcp;
#[cfg(any(fuzzing, test))]
pub(crate) use wire::{Command, Hello};

use std::fmt;

use grebe_flow::Kinds;
use grebe_frame::SampleFormat;

use crate::error::Error;
use crate::open::{Notice, Notify, OpenSink, OpenSource, SinkOptions, SourceOptions};
use crate::scheme::{End, Samples, Scheme, Traits};
use crate::session::Bounded as _;
use kind::RtlTcpOut;
use receiver::receiver;
use server::RtlTcpServer;

impl Scheme for RtlTcp {
    const WRITTEN: &'static str = "rtl_tcp://HOST:PORT";
    const OTHERWISE: &'static str =
        "is not an rtl_tcp server: write rtl_tcp://HOST:PORT?frequency=100M&rate=2.4M";

    fn parse(name: &str) -> Option<Result<Self, String>> {
        name.strip_prefix("rtl_tcp://").map(Self::parse)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rtl_tcp://{}{}", self.at, self.pairs())
    }

    fn traits(&self) -> Traits {
        Traits::LIVE
    }

    fn check(&self, end: End) -> Result<(), String> {
        match end {
            End::Source if self.listens => {
                Err("has listen, which makes it a server: a server can only be a sink".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn claim(&self, end: End) -> Option<String> {
        (end == End::Sink).then(|| format!("the address {}", self.uri()))
    }

    fn samples(&self) -> Samples {
        let rate_hz = Some(self.tuning.rate_hz);
        Samples { channels: Some(1), format: Some(SampleFormat::Cu8), rate_hz }
    }

    fn takes(&self, format: Option<SampleFormat>, channels: Option<u32>) -> Result<(), String> {
        match (format.unwrap_or(SampleFormat::Cu8), channels.unwrap_or(1)) {
            (SampleFormat::Cu8, 1) => Ok(()),
            (format, channels) => Err(format!(
                "the stream is {channels} x {format}, but rtl_tcp carries cu8 in one: put a stage convert or select before it, or run grebe convert on a recording first"
            )),
        }
    }

    fn open_source(&self, options: SourceOptions, notify: Notify<'_>) -> Result<OpenSource, Error> {
        let patience = options.patience(self.reconnects);
        let (source, tuner) =
            patience.open(notify, |_| receiver(self, options.tuner.as_ref(), &options.cancel))?;
        notify(Notice::LossByClock("rtl_tcp has no sequence numbers: drops of its server"));
        let source = source.bounded(&options);
        let rate_hz = Some(self.tuning.rate_hz);
        Ok(OpenSource { rate_hz, tuner: Some(tuner), ..OpenSource::of(source) })
    }

    fn open_sink(&self, options: &SinkOptions, notify: Notify<'_>) -> Result<OpenSink, Error> {
        Ok(OpenSink::of(RtlTcpServer::open(self, options.tuner.clone(), &options.cancel, notify)?))
    }

    fn kinds(kinds: &mut Kinds) {
        kinds.add::<RtlTcpIn>().add::<RtlTcpOut>();
    }
}

#[cfg(test)]
mod tests;
