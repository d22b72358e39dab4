//! What systems other than Linux do not have, answered as Linux would.

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

/// Windows takes an index in the form of an address 0.x.x.x; others have no such way.
pub(crate) fn set_multicast_index_v4(socket: &Socket, index: u32) -> io::Result<()> {
    if !cfg!(windows) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    socket.set_multicast_if_v4(&index.into())
}

/// Elsewhere than on Unix a name is not looked up.
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
