//! A probe's server, started on another host by the user's own `ssh`.
//!
//! ```text
//!  grebe probe ssh://host ==stdin==> ssh ~~~> grebe probe --serve --tethered --json    ends when its stdin closes
//!                         <=stdout==           the mark, {"ticket": ...}
//! ```

use std::fmt::Write as _;

use anyhow::{Result, anyhow, bail};
use grebe_probe::{Address, Error, PROTOCOL, Purpose, Ticket};
use serde::Deserialize;

use crate::cli::{Probe, SshHost};
use crate::ending::Usage;
use crate::interrupt;
use crate::ssh::{self, NotReady, Remote, Ssh, resolve, word_there};

/// A server on another host. It ends with this.
pub(crate) struct SshServer {
    remote: Remote,
    ticket: Ticket,
}

impl SshServer {
    /// Starts a server there and waits for its ticket, as long as `ssh` takes: it may ask for a password.
    pub(crate) fn start(host: &SshHost, options: &Probe) -> Result<Self> {
        let ssh = Ssh::by(options.ssh.as_deref())?;
        let place = match &options.advertise {
            Some(place) => place.host.clone(),
            None => address(&ssh, host)?,
        };
        let is_v6 = resolve(&place).is_ok_and(|address| address.is_ipv6());
        let by_hand = format!("install OpenSSH, or run `grebe probe --serve` at {host} and give its ticket");
        let is_ready = |line: &str| ready(line).is_some();
        let mut remote = ssh.start(host, &remote(options, is_v6), is_ready, &by_hand)?;
        let ready = match remote.ready(&[], interrupt::is_pending) {
            Ok(told) => ready(&told.line).ok_or_else(|| anyhow!("no ticket"))?,
            Err(NotReady::Interrupted) => return Err(Error::Cancelled.into()),
            Err(NotReady::Ended(ended)) => bail!("{}", why(host, program(options), &ended)),
        };
        if ready.protocol != Some(PROTOCOL) {
            bail!(
                "{host} has grebe {}, which speaks another version of the probe than this grebe {}: have the same one at \
                 both ends",
                ready.version.as_deref().unwrap_or("of an unknown version"),
                env!("CARGO_PKG_VERSION")
            );
        }
        let mut ticket = Ticket::from_word(&ready.ticket, Purpose::Probe)?;
        // The server does not know by which name it is found from here.
        let port = ticket.addresses.first().map(Address::port).unwrap_or_default();
        ticket.addresses = vec![Address::new(&place, port)?];
        Ok(Self { remote, ticket: advertised(options, ticket)? })
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
        let mut remote = self.remote;
        let last = remote.last_words().map(|line| format!("; the server said: {line}")).unwrap_or_default();
        Err(anyhow!(
            "{error}; --bind 0.0.0.0:PORT chooses the port there, --advertise HOST the address to go to{last}"
        ))
    }
}

/// What the server prints once it listens.
#[derive(Deserialize)]
struct Ready {
    ticket: String,
    version: Option<String>,
    protocol: Option<u32>,
}

fn ready(line: &str) -> Option<Ready> {
    serde_json::from_str(line).ok()
}

/// How grebe is called there.
fn program(options: &Probe) -> &str {
    options.remote_path.as_deref().unwrap_or("grebe")
}

/// The command there, for its shell.
fn remote(options: &Probe, is_v6: bool) -> String {
    let mut line =
        format!("{} probe --serve --tethered --json --idle-timeout 60s", word_there(program(options)));
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

/// Where datagrams find the host.
fn address(ssh: &Ssh, host: &SshHost) -> Result<String> {
    let Err(error) = resolve(&host.host) else { return Ok(host.host.clone()) };
    match ssh.host_name(host) {
        Some(name) if resolve(&name).is_ok() => Ok(name),
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

/// Why there is no ticket.
fn why(host: &SshHost, program: &str, ended: &ssh::Ended) -> String {
    let instead = format!("run `{program} probe --serve` there and give its ticket");
    let purpose = ssh::Purpose {
        host,
        program,
        arguments: "probe --serve",
        remedy: "say where it is: --remote-path /path/to/grebe",
        instead: &instead,
    };
    purpose.why(ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_no_ticket() {
        assert!(ready("Welcome to lab").is_none() && ready("{\"a\":1}").is_none());
        let ready = ready("{\"ticket\":\"grebea\",\"version\":\"0.1.0\",\"protocol\":1}").unwrap();
        assert_eq!((ready.ticket.as_str(), ready.protocol), ("grebea", Some(1)));
    }
}
