//! Addresses of this host, and sockets for both families and both protocols.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use crate::socket::listen_tcp;

/// Addresses under which others reach a socket bound at `bound`, IPv6 first. For the unspecified address,
/// excludes host-local ones unless all are host-local.
pub fn own_addresses(bound: SocketAddr) -> Vec<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return vec![bound];
    }
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let is_usable = |ip: &IpAddr| match ip {
        // A socket at the unspecified IPv6 address also covers IPv4.
        IpAddr::V4(ip) => !ip.is_link_local(),
        IpAddr::V6(ip) => bound.is_ipv6() && !ip.is_unicast_link_local(),
    };
    let mut own: Vec<IpAddr> = interfaces.iter().map(if_addrs::Interface::ip).filter(is_usable).collect();
    if own.iter().any(|ip| !ip.is_loopback()) {
        own.retain(|ip| !ip.is_loopback());
    }
    // Between two equally fast addresses, the one without a NAT wins.
    own.sort_by_key(IpAddr::is_ipv4);
    own.into_iter().map(|ip| SocketAddr::new(ip, bound.port())).collect()
}

/// Source addresses of a socket bound at `bound` for public destinations, IPv4 first; loopback without a
/// route. Sends nothing.
pub fn outgoing_addresses(bound: IpAddr) -> Vec<IpAddr> {
    if !bound.is_unspecified() {
        return vec![bound];
    }
    // Asks the system for the source address towards documentation addresses.
    let outgoing = |any: IpAddr, world: IpAddr| {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((world, 9))?;
        io::Result::Ok(socket.local_addr()?.ip())
    };
    let v4 = outgoing(Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into());
    let v6 = match bound {
        IpAddr::V4(_) => None,
        any => outgoing(any, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()).ok(),
    };
    let found: Vec<IpAddr> = v4.into_iter().chain(v6).collect();
    if found.is_empty() { vec![Ipv4Addr::LOCALHOST.into()] } else { found }
}

/// Binds at every address of this host, for both families if available: tries `bind` with IPv6 first, which
/// includes IPv4.
///
/// ```
/// use grebe_datagram::{Options, Receiver, listen_anywhere};
///
/// let receiver = listen_anywhere(0, |any| Receiver::<Vec<u8>>::bind(any, &Options::default()))?;
/// assert!(receiver.local_addr()?.ip().is_unspecified());
/// # Ok::<(), grebe_datagram::Error>(())
/// ```
///
/// # Errors
/// Those of `bind` for IPv4, if both fail.
pub fn listen_anywhere<T, E>(port: u16, bind: impl Fn(SocketAddr) -> Result<T, E>) -> Result<T, E> {
    // A system may lack IPv6.
    bind((Ipv6Addr::UNSPECIFIED, port).into()).or_else(|_| bind((Ipv4Addr::UNSPECIFIED, port).into()))
}

/// Binds a datagram socket at `address`, and listens for TCP at the same port, so that one hole in a firewall
/// suffices. If the system chooses a port that is free only for UDP, tries again.
///
/// Returns the socket, its address, and the listener or the reason why there is none.
///
/// # Errors
/// Those of `bind` and `bound`.
pub fn bind_with_tcp<T, E>(
    address: SocketAddr,
    bind: impl Fn(SocketAddr) -> Result<T, E>,
    bound: impl Fn(&T) -> Result<SocketAddr, E>,
) -> Result<(T, SocketAddr, io::Result<TcpListener>), E> {
    let mut tries = if address.port() == 0 { PORTS_TRIED } else { 1 };
    loop {
        let socket = bind(address)?;
        let at = bound(&socket)?;
        let listener = listen_tcp(at);
        tries -= 1;
        if listener.is_ok() || tries == 0 {
            return Ok((socket, at, listener));
        }
    }
}

const PORTS_TRIED: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_those_that_others_reach() {
        let own = own_addresses((Ipv6Addr::UNSPECIFIED, 7).into());
        assert!(own.iter().all(|own| !own.ip().is_unspecified() && own.port() == 7), "{own:?}");
        assert!(own.is_sorted_by_key(SocketAddr::is_ipv4), "{own:?}");
        let of_loopback = own.iter().filter(|own| own.ip().is_loopback()).count();
        assert!([0, own.len()].contains(&of_loopback), "{own:?}");
        assert!(own_addresses((Ipv4Addr::UNSPECIFIED, 7).into()).iter().all(SocketAddr::is_ipv4));
        let outgoing = outgoing_addresses(Ipv6Addr::UNSPECIFIED.into());
        assert!(outgoing.is_sorted_by_key(IpAddr::is_ipv6) && !outgoing.is_empty(), "{outgoing:?}");
        assert_eq!(outgoing_addresses([192, 0, 2, 7].into()), [IpAddr::from([192, 0, 2, 7])]);
    }

    #[test]
    fn any_port_skips_those_that_tcp_uses() {
        let taken = listen_tcp((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let taken = taken.local_addr().unwrap();
        let ports = [taken.port(), taken.port(), 0];
        let turn = std::cell::Cell::new(0);
        let bind = |address: SocketAddr| {
            let port = if address.port() == 0 { ports[turn.replace(turn.get() + 1)] } else { address.port() };
            UdpSocket::bind((Ipv4Addr::LOCALHOST, port))
        };
        let any = (Ipv4Addr::LOCALHOST, 0).into();
        let (_, at, listener) = bind_with_tcp(any, bind, UdpSocket::local_addr).unwrap();
        assert_eq!((turn.get(), listener.unwrap().local_addr().unwrap()), (3, at));
        let (_, _, none) = bind_with_tcp(taken, bind, UdpSocket::local_addr).unwrap();
        assert!(none.is_err(), "the port was named");
    }
}
