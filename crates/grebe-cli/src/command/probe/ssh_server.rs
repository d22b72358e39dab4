//! A probe's server, started on another host by the user's own `ssh`, which knows their keys, aliases and gateways.
//!
//! ```text
//!  grebe probe ssh://host ==stdin==> ssh ~~~> grebe probe --serve --tethered --json    ends when its stdin closes
//!                         <=stdout==           {"ticket": ...}
//! ```
//!
//! However this side ends, the pipe to `ssh` closes, `ssh` passes that on, and the server ends.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::{IpAddr, ToSocketAddrs};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use grebe_probe::{Address, Error, PROTOCOL, Purpose, Ticket};
use serde::Deserialize;

use crate::cli::{Probe, SshHost};
use crate::ending::Usage;
use crate::interrupt;
use crate::output::note;

/// A server on another host. It ends with this.
pub(crate) struct SshServer {
    process: SshProcess,
    ticket: Ticket,
}

/// The `ssh` that it runs under.
struct SshProcess {
    child: Child,
    output: Receiver<Output>,
    said: Said,
}

impl SshServer {
    /// Starts a server there and waits for its ticket, as long as `ssh` takes: it may ask for a password.
    pub(crate) fn start(host: &SshHost, options: &Probe) -> Result<Self> {
        let place = match &options.advertise {
            Some(place) => place.host.clone(),
            None => address(host)?,
        };
        let is_v6 = resolve(&place).is_ok_and(|address| address.is_ipv6());
        let mut command = ssh(host);
        command.arg("--").arg(host.to_string()).arg(remote(options, is_v6));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => anyhow!(
                "there is no `ssh` on this machine: install OpenSSH, or run `grebe probe --serve` at {host} and give its ticket"
            ),
            _ => anyhow!("cannot run `ssh`: {error}"),
        })?;
        let (tells, output) = mpsc::sync_channel(OUTPUT_LINES_MAX);
        listen(child.stdout.take(), tells.clone(), Output::Out);
        listen(child.stderr.take(), tells, Output::Err);
        let mut process = SshProcess { child, output, said: Said::default() };
        let ready = process.wait(host, &options.remote_command)?;
        let mut ticket = Ticket::from_word(&ready.ticket, Purpose::Probe)?;
        // The server does not know by which name it is found from here.
        let port = ticket.addresses.first().map(Address::port).unwrap_or_default();
        ticket.addresses = vec![Address::new(&place, port)?];
        Ok(Self { process, ticket: advertised(options, ticket)? })
    }

    /// What a client needs.
    pub(crate) fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Adds to a failure of the probe what can be done about it where the server was started from here.
    pub(crate) fn explain<T>(self, outcome: Result<T>) -> Result<T> {
        let Err(error) = outcome else { return outcome };
        if !matches!(error.downcast_ref::<Error>(), Some(Error::Silent { .. })) {
            return Err(error);
        }
        let mut process = self.process;
        while let Ok(output) = process.output.try_recv() {
            process.said.add(output);
        }
        let last = process.said.last().map(|line| format!("; the server said: {line}")).unwrap_or_default();
        Err(anyhow!(
            "{error}; --bind 0.0.0.0:PORT chooses the port there, --advertise HOST the address to go to{last}"
        ))
    }
}

impl SshProcess {
    fn wait(&mut self, host: &SshHost, remote_command: &str) -> Result<Ready> {
        loop {
            if interrupt::is_pending() {
                return Err(Error::Cancelled.into());
            }
            match self.output.recv_timeout(POLL) {
                Ok(Output::Out(line)) => {
                    // A shell may greet before that.
                    let Some(ready) = ready(&line) else { continue };
                    if ready.protocol == Some(PROTOCOL) {
                        return Ok(ready);
                    }
                    bail!(
                        "{host} has grebe {}, which speaks another version of the probe than this grebe {}: have the same one at \
                         both ends",
                        ready.version.as_deref().unwrap_or("of an unknown version"),
                        env!("CARGO_PKG_VERSION")
                    );
                }
                Ok(output) => self.said.add(output),
                Err(RecvTimeoutError::Timeout) => self.said.show(),
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait()?.code();
                    bail!("{}", why(host, remote_command, status, &self.said.text()));
                }
            }
        }
    }
}

