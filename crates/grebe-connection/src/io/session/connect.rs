//! Tickets, the addresses in them, sockets at those, and another connection to a peer that has fallen silent.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use grebe_datagram::{listen_anywhere, own_addresses, route_payload_bytes, set_dont_fragment};
use grebe_packet::{Key, Purpose, Ticket};
use grebe_relay::Via;

use super::tcp::{self, PacketStream};
use crate::error::{Error, Result};
use crate::io::unix_s;

/// A ticket with a new key, for a listener at `bound`; where that is any address, with those of this host.
pub(super) fn new_ticket(purpose: Purpose, bound: SocketAddr, lifetime: Duration) -> Result<Ticket> {
    let mut addresses = own_addresses(bound);
    if addresses.is_empty() {
        return Err(Error::Ticket { what: "this host has no address of that family to name in it" });
    }
    keep_best(&mut addresses);
    Ok(Ticket {
        purpose,
        addresses: addresses.into_iter().map(Into::into).collect(),
        relay: None,
        expires_unix_s: unix_s().saturating_add(lifetime.as_secs()),
        key: Key::random()?,
    })
}

/// As many as a ticket holds, of both families where there are both.
fn keep_best(addresses: &mut Vec<SocketAddr>) {
    let of_v4 = addresses.iter().filter(|address| address.is_ipv4()).count();
    let v6_max = Ticket::ADDRESSES_MAX - of_v4.min(Ticket::ADDRESSES_MAX / 2);
    let mut of_v6 = 0;
    addresses.retain(|address| {
        of_v6 += usize::from(address.is_ipv6());
        address.is_ipv4() || of_v6 <= v6_max
    });
    addresses.truncate(Ticket::ADDRESSES_MAX);
}

/// The addresses of a ticket that may be asked at, names looked up.
pub(super) fn addresses_of(ticket: &Ticket, via: Via) -> Result<Vec<SocketAddr>> {
    if via == Via::Relay {
        let has_relay = ticket.relay.is_some();
        return has_relay
            .then(Vec::new)
            .ok_or(Error::Ticket { what: "it names no relay, and only one is to be used" });
    }
    let found: Vec<SocketAddr> =
        ticket.addresses.iter().filter_map(|address| address.to_socket_addrs().ok()).flatten().collect();
    if found.is_empty() && ticket.relay.is_none() {
        Err(Error::Ticket { what: "it has no address that can be found" })
    } else {
        Ok(found)
    }
}

/// The addresses to bind for asking at `addresses`: a socket has one address family, and the best one is not known yet.
pub(super) fn locals_for(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut locals: Vec<SocketAddr> = Vec::new();
    for address in addresses {
        let any = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let local = SocketAddr::new(any, 0);
        if !locals.contains(&local) {
            locals.push(local);
        }
    }
    locals
}

/// Binds the sockets to ask from: one for each family of `addresses`. Where both ends meet at a relay it is one for both families, since what
/// the relay sees of it holds for no other.
pub(super) fn bind_to_ask<T>(
    ticket: &Ticket,
    addresses: &[SocketAddr],
    bind: impl Fn(SocketAddr) -> Result<T>,
) -> Result<Vec<T>> {
    if ticket.relay.is_none() {
        return bind_each(&locals_for(addresses), bind);
    }
    Ok(vec![listen_anywhere(0, bind)?])
}

/// Binds a socket for each of `locals`; a system may have none of a family.
///
/// # Errors
/// That of the last one where none can be bound.
pub(super) fn bind_each<T>(locals: &[SocketAddr], bind: impl Fn(SocketAddr) -> Result<T>) -> Result<Vec<T>> {
    let (mut bound, mut failure) = (Vec::new(), Error::Ticket { what: "it has no address" });
    for local in locals {
        match bind(*local) {
            Ok(socket) => bound.push(socket),
            Err(error) => failure = error,
        }
    }
    if bound.is_empty() { Err(failure) } else { Ok(bound) }
}

