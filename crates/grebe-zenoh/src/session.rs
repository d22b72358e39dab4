//! This process's session in the lab.

mod announcement;
mod config;
mod counts;
mod data;
mod failure;
mod lab;
mod refusal;
mod requests;
mod seen;
mod watch;

use std::net::IpAddr;
use std::time::Duration;

use zenoh::Wait;
use zenoh::query::{ConsolidationMode, QueryTarget};

use failure::failed;

use crate::error::Error;
use crate::name::{Pattern, StreamName};
use crate::options::Overflow;
use crate::request::{Answer, Request};
use crate::what::{Found, HERE, LIVE, WHAT, What};

pub use announcement::{Announcement, Presence};
pub use counts::{CountsSender, CountsWatch};
pub use data::{DataReceiver, DataSender, Message};
pub use lab::{Lab, Using};
pub use requests::Requests;
pub use watch::Watch;

use watch::SETTLE;

impl Lab {
    /// Lists the streams. Skips producers that do not answer within `timeout`.
    ///
    /// # Errors
    /// The session is closed.
    pub fn list(&self, pattern: &Pattern, timeout: Duration) -> Result<Vec<Found>, Error> {
        // Producers appear one after the other: waits while new ones come.
        self.watch(pattern)?.settle(SETTLE);
        self.ask(&format!("{WHAT}*/{pattern}"), timeout)
    }

    /// The description of a stream by the producer with this session. `None` without an answer within `timeout`.
    ///
    /// # Errors
    /// As for [`list`](Self::list).
    pub fn what(&self, session: &str, name: &StreamName, timeout: Duration) -> Result<Option<Found>, Error> {
        Ok(self.ask(&format!("{WHAT}{session}/{name}"), timeout)?.pop())
    }

    fn ask(&self, key: &str, timeout: Duration) -> Result<Vec<Found>, Error> {
        let asked = self.0.session.get(key);
        let asked = asked.target(QueryTarget::All).consolidation(ConsolidationMode::None).timeout(timeout);
        let answers = asked.wait().map_err(failed("list streams"))?;
        // Unreadable answers come from other programs or from a later grebe.
        let read = |answer: zenoh::query::Reply| {
            let sample = answer.into_result().ok()?;
            Found::parse(sample.key_expr().as_str(), &sample.payload().to_bytes()).ok()
        };
        let mut found: Vec<Found> = answers.iter().filter_map(read).collect();
        found.sort_by(|a, b| (&a.name, &a.session).cmp(&(&b.name, &b.session)));
        found.dedup_by(|a, b| (&a.name, &a.session) == (&b.name, &b.session));
        Ok(found)
    }

    /// Watches the producers of these names.
    ///
    /// # Errors
    /// The session is closed.
    pub fn watch(&self, pattern: &Pattern) -> Result<Watch, Error> {
        Watch::begin(self, HERE, pattern.as_str())
    }

    /// Watches the senders to a key.
    ///
    /// # Errors
    /// The session is closed.
    pub fn watch_key(&self, key: &str) -> Result<Watch, Error> {
        Watch::begin(self, LIVE, key)
    }

    /// Announces to those who [watch](Self::watch_key) a key that this process sends to it, until the result is
    /// dropped.
    ///
    /// # Errors
    /// The key is invalid, the session is closed, or this user must not send there.
    pub fn show(&self, key: &str) -> Result<Presence, Error> {
        let presence = Presence::show(self, LIVE, key)?;
        seen::check(self, LIVE, key, key)?;
        Ok(presence)
    }

    /// Announces a stream until the result is dropped or the process ends.
    ///
    /// # Errors
    /// Another process announces a stream of that name, or this user must not.
    pub fn announce(&self, name: &StreamName, what: What) -> Result<Announcement, Error> {
        Announcement::make(self, name, what)
    }

    /// Addresses of this host for other hosts, IPv4 first.
    pub fn addresses(&self) -> Vec<IpAddr> {
        requests::own_addresses()
    }

    /// Answers readers' requests for a stream of this process by UDP, until the result is dropped. Threads of Zenoh
    /// call `answer`, which should not wait.
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

    /// Sends a request to the producer with this session. `None` without an answer within `timeout`.
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

    /// Publishes counts of this process. `number` is unique per publisher in this process.
    ///
    /// # Errors
    /// The session is closed.
    pub fn counts_sender(&self, number: u32) -> Result<CountsSender, Error> {
        CountsSender::declare(self, number)
    }

    /// Watches the counts of all processes of the lab.
    ///
    /// # Errors
    /// The session is closed.
    pub fn counts(&self) -> Result<CountsWatch, Error> {
        CountsWatch::begin(self)
    }

    /// Sends frames to this key. `blocks`: frames wait for a slow reader or link, and Zenoh closes a link that accepts
    /// nothing for five seconds. Otherwise they are dropped.
    ///
    /// # Errors
    /// The key is invalid, or the session is closed.
    pub fn sender(&self, key: &str, blocks: bool) -> Result<DataSender, Error> {
        DataSender::declare(self, key, blocks)
    }

    /// Receives the frames of this key.
    ///
    /// # Errors
    /// As for [`sender`](Self::sender).
    pub fn receiver(&self, key: &str, overflow: Overflow) -> Result<DataReceiver, Error> {
        DataReceiver::declare(self, key, overflow)
    }
}
