//! Addresses and buffers of a message for the kernel, and the sender that it reports.

use std::net::{Ipv4Addr, SocketAddr};

/// Address if the kernel reported none.
pub(super) const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Address in a name of `len` bytes that the kernel filled.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple", all(test, unix)))]
pub(super) fn address(name: &socket2::SockAddrStorage, len: usize) -> SocketAddr {
    let len = len.min(size_of::<socket2::SockAddrStorage>()) as socket2::socklen_t;
    let name: *const socket2::SockAddrStorage = name;
    // SAFETY: the storage was zeroed when made and only the kernel writes to it, so all of it is initialised.
    let name = unsafe { socket2::SockAddr::new(name.read(), len) };
    name.as_socket().unwrap_or(NOWHERE)
}

/// Buffers of a message and their number; `copied` describes datagrams that were copied together.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple", all(test, unix)))]
pub(super) fn pieces(
    burst: &crate::burst::Burst<'_>,
    message: &crate::burst::Message,
    copied: &mut libc::iovec,
) -> (*mut libc::iovec, usize) {
    match burst.source(message) {
        // `IoSlice` is guaranteed to have the layout of `iovec`.
        crate::burst::Source::Slices(slices) => (slices.as_ptr().cast_mut().cast(), slices.len()),
        crate::burst::Source::Copied(bytes) => {
            *copied = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
            (copied, 1)
        }
    }
}

/// Writes the destination of a message to `name`; none for a connected socket.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple", all(test, unix)))]
pub(super) fn destination(
    to: Option<SocketAddr>,
    name: &mut socket2::SockAddr,
) -> (*mut libc::c_void, socket2::socklen_t) {
    let Some(to) = to else { return (std::ptr::null_mut(), 0) };
    *name = to.into();
    (name.as_ptr().cast_mut().cast(), name.len())
}
