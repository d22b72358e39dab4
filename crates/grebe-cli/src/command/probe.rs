//! `grebe probe`: capacity of a path, and its limit.

mod live;
mod panels;
mod remote;
mod server;
mod table;

use anyhow::Result;
use grebe_probe::{
    Bounds, Cancel, DATAGRAM_BYTES, Error, PROTOCOL, ProbeOptions, Purpose, ServeOptions, Server, Ticket,
};

use self::remote::{RemoteServer, serve_remote};
use self::server::{SERVED_MAX, advertised, bounds, run_server};
use crate::cli::{Probe, SshHost, Target};
use crate::ending::{Ending, Usage};
use crate::graph::end_with_stdin;
use crate::output::out;
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
    let report = live::probe(ticket, &probe_options, options.json)?;
    if options.json {
        output::json(&serde_json::to_string_pretty(&report)?)?;
    } else {
        output::text(&table::text(&report))?;
    }
    Ok(Ending::Good)
}

fn datagram_bytes(bytes: usize) -> Result<u16> {
    let (least, most) = (DATAGRAM_BYTES.start(), DATAGRAM_BYTES.end());
    let fits = u16::try_from(bytes).ok().filter(|bytes| DATAGRAM_BYTES.contains(bytes));
    Ok(fits.ok_or_else(|| Usage(format!("--size {bytes}: give {least} to {most} bytes")))?)
}
