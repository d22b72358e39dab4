//! Finds the maker of a ticket at its addresses or through its relay.

use std::net::{SocketAddr, UdpSocket};

use grebe_packet::Ticket;
use grebe_relay::{Side, Via};

use super::Transport;
use super::attempt::{Attempt, Connected, ask};
use super::connect;
use super::rendezvous::Rendezvous;
use crate::error::Result;

/// The maker of a ticket, and the means by which it was found.
pub(super) struct Found<D> {
    pub(super) connected: Connected,
    /// UDP socket that reaches it, and a second handle of that socket.
    pub(super) datagrams: D,
    pub(super) socket: UdpSocket,
    /// All addresses of the ticket.
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) meeting: Option<Rendezvous>,
}

/// Finds the maker of the ticket. `bind` makes a socket at a local address and a second handle of it.
///
/// # Errors
/// [`Error::NoAnswer`](crate::Error::NoAnswer), other errors of the attempt, and errors of `bind`.
pub(super) fn find<D>(
    ticket: &Ticket,
    via: Via,
    attempt: &Attempt<'_>,
    bind: impl Fn(SocketAddr) -> Result<(D, UdpSocket)>,
) -> Result<Found<D>> {
    let addresses = connect::addresses_of(ticket, via)?;
    let mut sockets = connect::bind_to_ask(ticket, &addresses, bind)?;
    let mut meeting = match sockets.first() {
        Some((_, socket)) if attempt.transport != Transport::Tcp => {
            Rendezvous::start(ticket, Side::Asks, via, socket, attempt.notify)?
        }
        _ => None,
    };
    let own: Vec<&UdpSocket> = sockets.iter().map(|(_, socket)| socket).collect();
    let asked = ask(&own, ticket, &addresses, meeting.as_mut(), attempt);
    let (connected, number) = Rendezvous::leave_on_failure(&mut meeting, own[0], asked)?;
    let (datagrams, socket) = sockets.swap_remove(number);
    Ok(Found { connected, datagrams, socket, addresses, meeting })
}