impl Drop for SshProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line of the server, or of `ssh`.
enum Output {
    Out(String),
    Err(String),
}

/// What the server prints once it listens.
#[derive(Deserialize)]
struct Ready {
    ticket: String,
    version: Option<String>,
    protocol: Option<u32>,
}

/// The last lines on standard error. What `ssh` says while it goes on is for the person (touch your key); what it says before it ends
/// is for the error.
#[derive(Default)]
struct Said(VecDeque<(Instant, bool, String)>);

impl Said {
    fn add(&mut self, output: Output) {
        let (Output::Err(line) | Output::Out(line)) = output;
        if self.0.len() == SAID_MAX {
            self.0.pop_front();
        }
        self.0.push_back((Instant::now(), false, line));
    }

    fn show(&mut self) {
        for (at, is_shown, line) in self.0.iter_mut().filter(|(_, is_shown, _)| !is_shown) {
            if at.elapsed() > SHOWN_AFTER {
                note!("{line}");
                *is_shown = true;
            }
        }
    }

    fn last(&self) -> Option<&str> {
        self.0.iter().rev().map(|(.., line)| line.trim()).find(|line| !line.is_empty())
    }

    fn text(&self) -> String {
        self.0.iter().map(|(.., line)| line.as_str()).collect::<Vec<_>>().join("\n")
    }
}

fn ready(line: &str) -> Option<Ready> {
    serde_json::from_str(line).ok()
}

/// Passes lines on until the end; when nobody listens any more they are read all the same, so that nobody waits for room.
fn listen(
    pipe: Option<impl Read + Send + 'static>,
    tells: SyncSender<Output>,
    as_output: fn(String) -> Output,
) {
    let Some(pipe) = pipe else { return };
    std::thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        loop {
            line.clear();
            match reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                // Try: after the ticket nobody reads until the end.
                Ok(_) => {
                    drop(tells.try_send(as_output(String::from_utf8_lossy(&line).trim_end().to_owned())))
                }
            }
        }
    });
}

fn ssh(host: &SshHost) -> Command {
    let mut command = Command::new("ssh");
    command.arg("-T");
    if let Some(port) = host.port {
        command.arg("-p").arg(port.to_string());
    }
    command
}

/// The command there, for its shell.
fn remote(options: &Probe, is_v6: bool) -> String {
    let mut line = format!("{} probe --serve --tethered --json --idle-timeout 60s", options.remote_command);
    let bind = options.bind.map(|bind| bind.to_string()).or(is_v6.then(|| "[::]:0".to_owned()));
    if let Some(bind) = bind {
        // Brackets are a pattern to a shell.
        let _ = write!(line, " --bind '{bind}'");
    }
    if let Some(rate) = options.max_rate {
        let _ = write!(line, " --max-rate {rate}");
    }
    if let Some(bytes) = options.max_bytes {
        let _ = write!(line, " --max-bytes {bytes}");
    }
    if let Some(duration) = options.duration {
        // The server keeps a second for itself.
        let _ = write!(line, " --duration {}ms", duration.as_millis() + 2_000);
    }
    line + if options.yes { " --yes" } else { "" }
}

/// Where datagrams find the host. An alias of the user's ssh means nothing to the rest of the system: ssh knows.
fn address(host: &SshHost) -> Result<String> {
    let Err(error) = resolve(&host.host) else { return Ok(host.host.clone()) };
    let told = ssh(host).arg("-G").arg("--").arg(host.to_string()).stdin(Stdio::null()).output();
    let told = told.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let name = told.lines().find_map(|line| line.strip_prefix("hostname ")).map(str::trim);
    match name {
        Some(name) if resolve(name).is_ok() => Ok(name.to_owned()),
        _ => Err(anyhow!("{error:#}; --advertise HOST says where datagrams go if ssh goes another way")),
    }
}

