//! An announced stream: a token of this process, and answers about the stream.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use zenoh::Wait;
use zenoh::liveliness::LivelinessToken;
use zenoh::query::Queryable;

use super::failure::failed;
use super::lab::{Lab, Using};
use super::seen;
use super::watch::SETTLE;
use crate::error::Error;
use crate::name::{Pattern, StreamName};
use crate::what::{Found, HERE, WHAT, What};

/// A stream that is announced until this is dropped.
#[derive(Debug)]
pub struct Announcement {
    // In this order, because a reader that sees the token may ask.
    _presence: Presence,
    _answers: Queryable<()>,
    said: Arc<Mutex<What>>,
    messages: Arc<AtomicU64>,
    _using: Using,
}

impl Announcement {
    pub(super) fn make(lab: &Lab, name: &StreamName, what: What) -> Result<Self, Error> {
        refuse_second(lab, name)?;
        let said = Arc::new(Mutex::new(what));
        let messages = Arc::new(AtomicU64::new(0));
        let (answers, sent) = (said.clone(), messages.clone());
        let key = format!("{WHAT}{}/{name}", lab.id());
        let answer_key = key.clone();
        let queryable = lab.0.session.declare_queryable(&key).complete(true).callback(move |query| {
            let mut what = answers.lock().unwrap_or_else(PoisonError::into_inner).clone();
            what.messages = sent.load(Ordering::Relaxed);
            let json = what.to_json();
            // The reader may be gone.
            let _ = query.reply(&answer_key, json).wait();
        });
        let action = format!("announce {name}");
        let queryable = queryable.wait().map_err(failed(&action))?;
        let presence = Presence::show(lab, HERE, name.as_str())?;
        seen::check(lab, HERE, name.as_str(), &lab.data_key(name))?;
        Ok(Self { _presence: presence, _answers: queryable, said, messages, _using: lab.using(name) })
    }

    /// Sets the number of its messages sent over Zenoh.
    pub fn count(&self, messages: u64) {
        self.messages.store(messages, Ordering::Relaxed);
    }

    /// Changes the announced description.
    pub fn say(&self, change: impl FnOnce(&mut What)) {
        change(&mut self.said.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A token that is visible until this is dropped.
#[derive(Debug)]
pub struct Presence {
    _token: LivelinessToken,
    _lab: Lab,
}

impl Presence {
    pub(super) fn show(lab: &Lab, prefix: &str, stream: &str) -> Result<Self, Error> {
        let token = lab.0.session.liveliness().declare_token(format!("{prefix}{}/{stream}", lab.id()));
        let token = token.wait().map_err(failed(&format!("announce {stream}")))?;
        Ok(Self { _token: token, _lab: lab.clone() })
    }
}

/// A killed producer may stay announced for a moment.
fn refuse_second(lab: &Lab, name: &StreamName) -> Result<(), Error> {
    let watch = lab.watch(&Pattern::from(name))?;
    let began = Instant::now();
    loop {
        watch.settle(SETTLE);
        let Some((session, _)) = watch.streams().into_iter().next() else { return Ok(()) };
        if began.elapsed() >= LINGERS {
            let found = lab.what(&session, name, LINGERS)?;
            let by =
                found.map_or_else(|| format!("the session {session}"), |Found { what, .. }| what.to_string());
            return Err(Error::Taken { name: name.to_string(), by });
        }
        std::thread::sleep(SETTLE);
    }
}

/// Longer than the lease of a lost host.
const LINGERS: Duration = Duration::from_millis(2_500);
