//! Stand-ins for Linux-only features.

use std::io;

use socket2::Socket;

use crate::side::Side;

pub(crate) fn usable_buffer_bytes(reported: usize) -> usize {
    reported
}

pub(crate) fn force_buffer(_: &Socket, _: Side, _: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn enable_gro(_: &Socket) -> bool {
    false
}

pub(crate) fn enable_drop_counter(_: &Socket) -> bool {
    false
}

pub(crate) fn enable_timestamps(_: &Socket) -> bool {
    false
}

/// Windows takes an index as an address 0.x.x.x; other systems have no equivalent.
pub(crate) fn set_multicast_index_v4(socket: &Socket, index: u32) -> io::Result<()> {
    if !cfg!(windows) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    socket.set_multicast_if_v4(&index.into())
}

/// Names are looked up only on Unix.
#[cfg(not(unix))]
pub(crate) fn interface_index(_: &str) -> Option<u32> {
    None
}

pub(crate) fn drops_now(_: &Socket) -> Option<u32> {
    None
}

pub(crate) fn route_mtu_bytes(_: &Socket, _: bool) -> Option<usize> {
    None
}
