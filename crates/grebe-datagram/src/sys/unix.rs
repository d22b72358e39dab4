//! Unix systems without batches of their own: one datagram per call.

use std::io;

use socket2::Socket;

use super::portable;
use crate::burst::Burst;
use crate::received::Received;

/// The system call that takes one message.
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

/// One slot per call.
#[derive(Debug)]
pub(crate) struct RecvArrays;

impl RecvArrays {
    pub(crate) fn new(_: usize) -> Self {
        Self
    }

    pub(crate) fn last_drops(&self) -> Option<u32> {
        None
    }

    pub(crate) fn receive<S: AsMut<[u8]>>(
        &mut self,
        socket: &Socket,
        slots: &mut [S],
        received: &mut Vec<Received>,
    ) -> io::Result<()> {
        portable::receive(socket, slots, received)
    }
}

pub(crate) fn has_gso(_: &Socket) -> bool {
    false
}

pub(crate) fn set_dont_fragment(_: &Socket, _: bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
