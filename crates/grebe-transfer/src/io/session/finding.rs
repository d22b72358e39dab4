//! Who has a ticket finds the one that made it, at its addresses or by its relay.

use std::net::{SocketAddr, UdpSocket};

use grebe_packet::Ticket;
use grebe_relay::{Side, Via};

use super::Transport;
use super::ask::{Asking, Connected, ask};
use super::connect;
use super::rendezvous::Rendezvous;
use crate::error::Result;

/// The one that made a ticket, and what it was found by.
pub(super) struct Found<D> {
    pub(super) connected: Connected,
    /// What reaches it by UDP, and another handle of that.
    pub(super) datagrams: D,
    pub(super) socket: UdpSocket,
    /// All that the ticket names.
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) meeting: Option<Rendezvous>,
}

/// `bind` makes a socket at a local address, and another handle of it.
///
/// # Errors
/// [`Error::NoAnswer`](crate::Error::NoAnswer) and what else asking comes to; those of `bind`.
pub(super) fn find<D>(
    ticket: &Ticket,
    via: Via,
    asking: &Asking<'_>,
    bind: impl Fn(SocketAddr) -> Result<(D, UdpSocket)>,
) -> Result<Found<D>> {
    let addresses = connect::addresses_of(ticket, via)?;
    let mut sockets = connect::bind_to_ask(ticket, &addresses, bind)?;
    let mut meeting = match sockets.first() {
        Some((_, socket)) if asking.transport != Transport::Tcp => {
            Rendezvous::start(ticket, Side::Asks, via, socket, asking.notify)?
        }
        _ => None,
    };
    let own: Vec<&UdpSocket> = sockets.iter().map(|(_, socket)| socket).collect();
    let asked = ask(&own, ticket, &addresses, meeting.as_mut(), asking);
    let (connected, number) = Rendezvous::leave_on_failure(&mut meeting, own[0], asked)?;
    let (datagrams, socket) = sockets.swap_remove(number);
    Ok(Found { connected, datagrams, socket, addresses, meeting })
}
