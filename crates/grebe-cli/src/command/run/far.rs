//! One other host of a graph, as the process sees it that was asked to run the graph.

use std::io::BufReader;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use grebe_flow::{Part, Restart};
use grebe_link::edge::{BadLink, Outbox, Routes, read_messages};
use grebe_remote::{Config, Route, Settings};

use super::comeback::Comeback;
use super::counted::Counted;
use super::lines::{FillMeter, Filled, ToHere, ToThere, filler, words};
use super::login::{Connected, Login, why_lost};
use crate::cli::How;
use crate::ending;

/// A host where a part of the graph runs.
pub(super) struct Far {
    /// As the file has it.
    pub(super) name: String,
    /// Which part of the graph runs there.
    pub(super) part: usize,
    pub(super) outbox: Arc<Outbox>,
    counted: Arc<Mutex<Counted>>,
    pub(super) state: State,
    /// While it is away, and until it is there again.
    pub(super) comeback: Option<Comeback>,
    pub(super) restart: Restart,
    /// How often it was there: what is heard of a connection before is of no interest.
    life: u32,
    heard_at: Instant,
    login: Arc<Login>,
    connected: Option<Connected>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Opening,
    /// Its part is open, or at work.
    Built,
    Ended,
    /// It went away, and will be started again.
    Away,
    /// It went away for good.
    Lost,
}

/// What came from a host, at the how many-eth connection.
pub(super) struct Heard {
    pub(super) at: usize,
    pub(super) life: u32,
    pub(super) news: News,
}

pub(super) enum News {
    Said(ToHere),
    /// Bytes that mean nothing came from there.
    Filled(Filled),
    /// Nothing comes any more.
    Closed(Result<(), BadLink>),
    /// Why it is gone, which takes a moment to find out.
    Gone(String),
}

impl Far {
    /// Logs in, gives it its part, and connects with it.
    pub(super) fn start(graph: &str, part: &Part, at: usize, config: &Config, how: &How) -> Result<Self> {
        let name = part.host.clone().unwrap_or_default();
        let login = Login::of(graph, part, &name, config, how)?;
        let connected = login.connect(None)?;
        let is_kept = part.restart == Restart::Always;
        Ok(Self {
            counted: Arc::new(Mutex::new(Counted::of(&name, is_kept))),
            name,
            part: at,
            outbox: Arc::new(if is_kept { Outbox::kept() } else { Outbox::default() }),
            state: State::Opening,
            comeback: None,
            restart: part.restart,
            life: 0,
            heard_at: Instant::now(),
            login: Arc::new(login),
            connected: Some(connected),
        })
    }

    /// Begins to read and to write; what is said there goes to `tells`, under the host's position.
    pub(super) fn open(&mut self, at: usize, routes: Routes, tells: &Sender<Heard>) {
        let Some(channel) = self.connected.as_mut().and_then(|connected| connected.channel.take()) else {
            return;
        };
        self.heard_at = Instant::now();
        let (answers, tells, life) = (self.outbox.clone(), tells.clone(), self.life);
        let line = self.outbox.connect();
        let reader = BufReader::with_capacity(READ_BYTES, channel.reader);
        let tell = move |news| drop(tells.send(Heard { at, life, news }));
        thread::spawn(move || {
            let mut meter = FillMeter::default();
            let read = read_messages(reader, &routes, &answers, line, |said| {
                if let Some(filled) = meter.take(said) {
                    filled.into_iter().for_each(|filled| tell(News::Filled(filled)));
                } else if let Ok(said) = serde_json::from_slice(said) {
                    // What a later version says, this one leaves.
                    tell(News::Said(said));
                }
            });
            tell(News::Closed(read));
        });
        let (writes, writer) = (self.outbox.clone(), channel.writer);
        thread::spawn(move || writes.write_to(line, writer));
    }

    pub(super) fn say(&self, said: ToThere) {
        self.outbox.say(words(&said));
    }

    /// Sends so many bytes that mean nothing.
    pub(super) fn fill(&self, bytes: u64) {
        filler(bytes).for_each(|words| self.outbox.say(words));
    }

    /// How it is called among the hosts of the graph.
    pub(super) fn number(&self) -> u16 {
        // No graph has as many as that.
        self.part as u16
    }

    /// How to get there.
    pub(super) fn settings(&self) -> &Settings {
        &self.login.settings
    }

    /// A ticket that it has made, with all addresses where another host may find it.
    pub(super) fn ticket_for_others(&mut self, ticket: &str) -> Option<String> {
        let remote = &mut self.connected.as_mut()?.remote;
        let ticket = remote.ticket_for_others(ticket, &self.login.settings).ok()?;
        Some(ticket.word().to_string())
    }

    /// The route of the samples.
    pub(super) fn route(&self) -> Option<Route> {
        self.connected.as_ref().map(|connected| connected.route)
    }

    pub(super) fn counted(&self) -> Arc<Mutex<Counted>> {
        self.counted.clone()
    }

    pub(super) fn count(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether what was heard comes from the process that is there now.
    pub(super) fn is_of_now(&mut self, heard: &Heard) -> bool {
        let is_of_now = heard.life == self.life;
        if is_of_now {
            self.heard_at = Instant::now();
        }
        is_of_now
    }

    /// For how long nothing has come from there.
    pub(super) fn silence(&self) -> Duration {
        self.heard_at.elapsed()
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Ended | State::Lost)
    }

    /// Whether something can be said there.
    pub(super) fn is_there(&self) -> bool {
        matches!(self.state, State::Opening | State::Built)
    }

    /// Whether its part is open, or at work.
    pub(super) fn is_built(&self) -> bool {
        self.state == State::Built
    }

    /// Whether its `ssh` has ended: nobody is there any more, whatever the connection beside it says.
    pub(super) fn is_gone(&mut self) -> bool {
        self.connected.as_mut().is_none_or(|connected| connected.remote.is_gone())
    }

    /// Why it went away, in its own words if it has said any.
    pub(super) fn why_lost(&mut self) -> anyhow::Error {
        why_lost(&self.name, self.connected.take())
    }

    /// It is away from now on, until it [comes back](Self::come_back): why, is told to `tells`, once it is known.
    pub(super) fn leave(&mut self, at: usize, tells: Option<&Sender<Heard>>) {
        self.state = State::Away;
        self.outbox.hang_up();
        self.count().leave();
        self.life += 1;
        let (name, connected) = (self.name.clone(), self.connected.take());
        let (tells, life) = (tells.cloned(), self.life);
        // It takes a moment, which those that are still there are not to wait for.
        thread::spawn(move || {
            let why = ending::one_line(&why_lost(&name, connected));
            let _ = tells.map(|tells| tells.send(Heard { at, life, news: News::Gone(why) }));
        });
    }

    /// It is there again, and is to open its part.
    pub(super) fn come_back(&mut self, connected: Connected) {
        self.connected = Some(connected);
        self.state = State::Opening;
    }

    pub(super) fn login(&self) -> Arc<Login> {
        self.login.clone()
    }

    /// All has been said: the connection is closed, and the process there ends.
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
        if let Some(comeback) = &mut self.comeback {
            comeback.abandon();
        }
    }
}

const READ_BYTES: usize = 256 << 10;
const PATIENCE: Duration = Duration::from_secs(2);
