//! Another host of a graph, from the view of the coordinator.

use std::io::BufReader;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use grebe_flow::{Part, Restart};
use grebe_link::edge::{BadLink, Outbox, Routes, read_messages};
use grebe_remote::{Config, Route, Settings};

use super::counters::HostCounters;
use super::lines::{FillMeter, Filled, ToCoordinator, ToHost, filler, words};
use super::login::{Connected, Login, why_lost};
use super::restart::RestartState;
use crate::cli::Routing;
use crate::ending;
use crate::interrupt;

/// Host that runs a part of the graph.
pub(super) struct RemoteHost {
    /// Name in the file.
    pub(super) name: String,
    /// Number of its part.
    pub(super) part: usize,
    pub(super) outbox: Arc<Outbox>,
    counted: Arc<Mutex<HostCounters>>,
    pub(super) state: State,
    /// State of restarts, while it is away.
    pub(super) restart_state: Option<RestartState>,
    pub(super) restart: Restart,
    /// Number of its process; messages of earlier ones are ignored.
    life: u32,
    heard_at: Instant,
    login: Arc<Login>,
    connected: Option<Connected>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Opening,
    /// Its stages are open or running.
    Built,
    Ended,
    /// Gone, and about to restart.
    Away,
    /// Gone for good.
    Lost,
}

/// Message of a host, with the number of its connection.
pub(super) struct Received {
    pub(super) at: usize,
    pub(super) life: u32,
    pub(super) news: News,
}

pub(super) enum News {
    Said(ToCoordinator),
    /// Test bytes arrived.
    Filled(Filled),
    /// The connection has ended.
    Closed(Result<(), BadLink>),
    /// Reason for its end, which takes a moment to find out.
    Gone(String),
}

impl RemoteHost {
    /// Logs in, sends the part, and connects.
    pub(super) fn start(graph: &str, part: &Part, at: usize, config: &Config, how: &Routing) -> Result<Self> {
        let name = part.host.clone().unwrap_or_default();
        let login = Login::of(graph, part, &name, config, how)?;
        let connected = login.connect(None)?;
        let is_kept = part.restart == Restart::Always;
        Ok(Self {
            counted: Arc::new(Mutex::new(HostCounters::of(&name, is_kept))),
            name,
            part: at,
            outbox: Arc::new(if is_kept { Outbox::kept() } else { Outbox::default() }),
            state: State::Opening,
            restart_state: None,
            restart: part.restart,
            life: 0,
            heard_at: Instant::now(),
            login: Arc::new(login),
            connected: Some(connected),
        })
    }

    /// Starts reading and writing; messages go to `tells` with the host's position.
    pub(super) fn open(&mut self, at: usize, routes: Routes, tells: &Sender<Received>) {
        let Some(channel) = self.connected.as_mut().and_then(|connected| connected.channel.take()) else {
            return;
        };
        self.heard_at = Instant::now();
        let (answers, tells, life) = (self.outbox.clone(), tells.clone(), self.life);
        let line = self.outbox.connect();
        let reader = BufReader::with_capacity(READ_BYTES, channel.reader);
        let tell = move |news| drop(tells.send(Received { at, life, news }));
        thread::spawn(move || {
            let mut meter = FillMeter::default();
            let read = read_messages(reader, &routes, &answers, line, |said| {
                if let Some(filled) = meter.take(said) {
                    filled.into_iter().for_each(|filled| tell(News::Filled(filled)));
                } else if let Ok(said) = serde_json::from_slice(said) {
                    // Messages of a later version are ignored.
                    tell(News::Said(said));
                }
            });
            tell(News::Closed(read));
        });
        let (writes, writer) = (self.outbox.clone(), channel.writer);
        thread::spawn(move || writes.write_to(line, writer));
    }

    pub(super) fn say(&self, said: ToHost) {
        self.outbox.say(words(&said));
    }

    /// Sends this many test bytes.
    pub(super) fn fill(&self, bytes: u64) {
        filler(bytes).for_each(|words| self.outbox.say(words));
    }

    /// Number of its part.
    pub(super) fn number(&self) -> u16 {
        // No graph has more parts.
        self.part as u16
    }

