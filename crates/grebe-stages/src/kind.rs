//! Kinds of stages that open a stream, as graph files name them.

use std::time::Duration;

use grebe_flow::{Count, Fault, Site, SizeBytes, Stage, StageResult, Time};
use grebe_process::stream::DATAGRAM_BYTES;

use crate::error::Error;
use crate::open::{Notice, SinkOptions, SourceOptions};
use crate::scheme::Scheme;
use crate::tuner::{Tuner, Tuning};

/// Declares the kinds of a source and a sink whose parameters are in the name: help text, name of the kind, scheme, and
/// help per parameter.
macro_rules! stream_kinds {
    ($($(#[$about:meta])* $end:ident $kind:ident = $name:literal of $scheme:ty { $($(#[$said:meta])* $param:ident,)+ })+) => {
        $(crate::kind::stream_kinds!(@$end $(#[$about])* $kind, $name, $scheme, { $($(#[$said])* $param,)+ });)+
    };
    (@source $(#[$about:meta])* $kind:ident, $name:literal, $scheme:ty, {
        $(#[$uri:meta])* uri, $(#[$samples:meta])* samples, $(#[$timeout:meta])* idle_timeout,
    }) => {
        $(#[$about])*
        #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $kind {
            $(#[$uri])*
            uri: String,
            $(#[$samples])*
            samples: Option<grebe_flow::Count>,
            $(#[$timeout])*
            idle_timeout: Option<grebe_flow::Time>,
        }

        impl $kind {
            fn stream(&self) -> Result<$scheme, crate::error::Error> {
                <$scheme as crate::scheme::Scheme>::named(&self.uri, crate::scheme::End::Source)
            }

            fn samples(&self) -> crate::scheme::Samples {
                self.stream().as_ref().map(crate::scheme::Scheme::samples).unwrap_or_default()
            }
        }

        impl grebe_flow::Kind for $kind {
            const NAME: &'static str = $name;
            const PORTS: grebe_flow::Ports = grebe_flow::Ports::SOURCE;

            fn check(&self) -> Result<(), grebe_flow::Fault> {
                crate::kind::check(self.stream())
            }

            fn channels(&self, _: Option<u32>) -> Result<Option<u32>, grebe_flow::Fault> {
                Ok(self.samples().channels)
            }

            fn format(
                &self,
                _: Option<grebe_frame::SampleFormat>,
            ) -> Result<Option<grebe_frame::SampleFormat>, grebe_flow::Fault> {
                Ok(self.samples().format)
            }

            fn rate_hz(&self, _: Option<f64>) -> Option<f64> {
                self.samples().rate_hz
            }

            fn claims(&self) -> Option<String> {
                crate::scheme::Scheme::claim(&self.stream().ok()?, crate::scheme::End::Source)
            }

            fn build(
                self,
                site: &mut grebe_flow::Site,
            ) -> grebe_flow::StageResult<Box<dyn grebe_flow::Stage>> {
                let options = crate::kind::source_options(self.samples, self.idle_timeout, site);
                crate::kind::source(&self.stream()?, options, site)
            }
        }
    };
    (@sink $(#[$about:meta])* $kind:ident, $name:literal, $scheme:ty, { $(#[$uri:meta])* uri, }) => {
        $(#[$about])*
        #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $kind {
            $(#[$uri])*
            uri: String,
        }

        impl $kind {
            fn stream(&self) -> Result<$scheme, crate::error::Error> {
                <$scheme as crate::scheme::Scheme>::named(&self.uri, crate::scheme::End::Sink)
            }
        }

        impl grebe_flow::Kind for $kind {
            const NAME: &'static str = $name;
            const PORTS: grebe_flow::Ports = grebe_flow::Ports::SINK;

            fn check(&self) -> Result<(), grebe_flow::Fault> {
                crate::kind::check(self.stream())
            }

            fn claims(&self) -> Option<String> {
                crate::scheme::Scheme::claim(&self.stream().ok()?, crate::scheme::End::Sink)
            }

            fn build(
                self,
                site: &mut grebe_flow::Site,
            ) -> grebe_flow::StageResult<Box<dyn grebe_flow::Stage>> {
                crate::kind::sink(&self.stream()?, crate::open::SinkOptions::default(), site)
            }
        }
    };
}
pub(crate) use stream_kinds;

/// Opens a source. Its notices become notes of the graph.
pub(crate) fn source<S: Scheme>(
    from: &S,
    options: SourceOptions,
    site: &mut Site,
) -> StageResult<Box<dyn Stage>> {
    let source = from.open_source(options, &mut |notice: Notice| site.note(notice.to_string()))?;
    if let Some(address) = source.address {
        site.note(format!("listening on {address}"));
    }
    Ok(source.stage)
}

/// Common options of sources: limits, cancellation, the reader's name, and the tuner of a receiver.
pub(crate) fn source_options(
    samples: Option<Count>,
    idle_timeout: Option<Time>,
    site: &Site,
) -> SourceOptions {
    SourceOptions {
        samples: samples.map(|samples| samples.0),
        idle_timeout: idle_timeout.map(|timeout| timeout.0),
        reader: site.id().to_owned(),
        tuner: Some(tuner_of(site.id(), site)),
        cancel: site.cancel().clone(),
        ..SourceOptions::default()
    }
}

/// The tuner of the receiver with this id. The receiver sets its tuning when it opens.
pub(crate) fn tuner_of(receiver: &str, site: &Site) -> Tuner {
    site.shared(receiver, || Tuner::new(Tuning { frequency_hz: 0.0, rate_hz: 0.0, gain_db: None }))
}

/// Opens a sink. Its notices become notes of the graph, and cancelling the graph ends its wait for readers.
pub(crate) fn sink<S: Scheme>(to: &S, options: SinkOptions, site: &mut Site) -> StageResult<Box<dyn Stage>> {
    let options = SinkOptions { cancel: site.cancel().clone(), ..options };
    Ok(to.open_sink(&options, &mut |notice: Notice| site.note(notice.to_string()))?.stage)
}

/// Checks a name in a graph file.
pub(crate) fn check<S>(stream: Result<S, Error>) -> Result<(), Fault> {
    stream.map(drop).map_err(|error| Fault::new("uri", error.to_string()))
}

pub(crate) fn datagram_size() -> SizeBytes {
    SizeBytes(DATAGRAM_BYTES)
}

pub(crate) fn latency() -> Time {
    Time(Duration::from_micros(500))
}
