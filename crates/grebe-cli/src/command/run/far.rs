//! One other host of a graph, as the process sees it that was asked to run the graph.

use std::io::BufReader;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};
use grebe_flow::{Part, Snapshot};
use grebe_stages::link::{BadLink, Outbox, Routes, read_messages};
use grebe_transfer::{Cancel, ConnectionStatus};

use super::lines::{Hello, JOINS, PROTOCOL, ToHere, ToThere, words};
use crate::cli::{How, Tell, ssh_host};
use crate::command::cp::config::{Config, Settings};
use crate::command::cp::lines::Way;
use crate::command::cp::teller::Teller;
use crate::command::cp::there::There;
use crate::command::cp::way::Channel;
use crate::command::cp::{beside, listen};
use crate::ending::Usage;
use crate::interrupt;

/// A host where a part of the graph runs.
pub(super) struct Far {
    /// As the file has it.
    pub(super) name: String,
    /// Which part of the graph runs there.
    pub(super) part: usize,
    pub(super) outbox: Arc<Outbox>,
    pub(super) way: Way,
    /// The last counters that it told.
    pub(super) counts: Arc<Mutex<Snapshot>>,
    pub(super) state: State,
    /// Goes before what keeps the process there: its input ends with it.
    channel: Option<Channel>,
    there: Option<There>,
    status: Option<ConnectionStatus>,
    teller: Teller,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Opening,
    Built,
    Ended,
    /// It went away without a word.
    Lost,
}

/// What came from a host.
pub(super) enum Heard {
    Said(ToHere),
    /// Nothing comes any more.
    Closed(Result<(), BadLink>),
}

impl Far {
    /// Logs in, gives it its part, and connects with it.
    pub(super) fn start(graph: &str, part: &Part, at: usize, config: &Config, how: &How) -> Result<Self> {
        let name = part.host.clone().unwrap_or_default();
        let host = ssh_host(&name).map_err(|why| Usage(format!("the host '{name}': {why}")))?;
        let mut settings = config.settings(&host, how)?;
        settings.ssh = settings.ssh.shielded();
        let teller = Teller::new(&Tell { quiet: true, ..Tell::default() }, false)?;
        // Ctrl-C ends the wait for a connection, and not one that there is: what is under way goes on over it.
        let (cancel, is_connected) = (Cancel::default(), Arc::new(AtomicBool::new(false)));
        let (cancelled, connected) = (cancel.clone(), is_connected.clone());
        interrupt::then(move || {
            if !connected.load(Ordering::Acquire) {
                cancelled.cancel();
            }
        });
        let mut there = There::start(&settings, &JOINS, &hello(graph, part, &settings))?;
        let channel = match there.channel(&settings, &beside(&settings, &cancel, &teller.notify())) {
            Ok(channel) => channel,
            Err(error) => return Err(there.explain(error, &teller)),
        };
        is_connected.store(true, Ordering::Release);
        Ok(Self {
            name,
            part: at,
            outbox: Arc::default(),
            way: channel.way,
            counts: Arc::default(),
            state: State::Opening,
            there: Some(there),
            status: channel.status.clone(),
            channel: Some(channel),
            teller,
        })
    }

    /// Begins to read and to write; what is said there goes to `tells`, under the host's position.
    pub(super) fn connect(&mut self, at: usize, routes: Routes, tells: &Sender<(usize, Heard)>) {
        let Some(channel) = self.channel.take() else { return };
        let (answers, tells) = (self.outbox.clone(), tells.clone());
        let reader = BufReader::with_capacity(READ_BYTES, channel.reader);
        thread::spawn(move || {
            let read = read_messages(reader, &routes, &answers, |said| {
                // What a later version says, this one leaves.
                if let Ok(said) = serde_json::from_slice(said) {
                    let _ = tells.send((at, Heard::Said(said)));
                }
            });
            let _ = tells.send((at, Heard::Closed(read)));
        });
        let (writes, writer) = (self.outbox.clone(), channel.writer);
        thread::spawn(move || writes.write_to(writer));
    }

    pub(super) fn say(&self, said: ToThere) {
        self.outbox.say(words(&said));
    }

    pub(super) fn counted(&self, counts: Snapshot) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Ended | State::Lost)
    }

    /// Whether its `ssh` has ended: nobody is there any more, whatever the connection beside it says.
    pub(super) fn is_gone(&mut self) -> bool {
        self.there.as_mut().is_none_or(There::is_gone)
    }

    /// Why it went away, in its own words if it has said any.
    pub(super) fn why_lost(&mut self) -> anyhow::Error {
        let error = anyhow!("{} is gone", self.name);
        match self.there.take() {
            Some(there) => there.explain(error, &self.teller),
            None => error,
        }
    }

    /// All has been said: the connection is closed, and the process there ends.
    pub(super) fn close(mut self) {
        self.outbox.finish();
        self.outbox.wait_written(PATIENCE);
        if let Some(status) = self.status.take().filter(|_| self.state == State::Ended) {
            let _ = status.close();
        }
        self.outbox.close();
        drop(self.there.take());
    }
}

fn hello(graph: &str, part: &Part, settings: &Settings) -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        name: graph.to_owned(),
        part: part.file.to_toml(),
        meet: listen(settings),
        via: settings.via,
        mode: settings.mode,
        limit_bits_per_s: settings.limit_bits_per_s,
    }
}

const READ_BYTES: usize = 256 << 10;
const PATIENCE: Duration = Duration::from_secs(2);
