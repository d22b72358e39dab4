//! `shm://NAME`: memory shared with other processes of this machine.

mod kind;
mod sink;
mod source;
mod uri;

pub use {sink::ShmSink, source::ShmSource, uri::ShmName};

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use grebe_flow::Kinds;
use grebe_shm::{Error as ShmError, SubscriberOptions};

use crate::error::Error;
use crate::open::{Notice, Notify, OpenSink, OpenSource, SinkOptions, SourceOptions};
use crate::scheme::{End, Scheme, Traits};
use crate::session::Bounded as _;
use kind::{ShmIn, ShmOut};

impl Scheme for ShmName {
    const WRITTEN: &'static str = "shm://NAME";
    const OTHERWISE: &'static str = "is not a stream in shared memory: write shm://NAME";

    fn parse(name: &str) -> Option<Result<Self, String>> {
        name.strip_prefix("shm://").map(Self::parse)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shm://{}{}", self.name, self.pairs())
    }

    fn traits(&self) -> Traits {
        Traits { is_lent: true, ..Traits::LIVE }
    }

    /// By the name of the stream, not by its options.
    fn claim(&self, end: End) -> Option<String> {
        (end == End::Sink).then(|| format!("the stream shm://{}", self.name))
    }

    fn uri_for_readers(&self) -> Option<String> {
        Some(format!("shm://{}", self.name))
    }

    fn uri_for_senders(&self, _: Option<SocketAddr>) -> Option<String> {
        Some(self.uri())
    }

    fn open_source(&self, options: SourceOptions, notify: Notify<'_>) -> Result<OpenSource, Error> {
        let subscriber = SubscriberOptions {
            policy: self.policy.unwrap_or(options.policy),
            name: options.reader.clone(),
            // As large as its share of the memory.
            queue_batches: 1 << 16,
            ..SubscriberOptions::default()
        };
        let (began, mut is_told) = (Instant::now(), false);
        let within = options.patience(true).within;
        loop {
            match ShmSource::connect(&self.name, &subscriber) {
                Err(ShmError::NoStream { .. })
                    if options.waits && within.is_none_or(|within| began.elapsed() < within) =>
                {
                    if options.cancel.is_cancelled() {
                        return Err(Error::Cancelled);
                    }
                    if !is_told {
                        notify(Notice::WaitingForStream { name: self.name.clone() });
                        is_told = true;
                    }
                    std::thread::sleep(CHECK_EVERY);
                }
                source => {
                    let source = source?.bounded(&options);
                    let next = options.listens_on.then(|| (self.name.clone(), subscriber.clone()));
                    let lent_max = Some(source.lent_max());
                    return Ok(OpenSource { lent_max, ..OpenSource::of(source.listens_on(next)) });
                }
            }
        }
    }

    fn open_sink(&self, options: &SinkOptions, notify: Notify<'_>) -> Result<OpenSink, Error> {
        let mut sink = ShmSink::create(&self.name, self.publisher_options(options.frame_bytes_max))?;
        notify(Notice::Lending { name: self.name.clone(), footprint: sink.footprint() });
        let readers = usize::from(self.wait_consumers);
        if readers > 0 {
            notify(Notice::WaitingForReaders { count: readers });
        }
        while !sink.wait_for_consumers(readers, CHECK_EVERY) {
            if options.cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
        }
        let pool = options.lends_pool.then(|| sink.lend_pool()).flatten();
        Ok(OpenSink { pool, ..OpenSink::of(sink) })
    }

    fn kinds(kinds: &mut Kinds) {
        kinds.add::<ShmIn>().add::<ShmOut>();
    }
}

/// Interval of checks for cancellation and for a new stream.
const CHECK_EVERY: Duration = Duration::from_millis(50);
