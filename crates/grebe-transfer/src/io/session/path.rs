//! How a sender reaches its receiver.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use grebe_datagram::{Options, Sender as Datagrams};

use crate::error::Result;
use crate::io::session::connect::{self, Fallback};
use crate::io::session::rendezvous::Rendezvous;
use crate::io::session::tcp::{PacketStream, TcpDoor};

/// A socket for a sender at `local`, with a second handle for what the peer sends.
pub(super) fn open_udp(local: SocketAddr) -> Result<(Datagrams, UdpSocket)> {
    let datagrams = Datagrams::unconnected(local, &Options::default())?;
    let socket = datagrams.try_clone_socket().map_err(|source| grebe_datagram::Error::Receive { source })?;
    Ok((datagrams, socket))
}

/// How the peer is reached.
pub(super) struct Path {
    pub(super) datagrams: Datagrams,
    /// Another handle on the same socket, for what the peer sends.
    pub(super) socket: UdpSocket,
    pub(super) peer: SocketAddr,
    /// All goes by this while it lasts.
    pub(super) tcp: Option<PacketStream>,
    /// Where a receiver comes that has the ticket.
    pub(super) door: Option<TcpDoor>,
    pub(super) fallback: Fallback,
    /// Where both ends have met, if the ticket names a relay.
    pub(super) meeting: Option<Rendezvous>,
    /// When the receiver was last heard from where it is sent to. By another way it may hear that it is sent nothing.
    pub(super) heard_us: u64,
}

impl Path {
    /// The newest packet of the receiver came from there. Nothing is sent to where somebody who holds back packets brings them from: only
    /// where the receiver has fallen silent it is followed, to another port of its address or to the relay.
    pub(super) fn heard(&mut self, now_us: u64, from: SocketAddr, is_silent: bool) {
        if from == self.peer {
            self.heard_us = now_us;
            return;
        }
        let is_relay = self.meeting.as_ref().is_some_and(|meeting| meeting.is_relay(from));
        let has_left = now_us.saturating_sub(self.heard_us) > RELAY_AFTER_US;
        if is_relay && has_left || is_silent && connect::is_moved(self.peer, from) {
            self.go_to(now_us, from);
        }
    }

    /// Keeps the place at the relay, and goes by it where the receiver has been silent for long.
    pub(super) fn keep_place(&mut self, now_us: u64) {
        let Some(meeting) = &mut self.meeting else { return };
        meeting.turn(&self.socket);
        if self.tcp.is_some() {
            self.heard_us = now_us;
            return;
        }
        let silent = Duration::from_micros(now_us.saturating_sub(self.heard_us));
        if let Some(relay) = meeting.way_after_silence(silent, self.peer) {
            self.go_to(now_us, relay);
        }
    }

    fn go_to(&mut self, now_us: u64, peer: SocketAddr) {
        (self.peer, self.heard_us) = (peer, now_us);
        if let Some(meeting) = &mut self.meeting {
            meeting.settle(peer);
        }
    }
}

/// A receiver that is heard by the relay only, for so long, has lost the direct way.
const RELAY_AFTER_US: u64 = 2_000_000;
