//! This process in the lab: one session of Zenoh's.

mod announcement;
mod config;
mod counts;
mod data;
mod refusal;
mod requests;
mod seen;
mod watch;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use zenoh::query::{ConsolidationMode, QueryTarget};
use zenoh::{Session, Wait};

use crate::error::Error;
use crate::name::{Pattern, StreamName};
use crate::options::{Overflow, SessionOptions};
use crate::request::{Answer, Request};
use crate::what::{Found, HERE, LIVE, WHAT, What};

pub use announcement::{Announcement, Presence};
pub use counts::{CountsSender, CountsWatch};
pub use data::{DataReceiver, DataSender, Message};
pub use requests::Requests;
pub use watch::Watch;

/// What this process has of a lab. Clones share the session, as does whatever comes of one; it is closed with the last of them.
#[derive(Debug, Clone)]
pub struct Lab(Arc<Joined>);

#[derive(Debug)]
struct Joined {
    session: Session,
    reach: String,
    options: SessionOptions,
    /// All that is said goes through a router, which may drop some of it.
    has_router: bool,
    /// The streams that this process sends or reads by name, and how often.
    uses: Mutex<BTreeMap<StreamName, usize>>,
}

/// Says that this process sends or reads a stream, until it is dropped.
#[derive(Debug)]
pub struct Using {
    name: StreamName,
    lab: Lab,
}

impl Lab {
    /// Joins. Where there is a router to reach, that takes as long as it takes to reach it; else half a second to find others.
    ///
    /// # Errors
    /// A configuration that makes no sense, or a router that does not answer or lets nobody in.
    pub fn open(options: &SessionOptions) -> Result<Self, Error> {
        let reach = options.reach();
        let config = config::of(options)?;
        let has_router = config.get_json("mode").is_ok_and(|mode| mode == "\"client\"");
        // A file says itself for how long Zenoh tries.
        let tries_on = !options.routers.is_empty() && options.config.is_none();
        let until = Instant::now() + if tries_on { ROUTER_WITHIN } else { Duration::ZERO };
        loop {
            let (session, warnings) = refusal::warnings_of(|| zenoh::open(config.clone()).wait());
            let error = match session {
                Ok(session) => {
                    return Ok(Self(Arc::new(Joined {
                        session,
                        reach,
                        options: options.clone(),
                        has_router,
                        uses: Mutex::default(),
                    })));
                }
                Err(error) => error,
            };
            let reason = refusal::reason(&warnings);
            if Instant::now() >= until || reason.as_ref().is_some_and(|reason| reason.is_final) {
                let why = reason.map_or_else(|| why(error), |reason| reason.why);
                return Err(Error::Join { reach, why });
            }
            std::thread::sleep(RETRY_EVERY);
        }
    }

