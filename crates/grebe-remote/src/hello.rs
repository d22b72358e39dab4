//! Handshake through `ssh`: one line of JSON each way, and a third for the route of the data.

use grebe_connection::Ticket;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Result;
use crate::route::{Route, Terms};

/// A command that can run on another host.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Arguments after the program name. Other users of that host can see them, so they say nothing about the
    /// task.
    pub arguments: &'static str,
    /// Version of the task and the rest of the protocol, equal at both ends.
    pub protocol: u32,
    /// Its work in the third person, for the message about different versions: `copies`.
    pub does: &'static str,
    /// Alternative for the user if it does not start: `run grebe serve there by hand`.
    pub instead: &'static str,
    /// Whether its command line has `--bootstrap`.
    pub can_bootstrap: bool,
}

/// First line to the remote command: its task, and the allowed routes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello<T> {
    /// [`Call::protocol`].
    pub protocol: u32,
    /// Version of the sending program.
    pub version: String,
    /// Route of the data.
    pub meet: Meet,
    /// Parameters of a connection beside `ssh`.
    #[serde(flatten)]
    pub terms: Terms,
    /// The task.
    #[serde(flatten)]
    pub task: T,
}

/// How the started command and its peer meet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Meet {
    /// The command listens at this port and prints a ticket; 0 is any port. If it is unreachable, both meet
    /// at the relay.
    Listen {
        /// UDP and TCP port.
        port: u16,
        /// `HOST:PORT`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        relay: Option<String>,
    },
    /// The command connects to the peer.
    Connect {
        /// The peer's ticket.
        ticket: String,
    },
    /// Through `ssh`.
    Here,
}

/// Answer of a command that is ready, or that has another version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// [`Call::protocol`] of the remote program.
    pub(crate) protocol: u32,
    /// Version of the remote program.
    pub(crate) version: String,
    /// Ticket for the peer, if it listens.
    #[serde(default)]
    pub(crate) ticket: Option<String>,
    /// Its own address, as `ssh` reached it.
    #[serde(default)]
    pub(crate) reached_at: Option<String>,
    /// Route to the peer that it connected to.
    #[serde(default, rename = "way")]
    pub(crate) route: Option<Route>,
    /// Facts specific to one command.
    #[serde(flatten)]
    pub(crate) facts: Map<String, Value>,
}

/// Follows an unusable ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Turn {
    DataFollows,
}

/// Reason of a failure on the remote host, and its exit status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failed {
    pub(crate) why: String,
    pub(crate) status: u8,
}

impl<T> Hello<T> {
    /// Makes the greeting of this program.
    pub fn new(call: &Call, meet: Meet, terms: Terms, task: T) -> Self {
        Self { protocol: call.protocol, version: VERSION.to_owned(), meet, terms, task }
    }
}

impl Ready {
    /// Makes the answer of this program.
    pub fn of(protocol: u32) -> Self {
        let version = VERSION.to_owned();
        Self { protocol, version, ticket: None, reached_at: None, route: None, facts: Map::new() }
    }

    /// Adds a ticket for the peer.
    #[must_use]
    pub fn with_ticket(self, ticket: &Ticket) -> Self {
        Self { ticket: Some(ticket.word().to_string()), ..self }
    }

    /// Adds a fact for the other end if it holds.
    #[must_use]
    pub fn with(mut self, fact: &str, holds: bool) -> Self {
        if holds {
            self.facts.insert(fact.to_owned(), true.into());
        }
        self
    }

    /// Whether a fact holds at the other end. Older programs know fewer facts.
    pub fn has(&self, fact: &str) -> bool {
        self.facts.get(fact) == Some(&Value::Bool(true))
    }

    /// Encodes a line for the command's standard output.
    pub(crate) fn line(&self) -> String {
        serde_json::json!({ READY: self }).to_string()
    }

    pub(crate) fn read(line: &str) -> Option<Self> {
        let mut line: Value = serde_json::from_str(line).ok()?;
        serde_json::from_value(line.get_mut(READY)?.take()).ok()
    }
}

/// Encodes an event for the starting process, as a line of standard error.
pub fn event_line(event: &impl Serialize) -> String {
    format!("{EVENT}{}}}", serde_json::to_string(event).unwrap_or_default())
}

/// Encodes a failure as a line: the reason and the exit status.
pub fn failed_line(why: String, status: u8) -> String {
    event_line(&serde_json::json!({ FAILED: Failed { why, status } }))
}

/// Decodes an event or a failure of the remote command.
pub(crate) fn read_event(line: &str) -> Option<Result<Value, Failed>> {
    let event = line.strip_prefix(EVENT)?.strip_suffix('}')?;
    let mut event: Value = serde_json::from_str(event).ok()?;
    match event.get_mut(FAILED) {
        Some(failed) => serde_json::from_value(failed.take()).ok().map(Err),
        None => Some(Ok(event)),
    }
}

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Prefix of lines on standard error that are for the starting process and not for the user.
pub(crate) const EVENT: &str = "{\"grebe\":";
const FAILED: &str = "failed";
/// Prefix in the first version of `cp`; older ends still write and read it.
const READY: &str = "grebe-cp";

#[cfg(test)]
mod tests {
    use grebe_connection::Mode;

    use super::*;
    use crate::route::Via;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Task {
        paths: Vec<String>,
        size: Option<u64>,
    }

    #[test]
    fn a_hello_and_its_answer_are_read_as_they_were_written() {
        let call = Call { arguments: "x", protocol: 7, does: "x", instead: "", can_bootstrap: false };
        let hello = Hello::new(
            &call,
            Meet::Listen { port: 7, relay: Some("lab:4737".to_owned()) },
            Terms { via: Via::Auto, mode: Mode::Background, limit_bits_per_s: Some(2e6) },
            Task { paths: vec!["a\nb".to_owned()], size: Some(u64::MAX) },
        );
        let line = serde_json::to_string(&hello).unwrap();
        assert!(!line.contains('\n') && line.contains("\"background\""), "{line}");
        assert_eq!(serde_json::from_str::<Hello<Task>>(&line).unwrap(), hello);
        let older = serde_json::from_str::<Meet>("{\"listen\":{\"port\":7}}").unwrap();
        assert_eq!(older, Meet::Listen { port: 7, relay: None });

        let ready = Ready { ticket: Some("grebea".to_owned()), route: Some(Route::Tcp), ..Ready::of(1) };
        let ready = ready.with("knows_order", true).with("is_fresh", false);
        assert_eq!(Ready::read(&ready.line()), Some(ready.clone()));
        assert!(ready.has("knows_order") && !ready.has("is_fresh"));
        assert_eq!(Ready::read("{\"a\":1}"), None);
        assert_eq!(Ready::read("Welcome"), None);
        // Format of older programs.
        let older = "{\"grebe-cp\":{\"protocol\":1,\"version\":\"0.1.0\",\"ticket\":null,\"reached_at\":null,\"way\":\"udp\"}}";
        assert_eq!(Ready::read(older).unwrap().route, Some(Route::Udp));
    }

    #[test]
    fn failures_are_distinguished_from_other_events() {
        let failed = Failed { why: "the disk\nis full".to_owned(), status: 5 };
        let line = failed_line(failed.why.clone(), failed.status);
        assert!(line.starts_with(EVENT) && !line.contains('\n'));
        assert_eq!(read_event(&line), Some(Err(failed)));
        let event = serde_json::json!({ "progress": { "files": 7 } });
        assert_eq!(read_event(&event_line(&event)), Some(Ok(event)));
        assert_eq!(read_event("{\"grebe\":x}"), None);
    }
}
