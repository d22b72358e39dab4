//! Counters of processes, for viewers of the lab.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use zenoh::Wait;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::sample::{Sample, SampleKind};

use super::failure::failed;
use super::lab::Lab;
use crate::counts::Counts;
use crate::error::Error;
use crate::what::{COUNTS, token};

/// Publishes counts of this process while it exists.
#[derive(Debug)]
pub struct CountsSender {
    publisher: Publisher<'static>,
    _token: zenoh::liveliness::LivelinessToken,
    _lab: Lab,
}

impl CountsSender {
    pub(super) fn declare(lab: &Lab, number: u32) -> Result<Self, Error> {
        let key = format!("{COUNTS}{}/{number}", lab.id());
        let action = "publish counters";
        let publisher = lab.0.session.declare_publisher(key.clone()).wait().map_err(failed(action))?;
        let token = lab.0.session.liveliness().declare_token(key).wait().map_err(failed(action))?;
        Ok(Self { publisher, _token: token, _lab: lab.clone() })
    }

    /// Whether there is a viewer, as far as known here.
    pub fn is_watched(&self) -> bool {
        self.publisher.matching_status().wait().is_ok_and(|status| status.matching())
    }

    /// Sends the counts to all viewers. Dropped if a link is too slow.
    ///
    /// # Errors
    /// The session is closed.
    pub fn send(&self, counts: Vec<u8>) -> Result<(), Error> {
        self.publisher.put(counts).wait().map_err(failed("publish counters"))
    }
}

/// The counts of all processes of the lab, while this exists.
#[derive(Debug)]
pub struct CountsWatch {
    seen: Arc<Seen>,
    _tokens: Subscriber<()>,
    _counts: Subscriber<()>,
    _lab: Lab,
}

#[derive(Debug, Default)]
struct Seen(Mutex<All>);

/// By session and number.
type All = BTreeMap<(String, String), (Arc<[u8]>, Instant)>;

impl CountsWatch {
    pub(super) fn begin(lab: &Lab) -> Result<Self, Error> {
        let seen = Arc::new(Seen::default());
        let action = "watch counters";
        let key = format!("{COUNTS}*/*");
        let tell = seen.clone();
        let counts = lab.0.session.declare_subscriber(key.clone()).callback(move |sample| tell.take(&sample));
        let counts = counts.wait().map_err(failed(action))?;
        let tell = seen.clone();
        let tokens = lab.0.session.liveliness().declare_subscriber(key).history(true);
        let tokens = tokens.callback(move |sample| tell.take_token(&sample)).wait();
        Ok(Self { seen, _tokens: tokens.map_err(failed(action))?, _counts: counts, _lab: lab.clone() })
    }

    /// The processes, with the last counts of each.
    pub fn look(&self) -> Vec<Counts> {
        let seen = self.seen.lock();
        seen.iter()
            .map(|(of, (bytes, at))| Counts { of: of.clone(), bytes: bytes.clone(), at: *at })
            .collect()
    }
}

impl Seen {
    fn take(&self, sample: &Sample) {
        let Some(of) = token(sample.key_expr().as_str(), COUNTS) else { return };
        if sample.payload().len() > COUNTS_BYTES_MAX {
            return;
        }
        // Only of present processes: a last message may arrive after its sender has gone.
        if let Some(last) = self.lock().get_mut(&of) {
            *last = (sample.payload().to_bytes().into(), Instant::now());
        }
    }

    fn take_token(&self, sample: &Sample) {
        let Some(of) = token(sample.key_expr().as_str(), COUNTS) else { return };
        let mut all = self.lock();
        match sample.kind() {
            SampleKind::Put if all.len() < PROCESSES_MAX => {
                all.entry(of).or_insert_with(|| (Arc::default(), Instant::now()));
            }
            SampleKind::Put => {}
            SampleKind::Delete => drop(all.remove(&of)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Enough for a thousand stages.
const COUNTS_BYTES_MAX: usize = 1 << 20;
/// Maximum number of processes. Further ones are ignored.
const PROCESSES_MAX: usize = 4_096;