    /// The session that all of this process share, opened as [`configure`](crate::configure) says where nobody has it open.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn shared() -> Result<Self, Error> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(joined) = shared.upgrade() {
            return Ok(Self(joined));
        }
        let lab = Self::open(&SessionOptions::of_this_process())?;
        *shared = Arc::downgrade(&lab.0);
        Ok(lab)
    }

    /// The [shared](Self::shared) session, where something of this process has it open.
    pub fn joined() -> Option<Self> {
        SHARED.lock().unwrap_or_else(PoisonError::into_inner).upgrade().map(Self)
    }

    /// How far this process looks, for people.
    pub fn reach(&self) -> &str {
        &self.0.reach
    }

    /// Where somebody looked who found nothing, for people.
    pub fn looked_by(&self) -> String {
        let doubt =
            if self.0.has_router { ", whose access control may hide streams from this user" } else { "" };
        format!("{}{doubt}", self.0.reach)
    }

    /// This process's id in the lab: it is a part of the keys of what it announces.
    pub fn id(&self) -> String {
        self.0.session.zid().to_string()
    }

    /// The key of the frames of a stream that this process announces.
    pub fn data_key(&self, name: &StreamName) -> String {
        data_key(&self.id(), name)
    }

    /// The streams that there are. Each producer that is there answers within `timeout`, or is left out.
    ///
    /// # Errors
    /// The session is closed.
    pub fn list(&self, pattern: &Pattern, timeout: Duration) -> Result<Vec<Found>, Error> {
        // Others are found one after the other: they are waited for as long as some come.
        self.watch(pattern)?.settle(SETTLE);
        self.ask(&format!("{WHAT}*/{pattern}"), timeout)
    }

    /// What the producer with this session says of a stream; `None` where it does not answer within `timeout`.
    ///
    /// # Errors
    /// As for [`list`](Self::list).
    pub fn what(&self, session: &str, name: &StreamName, timeout: Duration) -> Result<Option<Found>, Error> {
        Ok(self.ask(&format!("{WHAT}{session}/{name}"), timeout)?.pop())
    }

    fn ask(&self, key: &str, timeout: Duration) -> Result<Vec<Found>, Error> {
        let asked = self.0.session.get(key);
        let asked = asked.target(QueryTarget::All).consolidation(ConsolidationMode::None).timeout(timeout);
        let answers = asked.wait().map_err(failed("ask for streams"))?;
        // What cannot be read is of another program, or of a later grebe.
        let read = |answer: zenoh::query::Reply| {
            let sample = answer.into_result().ok()?;
            Found::parse(sample.key_expr().as_str(), &sample.payload().to_bytes()).ok()
        };
        let mut found: Vec<Found> = answers.iter().filter_map(read).collect();
        found.sort_by(|a, b| (&a.name, &a.session).cmp(&(&b.name, &b.session)));
        found.dedup_by(|a, b| (&a.name, &a.session) == (&b.name, &b.session));
        Ok(found)
    }

    /// Follows who announces streams of these names.
    ///
    /// # Errors
    /// The session is closed.
    pub fn watch(&self, pattern: &Pattern) -> Result<Watch, Error> {
        Watch::begin(self, HERE, pattern.as_str())
    }

    /// Follows who sends to a key.
    ///
    /// # Errors
    /// The session is closed.
    pub fn watch_key(&self, key: &str) -> Result<Watch, Error> {
        Watch::begin(self, LIVE, key)
    }

    /// Tells those who [watch](Self::watch_key) a key that somebody sends to it, until what this answers is dropped.
    ///
    /// # Errors
    /// No such key can be, the session is closed, or this user may not send there.
    pub fn show(&self, key: &str) -> Result<Presence, Error> {
        let presence = Presence::show(self, LIVE, key)?;
        seen::check(self, LIVE, key, key)?;
        Ok(presence)
    }

    /// Announces a stream until what this answers is dropped, or the process dies.
    ///
    /// # Errors
    /// Another process announces a stream of that name, or this user may not.
    pub fn announce(&self, name: &StreamName, what: What) -> Result<Announcement, Error> {
        Announcement::make(self, name, what)
    }

    /// Whether this process takes part in datagrams on request
    /// ([`SessionOptions::no_udp_on_request`](crate::SessionOptions::no_udp_on_request)).
    pub fn has_udp_on_request(&self) -> bool {
        !self.0.options.no_udp_on_request
    }

    /// Addresses of this host at which another may reach it, those of IPv4 first.
    pub fn addresses(&self) -> Vec<IpAddr> {
        requests::own_addresses()
    }

    /// Has readers answered that ask for a stream of this process by UDP, until what this answers is dropped. `answer` is called by
    /// threads of Zenoh's, and should not wait.
    ///
    /// # Errors
    /// The session is closed.
    pub fn take_requests(
        &self,
        name: &StreamName,
        answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Result<Requests, Error> {
        Requests::take(self, name, answer)
    }

    /// Asks the producer with this session for a stream by UDP; `None` where it does not answer within `timeout`.
    ///
    /// # Errors
    /// The session is closed.
    pub fn request(
        &self,
        session: &str,
        name: &StreamName,
        request: &Request,
        timeout: Duration,
    ) -> Result<Option<Answer>, Error> {
        requests::request(self, session, name, request, timeout)
    }

    /// Notes that this process sends or reads a stream: whoever watches its counts finds it by that name.
    pub fn using(&self, name: &StreamName) -> Using {
        *self.0.uses().entry(name.clone()).or_default() += 1;
        Using { name: name.clone(), lab: self.clone() }
    }

    /// The streams that this process sends or reads by name.
    pub fn uses(&self) -> Vec<StreamName> {
        self.0.uses().keys().cloned().collect()
    }

    /// Tells others what this process counts; `number` is another one for each that tells it in this process.
    ///
    /// # Errors
    /// The session is closed.
    pub fn counts_sender(&self, number: u32) -> Result<CountsSender, Error> {
        CountsSender::declare(self, number)
    }

    /// Follows what all processes of the lab count.
    ///
    /// # Errors
    /// The session is closed.
    pub fn counts(&self) -> Result<CountsWatch, Error> {
        CountsWatch::begin(self)
    }

    /// Frames go to this key; `blocks`: where a reader or a link cannot follow, they wait, and Zenoh closes a link that takes nothing for
    /// five seconds. Else they are dropped.
    ///
    /// # Errors
    /// No such key can be, or the session is closed.
    pub fn sender(&self, key: &str, blocks: bool) -> Result<DataSender, Error> {
        DataSender::declare(self, key, blocks)
    }

    /// Frames that come to this key.
    ///
    /// # Errors
    /// As for [`sender`](Self::sender).
    pub fn receiver(&self, key: &str, overflow: Overflow) -> Result<DataReceiver, Error> {
        DataReceiver::declare(self, key, overflow)
    }
}

