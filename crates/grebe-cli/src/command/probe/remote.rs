//! Server of a probe on another host: both ends of `ssh`.

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

/// Server on another host; dropping it ends the server.
pub(super) struct RemoteServer {
    remote: Remote,
    ticket: Ticket,
}

/// Task of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ServeTask {
    bind: Option<SocketAddr>,
    rate_max_bps: Option<f64>,
    bytes_max: Option<u64>,
    duration_max_ms: Option<u64>,
    allow_fast_public: bool,
}

impl RemoteServer {
    /// Starts the server and waits for its ticket, without a timeout because `ssh` may prompt for a password.
    pub(super) fn start(host: &SshHost, options: &Probe) -> Result<Self> {
        let how = HostOptions {
            ssh: options.ssh.clone(),
            remote_path: options.remote_path.clone(),
            address: options.advertise.as_ref().map(|place| place.host.clone()),
            ..HostOptions::default()
        };
        let settings = settings(&Config::of_user()?, host, &how)?;
        let Bounds { rate_max_bps, bytes_max, duration_max, allow_fast_public } = bounds(options);
        // The server needs a second for itself.
        let duration_max_ms = duration_max.map(|duration| duration.as_millis() as u64 + 2_000);
        let task =
            ServeTask { bind: options.bind, rate_max_bps, bytes_max, duration_max_ms, allow_fast_public };
        let terms = Terms { via: Via::Ssh, mode: Mode::Fair, limit_bits_per_s: None };
        let hello = Hello::new(&PROBES, Meet::Here, terms, task);
        let mut remote = Remote::start(&settings, &PROBES, &hello, &interrupt::is_pending)?;
        let ticket = remote.ticket(&settings, Purpose::Probe)?.context("the server sent no ticket")?;
        let name = settings.address.unwrap_or_else(|| remote.host_name());
        resolve(&name).context("use --advertise HOST if datagrams need another address than ssh")?;
        Ok(Self { remote, ticket: advertised(options, ticket)? })
    }

    /// The ticket for the client.
    pub(super) fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Adds the options of the server to an error of the probe.
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

/// Runs the server that `ssh` started: `grebe probe --serve --stdio`.
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

/// Server of a probe. The protocol version changes with the task and with the packets.
const PROBES: Call = Call {
    arguments: "probe --serve --stdio",
    protocol: PROTOCOL,
    does: "probes",
    instead: "run `grebe probe --serve` on it and use the ticket",
    can_bootstrap: false,
};
/// The client connects at once or never.
const IDLE_MAX: Duration = Duration::from_secs(60);
