//! Streams over Zenoh, and streams by their names.

use grebe_shm::{Policy, SubscriberOptions};
use grebe_zenoh::Lab;

use super::{Notice, OpenSource, SinkOptions, SourceOptions};
use crate::error::Error;
use crate::zenoh::{
    AnnouncedSink, NamedSource, NamedStream, ReaderOptions, Reading, ZenohKey, ZenohSink, ZenohSource,
};

pub(super) fn source(from: &ZenohKey, options: &SourceOptions) -> Result<OpenSource, Error> {
    let reader = ReaderOptions {
        // A link that waits holds up whatever comes by it: only where the name says so.
        policy: Some(options.policy).filter(|policy| *policy != Policy::Block),
        samples: options.samples,
        listens_on: options.listens_on,
        idle_timeout: options.idle_timeout,
    };
    Ok(OpenSource::of(ZenohSource::open(from, reader)?))
}

pub(super) fn sink(
    to: &ZenohKey,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<ZenohSink, Error> {
    if to.waits {
        notify(Notice::WaitingForReaders { count: 1 });
    }
    ZenohSink::open(to, &options.cancel)
}

pub(super) fn named_source(
    from: &NamedStream,
    options: SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let subscriber = SubscriberOptions {
        policy: options.policy,
        name: options.reader,
        // All that its share of the memory holds, however much that is.
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
        cancel: options.cancel,
    };
    let source = NamedSource::open(from, reading, notify)?;
    Ok(OpenSource { lent_max: source.lent_max(), ..OpenSource::of(source) })
}

pub(super) fn named_sink(
    to: &NamedStream,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<AnnouncedSink, Error> {
    if let Some(way) = to.way {
        let reason =
            format!("says way={}, which is for who reads: say where else it goes by --to", way.name());
        return Err(Error::Name { name: to.to_string(), reason });
    }
    let lab = Lab::shared()?;
    let sink = AnnouncedSink::open(&lab, &to.name, &options.producer, &options.ways, &options.transport)?;
    notify(Notice::Announced { name: to.name.to_string(), reach: lab.reach().to_owned() });
    Ok(sink)
}
