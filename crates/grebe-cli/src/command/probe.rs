//! `grebe probe`: what a path carries, and why not more.

mod live;
mod panels;
mod picture;
mod ssh_server;
mod table;
mod ticket;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use grebe_probe::{
    Bounds, Error, PROTOCOL, ProbeOptions, Report, ServeOptions, Server, Serving, Ticket, Train, probe,
};

use self::live::Live;
use self::ssh_server::SshServer;
use self::ticket::advertised;
use crate::cli::{Probe, SshHost, Target};
use crate::ending::{Ending, Usage};
use crate::graph::end_with_stdin;
use crate::output::{note, out};
use crate::{interrupt, output};

pub(crate) fn run(options: &Probe) -> Result<Ending> {
    interrupt::catch();
    let outcome = match &options.target {
        Some(Target::Ticket(ticket)) => ask(options, &advertised(options, ticket)),
        Some(Target::Ssh(host)) => over_ssh(options, host),
        None => serve(options),
    };
    match outcome.as_ref().map_err(|error| error.downcast_ref::<Error>()) {
        Err(Some(Error::Interrupted)) => Ok(Ending::Interrupted),
        Err(Some(Error::Limit { what })) => Err(Usage(what.clone()).into()),
        _ => outcome,
    }
}

fn over_ssh(options: &Probe, host: &SshHost) -> Result<Ending> {
    let server = SshServer::start(host, options)?;
    let outcome = ask(options, server.ticket());
    server.explain(outcome)
}

fn serve(options: &Probe) -> Result<Ending> {
    if options.tethered {
        end_with_stdin();
    }
    let duration_max = Some(options.duration.unwrap_or(SERVED_MAX));
    let server = Server::bind(&ServeOptions {
        bind: options.bind.unwrap_or(ANYWHERE),
        bounds: Bounds { duration_max, ..bounds(options) },
        clients: options.clients,
        idle_max: options.idle_timeout,
    })?;
    let ticket = advertised(options, server.ticket()).to_string();
    if options.json {
        let version = env!("CARGO_PKG_VERSION");
        out!("{}", serde_json::json!({ "ticket": ticket, "version": version, "protocol": PROTOCOL }))?;
    } else {
        out!("grebe probe {ticket}")?;
    }
    let served = server.run(&interrupt::is_pending, &mut |serving| match serving {
        Serving::Began(client) => note!("probed by {client}"),
        _ => note!("done"),
    })?;
    if interrupt::is_pending() {
        return Ok(Ending::Interrupted);
    }
    if served == 0 {
        anyhow::bail!(
            "nobody came within {} s; start it again, and check that UDP reaches this machine",
            options.idle_timeout.as_secs()
        );
    }
    Ok(Ending::Good)
}

fn ask(options: &Probe, ticket: &Ticket) -> Result<Ending> {
    let probing = ProbeOptions {
        bounds: bounds(options),
        datagram_bytes: options.size.map(datagram_bytes).transpose()?,
        interval: options.interval,
        tcp_writes: options
            .tcp_write
            .iter()
            .filter(|&&bytes| bytes > 0)
            .map(|&bytes| bytes.min(16 << 20) as u32)
            .collect(),
        moves: options.amount.clone(),
    };
    if let Some(folder) = options.png.as_deref().and_then(Path::parent).filter(|folder| *folder != "")
        && !folder.is_dir()
    {
        return Err(Usage(format!("--png: there is no folder {}", folder.display())).into());
    }
    let report = watched(options, ticket, &probing)?;
    if let Some(path) = &options.png {
        picture::write(&report, path)?;
        note!("wrote {}", path.display());
    }
    if options.json {
        out!("{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        output::text(&table::text(&report))?;
    }
    Ok(Ending::Good)
}

fn watched(options: &Probe, ticket: &Ticket, probing: &ProbeOptions) -> Result<Report> {
    let live = Live::new(options.json);
    let is_interrupted = || {
        live.glance();
        interrupt::is_pending()
    };
    let outcome = probe(ticket, probing, &is_interrupted, &mut |probing| live.tell(&probing));
    live.end();
    Ok(outcome?)
}

/// What was asked for; what is left open depends on who the other side is.
fn bounds(options: &Probe) -> Bounds {
    Bounds {
        rate_max_bps: options.max_rate,
        bytes_max: options.max_bytes,
        duration_max: options.duration,
        anyway: options.yes,
    }
}

fn datagram_bytes(bytes: usize) -> Result<u16> {
    let (least, most) = (usize::from(Train::SIZE_MIN), usize::from(Train::SIZE_MAX));
    if (least..=most).contains(&bytes) {
        return Ok(bytes as u16);
    }
    Err(Usage(format!("--size {bytes}: a datagram of a probe has {least} to {most} bytes")).into())
}

/// A client keeps to less by itself.
const SERVED_MAX: Duration = Duration::from_secs(120);
const ANYWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
