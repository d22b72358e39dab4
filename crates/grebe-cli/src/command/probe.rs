//! `grebe probe`: what a path carries, and why not more.

mod live;
mod panels;
mod picture;
mod remote;
mod table;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use grebe_probe::{
    Address, Bounds, Cancel, DATAGRAM_BYTES, Error, PROTOCOL, ProbeOptions, Purpose, ServeEvent,
    ServeOptions, Server, Ticket,
};

use self::remote::{RemoteServer, serve_remote};
use crate::cli::{Probe, SshHost, Target};
use crate::ending::{Ending, Usage};
use crate::graph::end_with_stdin;
use crate::output::{note, out};
use crate::transfer::named_ticket;
use crate::{interrupt, output};

pub(crate) fn run(options: &Probe) -> Result<Ending> {
    let cancel = interrupt::cancel();
    match &options.target {
        Some(Target::Ticket(word)) => with_ticket(options, word, cancel),
        Some(Target::Ssh(host)) => over_ssh(options, host, cancel),
        None if options.stdio => serve_remote(cancel),
        None => serve(options, cancel),
    }
}

fn with_ticket(options: &Probe, word: &str, cancel: Cancel) -> Result<Ending> {
    let ticket = named_ticket(word, Ticket::from_word(word, Purpose::Probe).map_err(Error::from))?;
    probe(options, &advertised(options, ticket)?, cancel)
}

fn over_ssh(options: &Probe, host: &SshHost, cancel: Cancel) -> Result<Ending> {
    let server = RemoteServer::start(host, options)?;
    let outcome = probe(options, server.ticket(), cancel);
    server.explain(outcome)
}

fn serve(options: &Probe, cancel: Cancel) -> Result<Ending> {
    if options.tethered {
        end_with_stdin();
    }
    let duration_max = Some(options.duration.unwrap_or(SERVED_MAX));
    let server = Server::bind(&ServeOptions {
        bind: options.bind,
        bounds: Bounds { duration_max, ..bounds(options) },
        clients: options.clients,
        idle_max: options.idle_timeout,
        cancel,
    })?;
    let word = advertised(options, server.ticket().clone())?.word();
    if options.json {
        let version = env!("CARGO_PKG_VERSION");
        output::json(&serde_json::json!({ "ticket": *word, "version": version, "protocol": PROTOCOL }))?;
    } else {
        out!("grebe probe {}", *word)?;
    }
    run_server(server, options.idle_timeout)
}

fn run_server(server: Server, idle_max: Duration) -> Result<Ending> {
    let served = server.run(|event| match event {
        ServeEvent::Began(client) => note!("probed by {client}"),
        _ => note!("done"),
    })?;
    if interrupt::is_pending() {
        return Ok(Ending::Interrupted);
    }
    if served == 0 {
        anyhow::bail!(
            "nobody came within {} s; start it again, and check that UDP reaches this machine",
            idle_max.as_secs()
        );
    }
    Ok(Ending::Good)
}

fn probe(options: &Probe, ticket: &Ticket, cancel: Cancel) -> Result<Ending> {
    let probe_options = ProbeOptions {
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
        cancel,
    };
    if options.json && options.png.as_deref().is_some_and(output::is_stdout) {
        return Err(Usage("--png - and --json would both write to standard output".into()).into());
    }
    if let Some(folder) = options.png.as_deref().and_then(Path::parent).filter(|folder| *folder != "")
        && !folder.is_dir()
    {
        return Err(Usage(format!("--png: there is no folder {}", folder.display())).into());
    }
    let report = live::probe(ticket, &probe_options, options.json)?;
    if let Some(path) = &options.png {
        picture::write(&report, path)?;
    }
    if options.png.as_deref().is_some_and(output::is_stdout) {
        output::say_lines(&table::text(&report));
    } else if options.json {
        output::json(&serde_json::to_string_pretty(&report)?)?;
    } else {
        output::text(&table::text(&report))?;
    }
    Ok(Ending::Good)
}

/// The ticket, with the address where the user says that its server is found.
fn advertised(options: &Probe, mut ticket: Ticket) -> Result<Ticket> {
    if let Some(place) = &options.advertise {
        let port = place.port.or(ticket.addresses.first().map(Address::port)).unwrap_or_default();
        let address =
            Address::new(&place.host, port).map_err(|error| Usage(format!("--advertise: {error}")))?;
        ticket.addresses = vec![address];
    }
    Ok(ticket)
}

/// What was asked for; the default for the rest depends on the address of the other side.
fn bounds(options: &Probe) -> Bounds {
    Bounds {
        rate_max_bps: options.max_rate,
        bytes_max: options.max_bytes,
        duration_max: options.duration,
        allow_fast_public: options.yes,
    }
}

fn datagram_bytes(bytes: usize) -> Result<u16> {
    let (least, most) = (DATAGRAM_BYTES.start(), DATAGRAM_BYTES.end());
    let fits = u16::try_from(bytes).ok().filter(|bytes| DATAGRAM_BYTES.contains(bytes));
    Ok(fits
        .ok_or_else(|| Usage(format!("--size {bytes}: a datagram of a probe has {least} to {most} bytes")))?)
}

/// A client keeps to less by itself.
const SERVED_MAX: Duration = Duration::from_secs(120);
