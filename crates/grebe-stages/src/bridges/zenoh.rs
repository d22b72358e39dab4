//! Streams over Zenoh, and streams by name.
//!
//! ```text
//!  announced.rs  a sink that announces a stream, and sends it over Zenoh on request
//!    on_request.rs  and by UDP, on request
//!  named.rs      a source by name: finds the producer, takes the best route, finds it again when it returns
//!    routes.rs   the possible routes, and the best from here
//!    asking.rs   requests datagrams from a producer, and checks that they arrive
//!  sink.rs, source.rs   zenoh://KEY: frames in messages
//! ```

mod announced;
mod asking;
mod kind;
mod named;
mod on_request;
mod routes;
mod sink;
mod source;
mod uri;

pub use uri::{NamedStream, Route, ZenohKey};

use std::fmt;

use announced::AnnouncedSink;
use grebe_flow::Kinds;
use grebe_process::stream::DATAGRAM_BYTES;
use grebe_shm::{Policy, SubscriberOptions};
use grebe_zenoh::Lab;
use kind::{NamedIn, NamedOut, ZenohIn, ZenohOut};
use named::{NamedSource, Reading};
use sink::ZenohSink;
use source::{ReaderOptions, ZenohSource};

use crate::error::Error;
use crate::open::{Notice, Notify, OpenSink, OpenSource, SinkOptions, SourceOptions};
use crate::scheme::{End, Scheme, Traits};
use crate::session::Bounded as _;

impl Scheme for ZenohKey {
    const WRITTEN: &'static str = "zenoh://KEY";
    const OTHERWISE: &'static str = "is not a Zenoh key: write zenoh://WORD/WORD";

    fn parse(name: &str) -> Option<Result<Self, String>> {
        name.strip_prefix("zenoh://").map(Self::parse)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "zenoh://{}{}", self.key, self.pairs())
    }

    fn traits(&self) -> Traits {
        Traits { is_local: false, ..Traits::LIVE }
    }

    fn claim(&self, end: End) -> Option<String> {
        (end == End::Sink).then(|| format!("the key {}", self.key))
    }

    fn uri_for_readers(&self) -> Option<String> {
        Some(format!("zenoh://{}", self.key))
    }

    fn open_source(&self, options: SourceOptions, _: Notify<'_>) -> Result<OpenSource, Error> {
        let reader = ReaderOptions {
            // Blocking would hold up the whole link, so only the name can request it.
            policy: Some(options.policy).filter(|policy| *policy != Policy::Block),
            listens_on: options.listens_on,
        };
        Ok(OpenSource::of(ZenohSource::open(self, reader)?.bounded(&options)))
    }

    fn open_sink(&self, options: &SinkOptions, notify: Notify<'_>) -> Result<OpenSink, Error> {
        if self.waits {
            notify(Notice::WaitingForReaders { count: 1 });
        }
        Ok(OpenSink::of(ZenohSink::open(self, &options.cancel)?))
    }

    fn kinds(kinds: &mut Kinds) {
        kinds.add::<ZenohIn>().add::<ZenohOut>();
    }
}

impl Scheme for NamedStream {
    const WRITTEN: &'static str = "a name such as lab/mast3/adc";
    const OTHERWISE: &'static str =
        "is not a stream name: write words with slashes between, such as lab/mast3/adc";

    fn parse(name: &str) -> Option<Result<Self, String>> {
        Self::parse(name)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        self.route.map_or(Ok(()), |route| write!(f, "?route={}", route.name()))
    }

    fn traits(&self) -> Traits {
        Traits { is_local: false, ..Traits::LIVE }
    }

    fn check(&self, end: End) -> Result<(), String> {
        match self.route {
            Some(route) if end == End::Sink => Err(format!(
                "has route={}, which is for readers: give other destinations with --to",
                route.name()
            )),
            _ => Ok(()),
        }
    }

    fn claim(&self, end: End) -> Option<String> {
        (end == End::Sink).then(|| format!("the name {}", self.name))
    }

    /// Readers by UDP are on other hosts; over Zenoh a message holds many frames.
    fn datagram_bytes(&self) -> Result<usize, Error> {
        Ok(DATAGRAM_BYTES)
    }

    fn open_source(&self, options: SourceOptions, notify: Notify<'_>) -> Result<OpenSource, Error> {
        let subscriber = SubscriberOptions {
            policy: options.policy,
            name: options.reader,
            // As large as its share of the memory.
            queue_batches: 1 << 16,
            ..SubscriberOptions::default()
        };
        let reading = Reading {
            transport: options.transport,
            subscriber,
            samples: options.samples,
            listens_on: options.listens_on,
            idle_timeout: options.idle_timeout,
            waits: options.waits,
            open_timeout: options.open_timeout,
            cancel: options.cancel,
        };
        let source = NamedSource::open(self, reading, notify)?;
        Ok(OpenSource { lent_max: source.lent_max(), ..OpenSource::of(source) })
    }

    fn open_sink(&self, options: &SinkOptions, notify: Notify<'_>) -> Result<OpenSink, Error> {
        let lab = Lab::shared()?;
        let sink =
            AnnouncedSink::open(&lab, &self.name, &options.producer, &options.routes, &options.transport)?;
        notify(Notice::Announced { name: self.name.to_string(), reach: lab.reach().to_owned() });
        Ok(OpenSink::of(sink))
    }

    fn kinds(kinds: &mut Kinds) {
        kinds.add::<NamedIn>().add::<NamedOut>();
    }
}