/// The ticket, with the address where the user says that its server is found.
pub(super) fn advertised(options: &Probe, mut ticket: Ticket) -> Result<Ticket> {
    if let Some(place) = &options.advertise {
        let port = place.port.or(ticket.addresses.first().map(Address::port)).unwrap_or_default();
        let address =
            Address::new(&place.host, port).map_err(|error| Usage(format!("--advertise: {error}")))?;
        ticket.addresses = vec![address];
    }
    Ok(ticket)
}

/// The first address of a host.
fn resolve(host: &str) -> Result<IpAddr> {
    let mut found =
        Address::new(host, 0)?.to_socket_addrs().with_context(|| format!("cannot find `{host}`"))?;
    found.next().map(|address| address.ip()).with_context(|| format!("`{host}` has no address"))
}

/// Why there is no ticket.
fn why(host: &SshHost, remote_command: &str, status: Option<i32>, said: &str) -> String {
    let has = |words: &[&str]| words.iter().any(|word| said.to_lowercase().contains(word));
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
    match status {
        Some(255) if has(&["host key verification failed", "identification has changed"]) => {
            format!("ssh does not trust the key of {host}: {last} (`ssh {host}` by hand says more)")
        }
        Some(255) if has(&["permission denied", "too many authentication failures"]) => {
            format!("{host} refused the login: {last} (`ssh {host}` by hand has to work first)")
        }
        Some(255) => format!("ssh cannot reach {host}: {last}"),
        _ if status == Some(127) || has(&["command not found", "not recognized"]) => format!(
            "there is no `{remote_command}` at {host}: install grebe there, or say where it is: --remote-command /path/to/grebe"
        ),
        Some(126) => format!("`{remote_command}` cannot be run at {host}: {last}"),
        Some(2) if has(&["unrecognized subcommand", "unexpected argument"]) => format!(
            "the grebe at {host} is too old to be started from here: install {} there, or run `{remote_command} probe --serve` there \
             and give its ticket",
            env!("CARGO_PKG_VERSION")
        ),
        Some(_) => format!("`{remote_command} probe --serve` at {host} ended: {last}"),
        None => format!("ssh to {host} was killed: {last}"),
    }
}

const POLL: Duration = Duration::from_millis(100);
/// Long enough for `ssh` to end if that was its last word.
const SHOWN_AFTER: Duration = Duration::from_millis(700);
/// How long the server may take to end by itself.
const PATIENCE: Duration = Duration::from_secs(2);
const LINE_MAX: u64 = 4_096;
const SAID_MAX: usize = 40;
const OUTPUT_LINES_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_without_a_ticket_says_what_to_do() {
        let host = SshHost { user: Some("me".to_owned()), host: "lab".to_owned(), port: None };
        for (status, said, words) in [
            (
                Some(255),
                "ssh: connect to host lab port 22: Connection refused",
                "cannot reach me@lab: ssh: connect",
            ),
            (Some(255), "ssh: Could not resolve hostname lab", "cannot reach"),
            (
                Some(255),
                "banner\nme@lab: Permission denied (publickey).\n",
                "refused the login: me@lab: Permission",
            ),
            (Some(255), "Host key verification failed.", "does not trust the key"),
            (Some(127), "sh: 1: grebe: not found", "--remote-command"),
            (Some(1), "grebe: Command not found.", "--remote-command"),
            (Some(126), "sh: 1: grebe: Permission denied", "cannot be run"),
            (Some(2), "error: unexpected argument '--tethered' found", "too old"),
            (Some(2), "error: unrecognized subcommand 'probe'", "too old"),
            (Some(1), "grebe: cannot open 0.0.0.0:80", "ended: grebe: cannot open"),
            (None, "", "was killed: it said nothing"),
        ] {
            let why = why(&host, "grebe", status, said);
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn a_greeting_is_no_ticket() {
        assert!(ready("Welcome to lab").is_none() && ready("{\"a\":1}").is_none());
        let ready = ready("{\"ticket\":\"grebea\",\"version\":\"0.1.0\",\"protocol\":1}").unwrap();
        assert_eq!((ready.ticket.as_str(), ready.protocol), ("grebea", Some(1)));
    }
}
