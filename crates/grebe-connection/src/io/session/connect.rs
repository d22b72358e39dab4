//! Tickets and their addresses, the sockets to reach them, and a new connection to a peer that fell silent.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use grebe_datagram::{listen_anywhere, own_addresses, route_payload_bytes, set_dont_fragment};
use grebe_packet::{Key, Purpose, Ticket};
use grebe_relay::Via;

use super::tcp::{self, PacketStream};
use crate::error::{Error, Result};
use crate::io::unix_s;

/// Ticket with a new key for a listener at `bound`. If that is the unspecified address, the ticket names the
/// addresses of this host.
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

/// Truncates the list to the capacity of a ticket and keeps both families if both are present.
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

/// Addresses of the ticket to ask, with names resolved.
pub(super) fn addresses_of(ticket: &Ticket, via: Via) -> Result<Vec<SocketAddr>> {
    if via == Via::Relay {
        let has_relay = ticket.relay.is_some();
        return has_relay
            .then(Vec::new)
            .ok_or(Error::Ticket { what: "it names no relay, and only one is to be used" });
    }
    let found = ticket.addresses.iter().filter_map(|address| address.to_socket_addrs().ok()).flatten();
    let found: Vec<SocketAddr> = found.take(ADDRESSES_MAX).collect();
    if found.is_empty() && ticket.relay.is_none() {
        Err(Error::Ticket { what: "it has no address that can be found" })
    } else {
        Ok(found)
    }
}

/// Addresses to bind for asking at `addresses`. A socket has one address family, and the best family is not
/// known yet.
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

/// Binds one socket per family of `addresses`. Ends that meet at a relay use one socket for both families,
/// because the mapping that the relay sees holds for no other socket.
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

/// Binds a socket at each of `locals`. A system may lack a family.
///
/// # Errors
/// The last error if none can be bound.
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

/// Bytes of UDP payload that the path to `peer` carries for certain, and longer datagrams to probe,
/// ascending. Probes need a route that may carry them, and a system that does not fragment datagrams.
pub(super) fn datagram_bytes(socket: &UdpSocket, peer: SocketAddr) -> (usize, Vec<usize>) {
    let route_bytes = route_payload_bytes(grebe_relay::canonical(peer)).unwrap_or(DATAGRAM_BYTES);
    let is_whole = set_dont_fragment(socket).is_ok();
    let longer = [1_372, 1_424, 1_472, route_bytes].into_iter();
    let probes = longer.filter(|bytes| is_whole && *bytes <= route_bytes).collect();
    (route_bytes.min(DATAGRAM_BYTES), probes)
}

/// Alternative route to a silent peer, for the end that has the ticket.
pub(super) struct Fallback {
    addresses: Vec<SocketAddr>,
    dialled: Option<Receiver<PacketStream>>,
    next_us: u64,
}

impl Fallback {
    /// `addresses` are those of the ticket. Empty for the end that made the ticket and waits for the other
    /// end.
    pub(super) fn new(addresses: Vec<SocketAddr>) -> Self {
        Self { addresses, dialled: None, next_us: 0 }
    }

    /// Whether there is an address to dial.
    pub(super) fn can_dial(&self) -> bool {
        !self.addresses.is_empty()
    }

    /// Returns a new connection to the peer once the route in use has failed for `stuck_us` and TCP passes.
    pub(super) fn poll(&mut self, now_us: u64, stuck_us: u64) -> Option<PacketStream> {
        let is_silent = stuck_us > SILENT_US;
        if is_silent && self.dialled.is_none() && now_us >= self.next_us && !self.addresses.is_empty() {
            self.dialled = Some(tcp::dial(&self.addresses, DIAL_WITHIN));
            self.next_us = now_us + DIAL_EVERY_US;
        }
        match self.dialled.as_ref()?.try_recv() {
            Err(TryRecvError::Empty) => None,
            // UDP may have recovered meanwhile.
            found => {
                self.dialled = None;
                found.ok().filter(|_| is_silent)
            }
        }
    }
}

/// Whether session packets from another address show that the peer has moved. Only ports of the same host
/// count: an attacker who holds back packets and sends them from elsewhere must not redirect us.
pub(super) fn is_moved(peer: SocketAddr, from: SocketAddr) -> bool {
    from != peer && from.ip() == peer.ip()
}

/// Maximum addresses of a ticket, of which each costs a thread over TCP. A name can have thousands.
const ADDRESSES_MAX: usize = 64;

/// Silence after which this end looks for another route.
pub(super) const SILENT_US: u64 = 5_000_000;

const DIAL_EVERY_US: u64 = 10_000_000;
const DIAL_WITHIN: Duration = Duration::from_secs(10);

/// Minimum that every path carries.
const DATAGRAM_BYTES: usize = 1_200;

/// Accept interval of an end that waits for its peer over TCP.
pub(super) const LOOK_AT_DOOR_EVERY: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_from_another_host_do_not_lead_there() {
        let at = |address: &str| -> SocketAddr { address.parse().unwrap() };
        let peer = at("192.0.2.7:4000");
        assert!(is_moved(peer, at("192.0.2.7:4001")));
        assert!(!is_moved(peer, peer) && !is_moved(peer, at("192.0.2.8:4000")));
        assert!(!is_moved(at("[2001:db8::7]:1"), at("[2001:db8::8]:1")));
    }

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
