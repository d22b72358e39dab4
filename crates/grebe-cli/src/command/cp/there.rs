//! The other end of a copy: a `grebe cp --serve` that the user's own `ssh` starts.

use std::io::{BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use grebe_transfer::{Address, Error, Purpose, Ticket};
use serde::Serialize;

use super::bootstrap::{self, Own};
use super::config::Settings;
use super::figures::{Figures, Outcome};
use super::lines::{Event, PROTOCOL, Ready, Turn, Way};
use super::teller::Teller;
use super::way::{Beside, Channel};
use crate::cli::{SshHost, printable};
use crate::ending::Elsewhere;
use crate::interrupt;
use crate::ssh::{self, Ended, NotReady, Remote, word_there};

/// What is started at the other end.
pub(in crate::command) struct Call {
    /// Behind the name of the program. Nothing of the user's is in it: that all users there can see.
    pub(in crate::command) arguments: &'static str,
    /// What both ends have to mean by what they say.
    pub(in crate::command) protocol: u32,
    /// What it does, for what is said where they do not: `copies`.
    pub(in crate::command) does: &'static str,
}

/// The other end, ready.
pub(in crate::command) struct There {
    pub(super) host: SshHost,
    remote: Remote,
    pipes: Option<Pipes>,
    ready: Ready,
    limit_bits_per_s: Option<f64>,
    /// How it ended, once it said so.
    failed: Option<Failure>,
    outcome: Option<Outcome>,
    is_cut_since: Option<Instant>,
}

/// Why the other end could not, in its own words.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) why: String,
    pub(super) status: u8,
}

struct Pipes {
    stdin: ChildStdin,
    rest: BufReader<ChildStdout>,
}

impl There {
    /// Starts it and waits until it is ready, as long as `ssh` takes: it may ask for a password.
    pub(in crate::command) fn start(
        settings: &Settings,
        call: &Call,
        hello: &impl Serialize,
    ) -> Result<Self> {
        let arguments = call.arguments;
        let own = if settings.bootstrap { Some(Own::read()?) } else { None };
        let mut is_brought = false;
        loop {
            let line = match &own {
                Some(own) => own.line(&word_there(&settings.program), arguments)?,
                None => format!("{} {arguments}", word_there(&settings.program)),
            };
            let why = match Self::try_start(settings, hello, &line)? {
                Ok(there) if there.ready.protocol == call.protocol => return Ok(there),
                Ok(there) => {
                    let theirs = printable(there.ready.version.as_bytes());
                    NoStart::Other(format!(
                        "{} has grebe {theirs}, which {} in another way than this grebe {}: have the same one at both ends",
                        settings.host,
                        call.does,
                        env!("CARGO_PKG_VERSION")
                    ))
                }
                Err(ended) => NoStart::Ended(ended),
            };
            match (&own, &why) {
                (Some(own), NoStart::Other(_)) if !is_brought => bootstrap::bring(own, settings)?,
                (Some(own), NoStart::Ended(ended)) if !is_brought && is_of_use(ended) => {
                    bootstrap::bring(own, settings)?;
                }
                _ => bail!("{}", why.words(settings, arguments)),
            }
            is_brought = true;
        }
    }

    fn try_start(settings: &Settings, hello: &impl Serialize, line: &str) -> Result<Result<Self, Ended>> {
        let by_hand = "install OpenSSH";
        let is_ready = |line: &str| Ready::read(line).is_some();
        let mut remote = settings.ssh.start(&settings.host, line, is_ready, by_hand)?;
        let hello = serde_json::to_string(hello)? + "\n";
        match remote.ready(hello.as_bytes(), interrupt::is_pending) {
            Ok(told) => {
                let stdin = remote.stdin().context("cannot write to ssh")?;
                let ready = Ready::read(&told.line).ok_or_else(|| anyhow!("the other end is not ready"))?;
                let pipes = Some(Pipes { stdin, rest: told.rest });
                let host = settings.host.clone();
                let limit_bits_per_s = settings.limit_bits_per_s;
                Ok(Ok(Self {
                    host,
                    remote,
                    pipes,
                    ready,
                    limit_bits_per_s,
                    failed: None,
                    outcome: None,
                    is_cut_since: None,
                }))
            }
            Err(NotReady::Interrupted) => Err(Error::Cancelled.into()),
            Err(NotReady::Ended(ended)) => {
                let failures = remote.poll().iter().find_map(|line| match Event::read(line) {
                    Some(Event::Failed { why, status }) => Some(Failure { why, status }),
                    _ => None,
                });
                match failures {
                    Some(failure) => Err(failure.of(&settings.host)),
                    None => Ok(Err(ended)),
                }
            }
        }
    }