/// Bytes of UDP payload that the path to `peer` carries for sure, and longer datagrams to probe, ascending. Those are for routes that carry
/// them, and for systems where a datagram that is too long for a hop is lost there and not cut into fragments.
pub(super) fn datagram_bytes(socket: &UdpSocket, peer: SocketAddr) -> (usize, Vec<usize>) {
    let route_bytes = route_payload_bytes(grebe_relay::canonical(peer)).unwrap_or(DATAGRAM_BYTES);
    let is_whole = set_dont_fragment(socket).is_ok();
    let longer = [1_372, 1_424, 1_472, route_bytes].into_iter();
    let probes = longer.filter(|bytes| is_whole && *bytes <= route_bytes).collect();
    (route_bytes.min(DATAGRAM_BYTES), probes)
}

/// Another way to a peer that has fallen silent, for the end that has the ticket.
pub(super) struct Fallback {
    addresses: Vec<SocketAddr>,
    dialled: Option<Receiver<PacketStream>>,
    next_us: u64,
}

impl Fallback {
    /// `addresses` are those of the ticket; none: this end made it, and waits for the other to come.
    pub(super) fn new(addresses: Vec<SocketAddr>) -> Self {
        Self { addresses, dialled: None, next_us: 0 }
    }

    /// Whether there is an address to dial.
    pub(super) fn can_dial(&self) -> bool {
        !self.addresses.is_empty()
    }

    /// A new connection to the peer, where the route in use has not worked for so long and TCP passes.
    pub(super) fn poll(&mut self, now_us: u64, stuck_us: u64) -> Option<PacketStream> {
        let is_silent = stuck_us > SILENT_US;
        if is_silent && self.dialled.is_none() && now_us >= self.next_us && !self.addresses.is_empty() {
            self.dialled = Some(tcp::dial(&self.addresses, DIAL_WITHIN));
            self.next_us = now_us + DIAL_EVERY_US;
        }
        match self.dialled.as_ref()?.try_recv() {
            Err(TryRecvError::Empty) => None,
            // Meanwhile UDP may pass again.
            found => {
                self.dialled = None;
                found.ok().filter(|_| is_silent)
            }
        }
    }
}

/// Whether packets of the session that come from another address show where the peer is now. Only the same host: whoever holds back packets
/// and sends them from elsewhere shall not choose whom we send to.
pub(super) fn is_moved(peer: SocketAddr, from: SocketAddr) -> bool {
    from != peer && from.ip() == peer.ip()
}

/// After so long without a word, another way is looked for.
pub(super) const SILENT_US: u64 = 5_000_000;

const DIAL_EVERY_US: u64 = 10_000_000;
const DIAL_WITHIN: Duration = Duration::from_secs(10);

/// Every path carries this.
const DATAGRAM_BYTES: usize = 1_200;

/// How often an end that waits for its peer looks who came by TCP.
pub(super) const LOOK_AT_DOOR_EVERY: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_names_both_families_and_those_of_ipv6_first() {
        let v6 = |number: u16| SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, number], 7));
        let v4 = |number: u8| SocketAddr::from(([10, 0, 0, number], 7));
        for (of_v6, of_v4, kept) in
            [(1, 1, (1, 1)), (20, 1, (7, 1)), (20, 20, (4, 4)), (0, 20, (0, 8)), (2, 20, (2, 6))]
        {
            let mut addresses: Vec<_> =
                (0..of_v6).map(v6).chain((0..of_v4).map(|number| v4(number as u8))).collect();
            keep_best(&mut addresses);
            let (first, rest) = addresses.split_at(kept.0);
            assert!(first.iter().all(SocketAddr::is_ipv6) && rest.iter().all(SocketAddr::is_ipv4));
            assert_eq!(rest.len(), kept.1, "{of_v6} and {of_v4}");
        }
    }
}
