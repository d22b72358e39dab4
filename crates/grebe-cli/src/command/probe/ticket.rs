//! The ticket that a client is given.

use grebe_probe::Ticket;

use crate::cli::Probe;

/// The ticket, with the place where its server is found.
pub(super) fn advertised(options: &Probe, ticket: &Ticket) -> Ticket {
    let Some(place) = &options.advertise else { return ticket.clone() };
    Ticket { host: place.host.clone(), port: place.port.unwrap_or(ticket.port), key: ticket.key.clone() }
}
