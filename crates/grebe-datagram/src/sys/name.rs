//! Socket addresses that the kernel wrote.

use std::mem::size_of;
use std::net::{Ipv4Addr, SocketAddr};

use socket2::{SockAddr, SockAddrStorage};

/// Where no address was told.
pub(super) const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The address in a name that the kernel filled, `len` bytes of it.
pub(super) fn address(name: &SockAddrStorage, len: usize) -> SocketAddr {
    let len = len.min(size_of::<SockAddrStorage>()) as socket2::socklen_t;
    let name: *const SockAddrStorage = name;
    // SAFETY: the storage was zeroed when made and only the kernel writes to it, so all of it is initialised.
    let name = unsafe { SockAddr::new(name.read(), len) };
    name.as_socket().unwrap_or(NOWHERE)
}
