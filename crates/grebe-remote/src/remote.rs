//! Starts a grebe on another host.

use std::io::{BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use grebe_connection::{Address, Purpose, Ticket, printable};
use serde::Serialize;
use serde_json::Value;

use crate::bootstrap::{self, Bootstrap};
use crate::config::Settings;
use crate::error::{During, Error, Result};
use crate::hello::{self, Call, Failed, Hello, Ready, Turn, VERSION};
use crate::host::SshHost;
use crate::route::{Channel, Dialer, Route};
use crate::ssh::{Ended, NotReady, Purpose as Started, SshProcess, word_there};

/// A grebe on another host, ready.
pub struct Remote {
    host: SshHost,
    /// Dropped before the `ssh`: closing them ends its input, which ends `ssh`.
    pipes: Option<Pipes>,
    ssh: SshProcess,
    ready: Ready,
    limit_bits_per_s: Option<f64>,
    /// Its failure, once reported.
    failed: Option<Failed>,
    is_cut_since: Option<Instant>,
}

/// Remote reason for a local error.
#[derive(Debug)]
pub enum LastWord {
    /// It reported the reason.
    Failed(Error),
    /// Its `ssh` ended.
    Gone(String),
}

struct Pipes {
    stdin: ChildStdin,
    rest: BufReader<ChildStdout>,
}

impl Remote {
    /// Starts the remote program and waits until it is ready. `ssh` may take its time to ask for a password.
    ///
    /// # Errors
    /// [`Error::NotStarted`] with a remedy, [`Error::Failed`] with the remote message,
    /// [`Error::Interrupted`] once `is_cancelled` returns true.
    pub fn start(
        settings: &Settings,
        call: &Call,
        hello: &Hello<impl Serialize>,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Self> {
        let arguments = call.arguments;
        let mut own = Bootstrap::new(settings.bootstrap)?;
        let mut is_brought = false;
        loop {
            let line = match &own {
                Bootstrap::Possible(own) => own.line(&word_there(&settings.program), arguments)?,
                _ => format!("{} {arguments}", word_there(&settings.program)),
            };
            let ended = match Self::try_start(settings, call, hello, &line, is_cancelled)? {
                Ok(remote) if remote.ready.protocol == call.protocol => return Ok(remote),
                Ok(other) => Err(other.version()),
                Err(ended) => Ok(ended),
            };
            // Whether installing this program would help.
            let is_of_use = |ended: &Ended| ended.is_missing(&settings.program) || ended.is_too_old();
            let is_of_use = ended.as_ref().map_or(true, is_of_use);
            match &own {
                Bootstrap::Possible(_) if ended.as_ref().is_ok_and(|ended| ended.is_unknown("exec")) => {
                    own = Bootstrap::Impossible("its login shell is not a Unix shell (is it Windows?)");
                }
                Bootstrap::Possible(own) if is_of_use && !is_brought => {
                    bootstrap::bring(own, settings, is_cancelled)?;
                    is_brought = true;
                }
                Bootstrap::Impossible(reason) if is_of_use => return Err(not_brought(settings, reason)),
                _ => return Err(why(settings, call, ended)),
            }
        }
    }

    fn try_start(
        settings: &Settings,
        call: &Call,
        hello: &Hello<impl Serialize>,
        line: &str,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Result<Self, Ended>> {
        let instead = if call.can_bootstrap { String::new() } else { format!(", or {}", call.instead) };
        let is_ready = |line: &str| Ready::read(line).is_some();
        let mut ssh = settings.ssh.start(&settings.host, line, is_ready, &instead)?;
        let hello = serde_json::to_string(hello).map_err(std::io::Error::from).during("cannot say hello")?;
        match ssh.ready(format!("{hello}\n").as_bytes(), is_cancelled) {
            Ok(began) => {
                let silent = || Error::Peer("the other end is not ready".to_owned());
                let stdin = ssh.stdin().ok_or_else(silent)?;
                let ready = Ready::read(&began.line).ok_or_else(silent)?;
                Ok(Ok(Self {
                    host: settings.host.clone(),
                    ssh,
                    pipes: Some(Pipes { stdin, rest: began.rest }),
                    ready,
                    limit_bits_per_s: settings.limit_bits_per_s,
                    failed: None,
                    is_cut_since: None,
                }))
            }
            Err(NotReady::Interrupted) => Err(Error::Interrupted),
            Err(NotReady::Ended(ended)) => {
                let failed = ssh.poll().iter().find_map(|line| hello::read_event(line)?.err());
                failed.map_or(Ok(Err(ended)), |failed| Err(failed.of(&settings.host)))
            }
        }
    }

    /// Opens the channel for the data: beside `ssh` if a route exists, otherwise through it.
    ///
    /// # Errors
    /// Those of the connection, if no other route is allowed.
    pub fn channel(&mut self, settings: &Settings, dialer: &Dialer) -> Result<Channel> {
        let Some(ticket) = self.ticket(settings, Purpose::Connection)? else { return self.over_ssh() };
        match dialer.reach(&ticket)? {
            Some(channel) => Ok(channel),
            None => {
                self.turn()?;
                self.over_ssh()
            }
        }
    }

    /// Ticket with all addresses of the other end.
    ///
    /// # Errors
    /// [`Error::Connection`] if the ticket or an address is invalid.
    pub fn ticket(&mut self, settings: &Settings, purpose: Purpose) -> Result<Option<Ticket>> {
        let Some(word) = &self.ready.ticket else { return Ok(None) };
        let ticket = ticket_of(word, purpose)?;
        self.addressed(ticket, settings, settings.address.is_none()).map(Some)
    }

    /// Completes a ticket of the other end with all its addresses for a third host. These may differ from
    /// those seen here.
    ///
    /// # Errors
    /// [`Error::Connection`] if the ticket or an address is invalid.
    pub fn ticket_for_others(&mut self, ticket: &str, settings: &Settings) -> Result<Ticket> {
        self.addressed(ticket_of(ticket, Purpose::Connection)?, settings, true)
    }

    /// Adds addresses to a ticket: the configured one or the name that `ssh` uses. If `has_more`, also the
    /// address that `ssh` reached and the other end's own ones.
    fn addressed(&mut self, mut ticket: Ticket, settings: &Settings, has_more: bool) -> Result<Ticket> {
        let port = ticket.addresses.first().map(Address::port).unwrap_or_default();
        let name = settings.address.clone().unwrap_or_else(|| self.host_name());
        let mut addresses: Vec<Address> = Vec::new();
        for host in [Some(name), self.ready.reached_at.clone().filter(|_| has_more)].into_iter().flatten() {
            let address = Address::new(&host, port).map_err(|error| {
                Error::Usage(format!("{host} (set the address for datagrams with --address HOST): {error}"))
            })?;
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

    /// The host, as named by the user.
    pub fn host(&self) -> &SshHost {
        &self.host
    }

    /// The host name that `ssh` resolves to. An alias of `ssh` means nothing to the rest of the system.
    pub fn host_name(&self) -> String {
        self.ssh.host_name().unwrap_or(&self.host.host).to_owned()
    }

    /// Its answer when it became ready.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Version of the remote program, printable.
    pub fn version(&self) -> String {
        printable(self.ready.version.as_bytes())
    }

    /// Route by which it reached its peer, if its task was to connect to one.
    pub fn route(&self) -> Option<Route> {
        self.ready.route
    }

    /// Announces that the data takes `ssh` after all, although the other end waits at a port.
    ///
    /// # Errors
    /// [`Error::System`] if `ssh` is gone.
    pub fn turn(&mut self) -> Result<()> {
        let Some(pipes) = self.pipes.as_mut().filter(|_| self.ready.ticket.is_some()) else { return Ok(()) };
        let turned = serde_json::to_string(&Turn::DataFollows).map_err(std::io::Error::from);
        let written = turned.and_then(|line| writeln!(pipes.stdin, "{line}"));
        written.and_then(|()| pipes.stdin.flush()).during("cannot write to ssh")
    }

    /// Takes the pipes of `ssh` as the channel.
    ///
    /// # Errors
    /// [`Error::Peer`] if they already carry the data.
    pub fn over_ssh(&mut self) -> Result<Channel> {
        let pipes = self.pipes.take();
        let pipes = pipes.ok_or_else(|| Error::Peer("ssh carries the data already".to_owned()))?;
        Ok(Channel::by_pipes(pipes.rest, pipes.stdin, self.limit_bits_per_s))
    }

    /// Events since the last call, possibly of other versions.
    pub fn poll(&mut self) -> Vec<Value> {
        let lines = self.ssh.poll();
        self.hear(&lines)
    }

    fn hear(&mut self, lines: &[String]) -> Vec<Value> {
        let mut events = Vec::new();
        for event in lines.iter().filter_map(|line| hello::read_event(line)) {
            match event {
                Ok(event) => events.push(event),
                Err(failed) => self.failed = Some(failed),
            }
        }
        events
    }

    /// Whether it reported a failure.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Whether it ends in time.
    pub fn ends_within(&mut self, patience: Duration) -> bool {
        self.ssh.has_ended_within(patience)
    }

    /// Whether `ssh` has ended.
    pub fn is_gone(&mut self) -> bool {
        self.ends_within(Duration::ZERO)
    }

    /// Whether `ssh` has ended with an error.
    pub fn is_lost(&mut self) -> bool {
        self.ssh.is_lost()
    }

    /// Its reported failure, or the last line of standard error. Prints nothing meanwhile.
    pub fn last_line(&mut self) -> Option<String> {
        let lines = self.ssh.poll_quietly();
        self.hear(&lines);
        let failed = self.failed.as_ref().map(|failed| printable(failed.why.as_bytes()));
        failed.or_else(|| self.ssh.last_words().map(str::to_owned))
    }

    /// Kills `ssh` at once.
    pub fn kill(&mut self) {
        self.ssh.kill();
    }

    /// Kills `ssh` once the grace period since the first call is over. Returns whether it is over.
    pub fn cut(&mut self) -> bool {
        let since = *self.is_cut_since.get_or_insert_with(Instant::now);
        let is_over = since.elapsed() >= LAST_WORDS;
        if is_over {
            self.ssh.kill();
        }
        is_over
    }

    /// Detaches from a process that has done its work, without waiting for its end.
    pub fn let_go(self) {
        drop(self.pipes);
        self.ssh.let_go();
    }

    /// Closes its input and returns its reason for a local error, if any. Passes on events that arrive
    /// meanwhile.
    pub fn last_word(mut self, mut on_event: impl FnMut(Value)) -> Option<LastWord> {
        // It may be about to report; once its input is closed, it reports nothing more.
        let until = Instant::now() + SAID_WITHIN;
        while !self.has_failed() && Instant::now() < until && !self.ends_within(POLL) {
            self.poll().into_iter().for_each(&mut on_event);
        }
        drop(self.pipes.take());
        let is_gone = self.ssh.has_ended_within(LAST_WORDS);
        self.poll().into_iter().for_each(on_event);
        match self.failed.take() {
            Some(failed) => Some(LastWord::Failed(failed.of(&self.host))),
            None if is_gone => {
                let last = self.ssh.last_words().map(|line| format!(": {line}")).unwrap_or_default();
                Some(LastWord::Gone(format!("the ssh to {} ended{last}", self.host)))
            }
            None => None,
        }
    }
}

impl Failed {
    fn of(self, host: &SshHost) -> Error {
        Error::Failed { host: host.to_string(), why: printable(self.why.as_bytes()), status: self.status }
    }
}

/// Reason and remedy if the other host needs this program, and cannot get it.
fn not_brought(Settings { host, .. }: &Settings, reason: &str) -> Error {
    Error::not_started(format!(
        "--bootstrap cannot install grebe on {host}: {reason}: install grebe {VERSION} there, or give its path: \
         --remote-path /path/to/grebe"
    ))
}

/// Reason for a missing other end: it ended, or has another version.
fn why(settings: &Settings, call: &Call, ended: Result<Ended, String>) -> Error {
    let host = &settings.host;
    match ended {
        Ok(ended) => {
            let why = Started { host, program: &settings.program, call }.why(&ended);
            Error::NotStarted { why, is_refused: ended.is_refused() }
        }
        Err(theirs) => Error::not_started(format!(
            "{host} has grebe {theirs}, which {} in another way than this grebe {VERSION}: have the same one at both ends",
            call.does
        )),
    }
}

pub(crate) fn ticket_of(word: &str, purpose: Purpose) -> Result<Ticket> {
    Ok(Ticket::from_word(word, purpose).map_err(grebe_connection::Error::from)?)
}

const POLL: Duration = Duration::from_millis(20);
const SAID_WITHIN: Duration = Duration::from_millis(500);
/// Time for the other end to report why it ended.
const LAST_WORDS: Duration = Duration::from_secs(2);