    /// Settings of the connection.
    pub(super) fn settings(&self) -> &Settings {
        &self.login.settings
    }

    /// A ticket of this host, with all addresses for other hosts.
    pub(super) fn ticket_for_others(&mut self, ticket: &str) -> Option<String> {
        let remote = &mut self.connected.as_mut()?.remote;
        let ticket = remote.ticket_for_others(ticket, &self.login.settings).ok()?;
        Some(ticket.word().to_string())
    }

    /// Route of the samples.
    pub(super) fn route(&self) -> Option<Route> {
        self.connected.as_ref().map(|connected| connected.route)
    }

    pub(super) fn counted(&self) -> Arc<Mutex<HostCounters>> {
        self.counted.clone()
    }

    pub(super) fn count(&self) -> MutexGuard<'_, HostCounters> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a message is of the current process.
    pub(super) fn is_of_now(&mut self, heard: &Received) -> bool {
        let is_of_now = heard.life == self.life;
        if is_of_now {
            self.heard_at = Instant::now();
        }
        is_of_now
    }

    /// Time since its last message.
    pub(super) fn silence(&self) -> Duration {
        self.heard_at.elapsed()
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Ended | State::Lost)
    }

    /// Whether messages can be sent.
    pub(super) fn is_there(&self) -> bool {
        matches!(self.state, State::Opening | State::Built)
    }

    /// Whether its stages are open or running.
    pub(super) fn is_built(&self) -> bool {
        self.state == State::Built
    }

    /// Whether its `ssh` has ended. Then the process is gone, even if the connection looks alive.
    pub(super) fn is_gone(&mut self) -> bool {
        self.connected.as_mut().is_none_or(|connected| connected.remote.is_gone())
    }

    /// Reason for its end, as reported by it if possible.
    pub(super) fn why_lost(&mut self) -> anyhow::Error {
        why_lost(&self.name, self.connected.take())
    }

    /// Marks it as away until it [comes back](Self::come_back). The reason goes to `tells` once known.
    pub(super) fn leave(&mut self, at: usize, tells: Option<&Sender<Received>>) {
        self.state = State::Away;
        self.outbox.hang_up();
        self.count().leave();
        self.life += 1;
        let (name, connected) = (self.name.clone(), self.connected.take());
        let (tells, life) = (tells.cloned(), self.life);
        // In a thread, because this takes a moment.
        thread::spawn(move || {
            let why = ending::one_line(&why_lost(&name, connected));
            let _ = tells.map(|tells| tells.send(Received { at, life, news: News::Gone(why) }));
        });
    }

    /// The host is back, and opens its part.
    pub(super) fn come_back(&mut self, connected: Connected) {
        self.connected = Some(connected);
        self.state = State::Opening;
    }

    pub(super) fn login(&self) -> Arc<Login> {
        self.login.clone()
    }

    /// Closes the connection, which ends the process.
    pub(super) fn close(mut self) {
        if self.state == State::Ended || self.is_there() {
            self.outbox.finish();
            self.outbox.wait_written(PATIENCE);
        }
        let status = self.connected.as_mut().and_then(|connected| connected.status.take());
        if let Some(status) = status.filter(|_| self.state == State::Ended) {
            let _ = status.close();
        }
        self.outbox.close();
        drop(self.connected.take());
        if let Some(restart_state) = &mut self.restart_state {
            restart_state.abandon();
        }
    }
}

/// The next message of a host until a time; messages of other hosts are set aside.
pub(super) fn next_of(
    messages: &Receiver<Received>,
    at: usize,
    until: Instant,
    others: &mut Vec<Received>,
) -> Option<Received> {
    while Instant::now() < until && !interrupt::is_pending() {
        match messages.recv_timeout(INTERRUPT_POLL) {
            Ok(message) if message.at != at => others.push(message),
            Ok(message) if matches!(message.news, News::Closed(_)) => {
                others.push(message);
                return None;
            }
            Ok(message) => return Some(message),
            Err(_) => {}
        }
    }
    None
}

const INTERRUPT_POLL: Duration = Duration::from_millis(20);
const READ_BYTES: usize = 256 << 10;
const PATIENCE: Duration = Duration::from_secs(2);
