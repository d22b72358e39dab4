//! Options and run of a probe's server, local or remote.

use std::time::Duration;

use anyhow::Result;
use grebe_probe::{Address, Bounds, ServeEvent, Server, Ticket};

use crate::cli::Probe;
use crate::ending::{Ending, Usage};
use crate::interrupt;
use crate::output::note;

pub(super) fn run_server(server: Server, idle_max: Duration) -> Result<Ending> {
    let served = server.run(|event| match event {
        ServeEvent::Began(client) => note!("probed by {client}"),
        _ => note!("done"),
    })?;
    if interrupt::is_pending() {
        return Ok(Ending::Interrupted);
    }
    if served == 0 {
        anyhow::bail!(
            "no client connected within {} s: check that UDP reaches this machine",
            idle_max.as_secs()
        );
    }
    Ok(Ending::Good)
}

/// The ticket with the address of --advertise.
pub(super) fn advertised(options: &Probe, mut ticket: Ticket) -> Result<Ticket> {
    if let Some(place) = &options.advertise {
        let port = place.port.or(ticket.addresses.first().map(Address::port)).unwrap_or_default();
        let address =
            Address::new(&place.host, port).map_err(|error| Usage(format!("--advertise: {error}")))?;
        ticket.addresses = vec![address];
    }
    Ok(ticket)
}

/// Bounds from the options. Other defaults depend on the peer's address.
pub(super) fn bounds(options: &Probe) -> Bounds {
    Bounds {
        rate_max_bps: options.max_rate,
        bytes_max: options.max_bytes,
        duration_max: options.duration,
        allow_fast_public: options.yes,
    }
}

/// Clients limit themselves to less.
pub(super) const SERVED_MAX: Duration = Duration::from_secs(120);
