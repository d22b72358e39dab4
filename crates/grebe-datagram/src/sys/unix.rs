//! Unix systems without batches: one datagram per call.

use std::io;

use socket2::Socket;

use super::portable;
pub(crate) use super::portable::RecvArrays;
use crate::burst::Burst;

/// Sends one message per system call.
#[derive(Debug)]
pub(crate) struct SendArrays;

impl SendArrays {
    pub(crate) fn new(_: usize) -> Self {
        Self
    }

    pub(crate) fn send(&mut self, socket: &Socket, burst: &Burst<'_>, from: usize) -> io::Result<usize> {
        portable::send(socket, burst, from)
    }
}

pub(crate) fn has_gso(_: &Socket) -> bool {
    false
}

pub(crate) fn set_dont_fragment(_: &Socket, _: bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
