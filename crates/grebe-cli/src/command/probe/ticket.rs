//! The ticket that a client is given.

use anyhow::Result;
use grebe_probe::{Address, Ticket};

use crate::cli::Probe;
use crate::ending::Usage;

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
