//! Socket addresses that the kernel wrote.

use std::net::{Ipv4Addr, SocketAddr};

/// Where no address was told.
pub(super) const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The address in a name that the kernel filled, `len` bytes of it.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple", windows, test))]
pub(super) fn address(name: &socket2::SockAddrStorage, len: usize) -> SocketAddr {
    let len = len.min(size_of::<socket2::SockAddrStorage>()) as socket2::socklen_t;
    let name: *const socket2::SockAddrStorage = name;
    // SAFETY: the storage was zeroed when made and only the kernel writes to it, so all of it is initialised.
    let name = unsafe { socket2::SockAddr::new(name.read(), len) };
    name.as_socket().unwrap_or(NOWHERE)
}
