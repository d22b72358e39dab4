//! `grebe probe`: what a path carries, and why not more.

mod table;

use std::io::{IsTerminal, Write};
use std::net::IpAddr;
use std::time::Duration;

use anyhow::Result;
use grebe_probe::{Error, Limits, ProbeOptions, Probing, ServeOptions, Server, Serving, Train, probe};

use super::{Ending, Usage};
use crate::cli::Probe;
use crate::interrupt;

pub fn run(options: &Probe) -> Result<Ending> {
    interrupt::catch();
    let outcome = match &options.ticket {
        Some(ticket) => ask(options, ticket),
        None => serve(options),
    };
    match outcome.as_ref().map_err(|error| error.downcast_ref::<Error>()) {
        Err(Some(Error::Interrupted)) => Ok(Ending::Interrupted),
        Err(Some(Error::Limit { what })) => Err(Usage(what.clone()).into()),
        _ => outcome,
    }
}

fn serve(options: &Probe) -> Result<Ending> {
    let limits = limits(options, options.bind.ip());
    limits.check(options.bind, options.yes || options.bind.ip().is_unspecified())?;
    let server = Server::bind(&ServeOptions {
        bind: options.bind,
        limits,
        clients: options.clients,
        idle_max: options.idle_timeout,
    })?;
    let ticket = server.ticket().to_string();
    if options.json {
        println!("{}", serde_json::json!({ "ticket": ticket }));
    } else {
        println!("grebe probe {ticket}");
    }
    std::io::stdout().flush()?;
    let served = server.run(&interrupt::is_pending, &mut |serving| match serving {
        Serving::Began(client) => eprintln!("probed by {client}"),
        _ => eprintln!("done"),
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

fn ask(options: &Probe, ticket: &grebe_probe::Ticket) -> Result<Ending> {
    let datagram_bytes = options.size.map(datagram_bytes).transpose()?;
    let with_limits = options.max_rate.is_some() || options.max_bytes.is_some() || options.duration.is_some();
    let peer = grebe_probe::resolve(ticket)?;
    let probing = ProbeOptions {
        limits: with_limits.then(|| limits(options, peer.ip())),
        datagram_bytes,
        interval: options.interval,
        tcp_writes: options
            .tcp_write
            .iter()
            .filter(|&&bytes| bytes > 0)
            .map(|&bytes| bytes.min(16 << 20) as u32)
            .collect(),
        moves: options.amount.clone(),
        anyway: options.yes,
    };
    // A person looks on: each train gets its line as it ends.
    let is_watched = !options.json && std::io::stderr().is_terminal();
    let mut live = table::Live::default();
    let mut told = |probing: Probing| {
        if let Some(line) = live.line(&probing).filter(|_| is_watched) {
            eprintln!("{line}");
        }
    };
    let report = probe(ticket, &probing, &interrupt::is_pending, &mut told)?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", table::text(&report));
    }
    Ok(Ending::Good)
}

fn limits(options: &Probe, peer: IpAddr) -> Limits {
    // A server learns who comes only later: it leaves the choice to them.
    let usual = Limits::for_peer(if peer.is_unspecified() { [127, 0, 0, 1].into() } else { peer });
    let longest = if options.serve { SERVED_MAX } else { usual.duration_max };
    Limits {
        rate_max_bps: options.max_rate.unwrap_or(usual.rate_max_bps),
        bytes_max: options.max_bytes.unwrap_or(usual.bytes_max),
        duration_max: options.duration.unwrap_or(longest),
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
