//! Socket of a sender, as the flush uses it.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::time::Duration;

use socket2::Socket;

use super::flush::Kernel;
use crate::burst::{Burst, MAX_DATAGRAM_BYTES};
use crate::{path, sys};

#[derive(Debug)]
pub(super) struct SendSocket {
    pub(super) socket: Socket,
    pub(super) peer: Option<SocketAddr>,
    /// `None`: one datagram per call.
    pub(super) arrays: Option<sys::SendArrays>,
    pub(super) has_sent_several: bool,
}

impl SendSocket {
    /// Payload of one packet to the connected peer, by the present route.
    pub(super) fn path_payload_bytes(&self) -> Option<usize> {
        let peer = self.peer?;
        sys::route_mtu_bytes(&self.socket, peer.is_ipv4()).map(|mtu| path::payload_for_mtu(peer, mtu))
    }
}

impl Kernel for SendSocket {
    fn send(&mut self, burst: &Burst<'_>, from: usize) -> io::Result<usize> {
        if let Some(arrays) = &mut self.arrays {
            let sent = arrays.send(&self.socket, burst, from)?;
            self.has_sent_several = true;
            return Ok(sent);
        }
        let message = burst.messages()[from];
        debug_assert_eq!(
            message.datagrams, 1,
            "of several the caller knows which went out, and sends them singly"
        );
        burst.each_datagram(&message, 0, |parts| self.send_one(parts, message.to))?;
        Ok(1)
    }

    fn send_one(&mut self, parts: &[IoSlice<'_>], to: Option<SocketAddr>) -> io::Result<()> {
        match to {
            Some(to) => self.socket.send_to_vectored(parts, &to.into()),
            None => self.socket.send_vectored(parts),
        }
        .map(drop)
    }

    fn wait_writable(&mut self, timeout: Duration) -> io::Result<()> {
        sys::wait_writable(&self.socket, timeout)
    }

    fn pause(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn segment_limit(&mut self, to: Option<SocketAddr>) -> usize {
        to.map_or_else(|| self.path_payload_bytes(), path::route_payload_bytes).unwrap_or(MAX_DATAGRAM_BYTES)
    }

    fn degrade(&mut self) -> bool {
        self.arrays.take().is_some()
    }

    fn has_sent_several(&self) -> bool {
        self.has_sent_several
    }
}