impl Joined {
    fn uses(&self) -> MutexGuard<'_, BTreeMap<StreamName, usize>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Using {
    fn drop(&mut self) {
        let mut uses = self.lab.0.uses();
        if let Some(count) = uses.get_mut(&self.name) {
            *count -= 1;
        }
        uses.retain(|_, count| *count > 0);
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        // It is gone in any case.
        let _ = self.session.close().wait();
    }
}

static SHARED: Mutex<Weak<Joined>> = Mutex::new(Weak::new());

/// For how long a router is waited for that nobody reaches.
const ROUTER_WITHIN: Duration = Duration::from_secs(5);
const RETRY_EVERY: Duration = Duration::from_millis(250);

/// How long the next of those that are found takes to come.
const SETTLE: Duration = Duration::from_millis(300);

/// The key of the frames of a stream that somebody announces.
pub(crate) fn data_key(session: &str, name: &StreamName) -> String {
    format!("grebe/data/{session}/{name}")
}

/// What to make of an error of Zenoh's.
fn failed(action: &str) -> impl Fn(zenoh::Error) -> Error + use<> {
    let action = action.to_owned();
    move |error| Error::Zenoh { action: action.clone(), why: why(error) }
}

/// An error in Zenoh's words, without the places in its source.
fn why(error: zenoh::Error) -> String {
    without_places(&error.to_string())
}

fn without_places(text: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for part in text.split(" at ") {
        // `...: cannot connect at /path/to/link.rs:77. - Caused by ...`
        let is_place = part.split_once(".rs:").filter(|(path, _)| !path.contains(' '));
        let part = is_place
            .map_or(part, |(_, rest)| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'));
        words.push(part.trim());
    }
    words.retain(|part| !part.is_empty());
    words.join(" ").trim().trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_zenohs_source_are_no_news_for_people() {
        let text = "Can not create a new TCP link bound to 127.0.0.1:1: refused (os error 111) at /x/y-1.10/src/unicast.rs:354.";
        assert_eq!(
            why(text.into()),
            "Can not create a new TCP link bound to 127.0.0.1:1: refused (os error 111)"
        );
        assert_eq!(why("look at this".into()), "look this");
    }
}
