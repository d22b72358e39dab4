//! Watches producers and their streams.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use zenoh::Wait;
use zenoh::pubsub::Subscriber;
use zenoh::sample::{Sample, SampleKind};

use super::failure::failed;
use super::lab::Lab;
use crate::error::Error;
use crate::what::token;

/// The streams that are there, as long as this is kept.
#[derive(Debug)]
pub struct Watch {
    seen: Arc<Seen>,
    _tokens: Subscriber<()>,
    _lab: Lab,
}

#[derive(Debug, Default)]
struct Seen {
    streams: Mutex<Streams>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Streams {
    /// Sessions with their names or keys.
    all: BTreeSet<(String, String)>,
    changes: u64,
}

impl Watch {
    /// Of tokens `PREFIX/SESSION/PATTERN`.
    pub(super) fn begin(lab: &Lab, prefix: &'static str, pattern: &str) -> Result<Self, Error> {
        let seen = Arc::new(Seen::default());
        let tell = seen.clone();
        let tokens =
            lab.0.session.liveliness().declare_subscriber(format!("{prefix}*/{pattern}")).history(true);
        let tokens = tokens.callback(move |sample| tell.take(&sample, prefix)).wait();
        Ok(Self { seen, _tokens: tokens.map_err(failed("watch announcements"))?, _lab: lab.clone() })
    }

    /// Sessions and names (or keys) of the streams that are there, in order.
    pub fn streams(&self) -> Vec<(String, String)> {
        self.seen.lock().all.iter().cloned().collect()
    }

    /// How often that has changed: another number is another answer of [`streams`](Self::streams).
    pub fn changes(&self) -> u64 {
        self.seen.lock().changes
    }

    /// Waits until there were other than `known` changes, at most for `timeout`; whether there were.
    pub fn wait(&self, known: u64, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let mut streams = self.seen.lock();
        while streams.changes == known {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            streams = self.seen.changed.wait_timeout(streams, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Waits until nothing has changed for `quiet`.
    pub fn settle(&self, quiet: Duration) {
        while self.wait(self.changes(), quiet) {}
    }
}

impl Seen {
    fn take(&self, sample: &Sample, prefix: &str) {
        // Others may have tokens below our keys: they name no stream.
        let Some(stream) = token(sample.key_expr().as_str(), prefix) else { return };
        let mut streams = self.lock();
        let is_news = match sample.kind() {
            SampleKind::Put if streams.all.len() < STREAMS_MAX => streams.all.insert(stream),
            SampleKind::Put => false,
            SampleKind::Delete => streams.all.remove(&stream),
        };
        streams.changes += u64::from(is_news);
        self.changed.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Maximum number of streams. Further ones are ignored.
const STREAMS_MAX: usize = 65_536;

/// How long the next of those that are found takes to come.
pub(super) const SETTLE: Duration = Duration::from_millis(300);
