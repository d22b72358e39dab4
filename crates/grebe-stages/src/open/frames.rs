//! Streams of frames: over UDP, in shared memory, through a pipe.

use std::time::Duration;

use grebe_flow::Stage;
use grebe_shm::{Error as ShmError, SubscriberOptions};

use super::{Notice, OpenSource, SinkOptions, SourceOptions, udp};
use crate::error::Error;
use crate::io::{PipeSink, PipeSource, ShmSink, ShmSource, UdpSink, UdpSource, pipe};
use crate::uri::{HostPort, ShmName, Uri, Wire};

pub(super) fn udp_source(
    uri: &Uri,
    at: &HostPort,
    options: SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let socket_options = options.transport.socket_options(at)?;
    let (receiver, address) = udp::listen(uri, at, &socket_options, notify)?;
    let mut source = UdpSource::new(receiver, &socket_options);
    if let Some(pool) = options.pool {
        source = source.pool(pool);
    }
    let second_sender = Some(source.second_sender());
    let source = source.listens_on(options.listens_on);
    let stage = source.idle_timeout(options.idle_timeout).samples(options.samples);
    Ok(OpenSource { address: Some(address), second_sender, ..OpenSource::of(stage) })
}

pub(super) fn udp_sink(
    uri: &Uri,
    to: &HostPort,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<UdpSink, Error> {
    let sender = udp::send_to(uri, to, &options.transport.socket_options(to)?, notify)?;
    UdpSink::new(sender).map_err(|source| Error::Udp { action: "send to", uri: uri.to_string(), source })
}

pub(super) fn shm_source(
    shm: &ShmName,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let subscriber = SubscriberOptions {
        policy: shm.policy.unwrap_or(options.policy),
        name: options.reader.clone(),
        // All that its share of the memory holds, however much that is.
        queue_batches: 1 << 16,
        ..SubscriberOptions::default()
    };
    let mut is_told = false;
    loop {
        match ShmSource::connect(&shm.name, &subscriber) {
            Err(ShmError::NoStream { name, .. }) if options.waits => {
                if options.cancel.is_cancelled() {
                    return Err(Error::Cancelled);
                }
                if !is_told {
                    notify(Notice::WaitingForStream { name });
                    is_told = true;
                }
                std::thread::sleep(LOOK_EVERY);
            }
            source => {
                let source = source?.idle_timeout(options.idle_timeout).samples(options.samples);
                let next = options.listens_on.then(|| (shm.name.clone(), subscriber.clone()));
                let lent_max = Some(source.lent_max());
                return Ok(OpenSource { lent_max, ..OpenSource::of(source.listens_on(next)) });
            }
        }
    }
}

pub(super) fn shm_sink(
    shm: &ShmName,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<ShmSink, Error> {
    let sink = ShmSink::create(&shm.name, shm.publisher_options(options.frame_bytes_max))?;
    notify(Notice::Lending { name: shm.name.clone(), footprint: sink.footprint() });
    let readers = usize::from(shm.wait_consumers);
    if readers > 0 {
        notify(Notice::WaitingForReaders { count: readers });
    }
    while !sink.wait_for_consumers(readers, LOOK_EVERY) {
        if options.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
    }
    Ok(sink)
}

pub(super) fn standard_input(options: &SourceOptions) -> Result<OpenSource, Error> {
    let stdin = pipe::stdin().map_err(|source| Error::Closed { what: "standard input", source })?;
    let source = PipeSource::new(stdin).ends_with_writer(options.ends_with_writer);
    Ok(OpenSource::of(source.idle_timeout(options.idle_timeout).samples(options.samples)))
}

pub(super) fn standard_output(wire: Wire) -> Result<Box<dyn Stage>, Error> {
    let stdout = pipe::stdout().map_err(|source| Error::Closed { what: "standard output", source })?;
    Ok(Box::new(PipeSink::new(stdout).wire(wire)))
}

/// How soon a wait sees that it was cancelled, or that there is a stream now.
const LOOK_EVERY: Duration = Duration::from_millis(50);
