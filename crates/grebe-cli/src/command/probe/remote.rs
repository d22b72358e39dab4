//! A probe's server on another host: at both ends of `ssh`.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use grebe_connection::Mode;
use grebe_probe::{Bounds, Cancel, Error, PROTOCOL, Purpose, ServeOptions, Server, Ticket};
use grebe_remote::{Call, Config, Hello, HostOptions, Meet, Ready, Remote, Terms, Via, resolve, serve};
use serde::{Deserialize, Serialize};

use super::server::{SERVED_MAX, advertised, bounds, run_server};
use crate::cli::{Probe, SshHost};
use crate::command::remote::{PROCESS, failed, settings};
use crate::ending::Ending;
use crate::interrupt;

/// A server on another host. It ends with this.
pub(super) struct RemoteServer {
    remote: Remote,
    ticket: Ticket,
}

/// What the server there is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ServeTask {
    bind: Option<SocketAddr>,
    rate_max_bps: Option<f64>,
    bytes_max: Option<u64>,
    duration_max_ms: Option<u64>,
    allow_fast_public: bool,
}

impl RemoteServer {
    /// Starts a server there and waits for its ticket, as long as `ssh` takes: it may ask for a password.
    pub(super) fn start(host: &SshHost, options: &Probe) -> Result<Self> {
        let how = HostOptions {
            ssh: options.ssh.clone(),
            remote_path: options.remote_path.clone(),
            address: options.advertise.as_ref().map(|place| place.host.clone()),
            ..HostOptions::default()
        };
        let settings = settings(&Config::of_user()?, host, &how)?;
        let Bounds { rate_max_bps, bytes_max, duration_max, allow_fast_public } = bounds(options);
        // The server keeps a second for itself.
        let duration_max_ms = duration_max.map(|duration| duration.as_millis() as u64 + 2_000);
        let task =
            ServeTask { bind: options.bind, rate_max_bps, bytes_max, duration_max_ms, allow_fast_public };
        let terms = Terms { via: Via::Ssh, mode: Mode::Fair, limit_bits_per_s: None };
        let hello = Hello::new(&PROBES, Meet::Here, terms, task);
        let mut remote = Remote::start(&settings, &PROBES, &hello, &interrupt::is_pending)?;
        let ticket = remote.ticket(&settings, Purpose::Probe)?.context("the server there has no ticket")?;
        let name = settings.address.unwrap_or_else(|| remote.host_name());
        resolve(&name).context("--advertise HOST says where datagrams go if ssh goes another way")?;
        Ok(Self { remote, ticket: advertised(options, ticket)? })
    }

    /// What a client needs.
    pub(super) fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Adds to a failure of the probe what can be done about it where the server was started from here.
    pub(super) fn explain<T>(mut self, outcome: Result<T>) -> Result<T> {
        let Err(error) = outcome else { return outcome };
        if !matches!(error.downcast_ref::<Error>(), Some(Error::Silent { .. })) {
            return Err(error);
        }
        let last = self.remote.last_line().map(|line| format!("; the server said: {line}"));
        let last = last.unwrap_or_default();
        Err(anyhow!(
            "{error}; --bind 0.0.0.0:PORT chooses the port there, --advertise HOST the address to go to{last}"
        ))
    }
}

/// The server that `ssh` started: `grebe probe --serve --stdio`.
pub(super) fn serve_remote(cancel: Cancel) -> Result<Ending> {
    serve_task(cancel).or_else(|error| Ok(failed(&error)))
}

fn serve_task(cancel: Cancel) -> Result<Ending> {
    let mut input = serve::own_input()?;
    let Some(Hello { task, .. }) = serve::hello::<ServeTask>(&mut input, &PROBES)? else {
        return Ok(Ending::Good);
    };
    let server = Server::bind(&ServeOptions {
        bind: task.bind,
        bounds: Bounds {
            rate_max_bps: task.rate_max_bps,
            bytes_max: task.bytes_max,
            duration_max: task.duration_max_ms.map(Duration::from_millis).or(Some(SERVED_MAX)),
            allow_fast_public: task.allow_fast_public,
        },
        clients: 1,
        idle_max: IDLE_MAX,
        cancel,
    })?;
    serve::answer(&Ready::of(PROBES.protocol).with_ticket(server.ticket()))?;
    serve::tether(input, PROCESS.end);
    run_server(server, IDLE_MAX)
}

/// A probe's server. Its protocol changes with the task and with the probe's packets.
const PROBES: Call = Call {
    arguments: "probe --serve --stdio",
    protocol: PROTOCOL,
    does: "probes",
    instead: "run `grebe probe --serve` there and give its ticket",
    can_bootstrap: false,
};
/// The client comes at once, or does not find it.
const IDLE_MAX: Duration = Duration::from_secs(60);
