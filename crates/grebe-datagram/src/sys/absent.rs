//! What systems other than Linux do not have, answered as Linux would.

use std::io;

use socket2::Socket;

use crate::options::Side;

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

pub(crate) fn drops_now(_: &Socket) -> Option<u32> {
    None
}

pub(crate) fn route_mtu_bytes(_: &Socket, _: bool) -> Option<usize> {
    None
}