    /// The way for the data: beside `ssh` where one leads there, else through it.
    pub(in crate::command) fn channel(&mut self, settings: &Settings, beside: &Beside) -> Result<Channel> {
        let Some(ticket) = self.ticket(settings)? else { return self.over_ssh() };
        match beside.reach(&ticket)? {
            Some(channel) => Ok(channel),
            None => {
                self.turn()?;
                self.over_ssh()
            }
        }
    }

    /// The ticket, with all addresses where the other end may be found.
    pub(super) fn ticket(&mut self, settings: &Settings) -> Result<Option<Ticket>> {
        let Some(word) = &self.ready.ticket else { return Ok(None) };
        let ticket = Ticket::from_word(word, Purpose::Connection)?;
        self.addressed(ticket, settings, settings.address.is_none()).map(Some)
    }

    /// A ticket that the other end made, with all addresses where a third host may find it: that may be by others than from here.
    pub(in crate::command) fn ticket_for_others(
        &mut self,
        ticket: &str,
        settings: &Settings,
    ) -> Result<Ticket> {
        self.addressed(Ticket::from_word(ticket, Purpose::Connection)?, settings, true)
    }

    /// By the name that ssh has for it or the one that was said and, where that is not all, by the address that ssh came to and by those that
    /// it has itself.
    fn addressed(&mut self, mut ticket: Ticket, settings: &Settings, has_more: bool) -> Result<Ticket> {
        let port = ticket.addresses.first().map(Address::port).unwrap_or_default();
        let name = settings.address.as_deref().or(self.remote.host_name()).unwrap_or(&self.host.host);
        let mut hosts = vec![name.to_owned()];
        if has_more {
            hosts.extend(self.ready.reached_at.clone());
        }
        let mut addresses: Vec<Address> = Vec::new();
        for host in hosts {
            let address = Address::new(&host, port);
            let address =
                address.with_context(|| format!("{host} (--address HOST says where datagrams go)"))?;
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if has_more {
            addresses.extend(
                ticket.addresses.into_iter().filter(|own| !addresses.contains(own)).collect::<Vec<_>>(),
            );
        }
        addresses.truncate(Ticket::ADDRESSES_MAX);
        ticket.addresses = addresses;
        Ok(ticket)
    }

    /// Which way it reached its peer, if it was told to go to one.
    pub(super) fn way(&self) -> Option<Way> {
        self.ready.way
    }

    /// Whether it knows of flushing each file.
    pub(super) fn knows_fsync_file(&self) -> bool {
        self.ready.knows_fsync_file
    }

    /// Whether it knows of orders in which files and their parts are sent.
    pub(super) fn knows_order(&self) -> bool {
        self.ready.knows_order
    }

    /// Whether it knows of short hashes in signatures.
    pub(super) fn knows_short_hashes(&self) -> bool {
        self.ready.knows_short_hashes
    }

    /// Whether it is to receive, and nothing is there.
    pub(super) fn is_fresh(&self) -> bool {
        self.ready.is_fresh
    }

    pub(super) fn version(&self) -> String {
        printable(self.ready.version.as_bytes())
    }

    /// Says that the data comes through `ssh` after all, where it waits at a port for it.
    pub(super) fn turn(&mut self) -> Result<()> {
        let Some(pipes) = self.pipes.as_mut().filter(|_| self.ready.ticket.is_some()) else { return Ok(()) };
        let line = serde_json::to_string(&Turn::DataFollows)? + "\n";
        pipes
            .stdin
            .write_all(line.as_bytes())
            .and_then(|()| pipes.stdin.flush())
            .context("cannot write to ssh")
    }

    /// The pipes of `ssh` as the way.
    pub(super) fn over_ssh(&mut self) -> Result<Channel> {
        let pipes = self.pipes.take().ok_or_else(|| anyhow!("ssh carries the data already"))?;
        Ok(Channel::by_pipes(pipes.rest, pipes.stdin, self.limit_bits_per_s))
    }

    /// Takes in what it said meanwhile; how far it is, where it says so.
    pub(super) fn poll(&mut self, teller: &Teller) -> Option<Figures> {
        let mut latest = None;
        for line in self.remote.poll() {
            match Event::read(&line) {
                Some(Event::Progress(figures)) => latest = Some(figures),
                Some(Event::File(file)) => teller.file(&file),
                Some(Event::Result(outcome)) => self.outcome = Some(outcome),
                Some(Event::Failed { why, status }) => self.failed = Some(Failure { why, status }),
                // Of a later version.
                None => {}
            }
        }
        latest
    }

    /// What came of it, once it said so.
    pub(super) fn outcome(&mut self) -> Option<Outcome> {
        self.outcome.take()
    }

    /// Whether it said that it failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Whether it ends in time.
    pub(super) fn ends_within(&mut self, patience: Duration) -> bool {
        self.remote.has_ended_within(patience)
    }

    /// Whether the `ssh` has ended.
    pub(in crate::command) fn is_gone(&mut self) -> bool {
        self.ends_within(Duration::ZERO)
    }

    /// Whether the `ssh` has ended, and not well.
    pub(super) fn is_lost(&mut self) -> bool {
        self.remote.is_lost()
    }

    /// Ends it once it has had a moment to do so by itself; whether it has.
    pub(super) fn cut(&mut self) -> bool {
        let since = *self.is_cut_since.get_or_insert_with(Instant::now);
        let is_over = since.elapsed() >= LAST_WORDS;
        if is_over {
            self.remote.kill();
        }
        is_over
    }

    /// Nobody waits for its end: it has done what it was to do.
    pub(super) fn let_go(self) {
        drop(self.pipes);
        self.remote.let_go();
    }

    /// Of an error at this end, the reason that lies at the other, where it has said one.
    pub(in crate::command) fn explain(mut self, error: anyhow::Error, teller: &Teller) -> anyhow::Error {
        if interrupt::is_pending() {
            return error;
        }
        // What this end has found itself, the other one only repeats.
        let is_ours = error.downcast_ref::<grebe_tree::Error>().is_some_and(grebe_tree::Error::is_ours);
        // It may be about to say it; once its input is closed, it says nothing more.
        let until = Instant::now() + SAID_WITHIN;
        while !is_ours && !self.has_failed() && Instant::now() < until && !self.ends_within(POLL) {
            self.poll(teller);
        }
        drop(self.pipes.take());
        let is_gone = self.remote.has_ended_within(LAST_WORDS);
        self.poll(teller);
        match self.failed.take() {
            _ if is_ours => error,
            Some(failure) => failure.of(&self.host),
            None if is_gone => {
                let last = self.remote.last_words().map(|line| format!(": {line}")).unwrap_or_default();
                error.context(format!("the ssh to {} ended{last}", self.host))
            }
            None => error,
        }
    }
}

impl Failure {
    fn of(self, host: &SshHost) -> anyhow::Error {
        let Self { why, status } = self;
        Elsewhere { what: format!("{host}: {}", printable(why.as_bytes())), status }.into()
    }
}

/// Why there is no other end.
enum NoStart {
    Ended(Ended),
    Other(String),
}

impl NoStart {
    fn words(&self, settings: &Settings, arguments: &str) -> String {
        match self {
            Self::Other(why) => why.clone(),
            Self::Ended(ended) => {
                let remedy = "say where it is: --remote-path PATH, or bring this one along: --bootstrap";
                let purpose = ssh::Purpose {
                    host: &settings.host,
                    program: &settings.program,
                    arguments,
                    remedy,
                    instead: "bring this one along: --bootstrap",
                };
                purpose.why(ended)
            }
        }
    }
}

/// Whether a grebe of ours would do what the one there does not.
fn is_of_use(ended: &Ended) -> bool {
    let is_old = ended.status == Some(2)
        && ["unrecognized subcommand", "unexpected argument"].iter().any(|words| ended.said.contains(words));
    ended.is_missing() || is_old
}

/// The other end of a copy.
pub(super) const COPIES: Call = Call { arguments: "cp --serve", protocol: PROTOCOL, does: "copies" };
const POLL: Duration = Duration::from_millis(20);
const SAID_WITHIN: Duration = Duration::from_millis(500);
/// How long the other end may take to say why it ended.
const LAST_WORDS: Duration = Duration::from_secs(2);
