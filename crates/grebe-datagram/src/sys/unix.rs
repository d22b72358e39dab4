//! Unix systems without batches of their own: one datagram a call.

use std::io;

use socket2::Socket;

use super::portable;
use crate::Received;
use crate::plan::Plan;

/// The one system call that takes a message at a time.
#[derive(Debug)]
pub(crate) struct SendArrays;

impl SendArrays {
    pub fn new(_: usize) -> Self {
        Self
    }

    pub fn send(&mut self, socket: &Socket, plan: &Plan<'_>, from: usize) -> io::Result<usize> {
        portable::send(socket, plan, from)
    }
}

/// One slot a call.
#[derive(Debug)]
pub(crate) struct RecvArrays;

impl RecvArrays {
    pub fn new(_: usize) -> Self {
        Self
    }

    pub fn last_drops(&self) -> Option<u32> {
        None
    }

    pub fn receive<S: AsMut<[u8]>>(
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
