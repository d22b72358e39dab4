//! How an end reaches its peer: by datagrams to an address, or by TCP while that is what gets through.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use grebe_datagram::Sender;

use super::connect::{self, Fallback};
use super::outlet::Outlet;
use super::rendezvous::Rendezvous;
use super::tcp::{PacketStream, TcpDoor};
use crate::error::Result;

/// How the peer is reached.
pub(super) struct Route {
    pub(super) outlet: Outlet,
    /// Another handle on the same socket, for what the peer and the meeting send.
    pub(super) socket: UdpSocket,
    pub(super) peer: SocketAddr,
    /// All goes by this while it lasts.
    pub(super) tcp: Option<PacketStream>,
    /// Where the other end comes by TCP, if this end made the ticket.
    pub(super) door: Option<TcpDoor>,
    /// How this end goes there, if it has the ticket.
    pub(super) fallback: Fallback,
    /// Where both ends have met, if the ticket names a relay.
    pub(super) meeting: Option<Rendezvous>,
    /// When something came by the route in use. By another route the peer may be heard to hear nothing.
    pub(super) heard_us: u64,
}

impl Route {
    pub(super) fn new(datagrams: Sender, socket: UdpSocket, peer: SocketAddr) -> Self {
        Self {
            outlet: Outlet::new(datagrams),
            socket,
            peer,
            tcp: None,
            door: None,
            fallback: Fallback::new(Vec::new()),
            meeting: None,
            heard_us: 0,
        }
    }

    /// Sends what is due: see [`Outlet`].
    pub(super) fn send(&mut self, next: impl FnMut(&mut [u8]) -> Result<Option<usize>>) -> Result<()> {
        match &mut self.tcp {
            Some(tcp) => self.outlet.send_by(tcp, next),
            None => self.outlet.send_to(self.peer, next),
        }
    }

    /// The peer's newest packet came from there. Nothing is sent to where somebody who holds back packets brings them from: only where the
    /// route in use does not work it is followed, to another port of its address or to the relay.
    pub(super) fn heard(&mut self, now_us: u64, from: SocketAddr, is_lost: bool) {
        if from == self.peer {
            if self.tcp.is_none() {
                self.heard_us = now_us;
            }
            return;
        }
        let is_relay = self.meeting.as_ref().is_some_and(|meeting| meeting.is_relay(from));
        let has_left = self.tcp.is_none() && now_us.saturating_sub(self.heard_us) > RELAY_AFTER_US;
        if is_relay && has_left || is_lost && connect::is_moved(self.peer, from) {
            self.go_to(now_us, from);
        }
    }

    /// Keeps the place at the relay, and goes by it where the peer has been silent for long.
    pub(super) fn keep_place(&mut self, now_us: u64) {
        let Some(meeting) = &mut self.meeting else { return };
        meeting.turn(&self.socket);
        if self.tcp.is_some() {
            return;
        }
        let silent = Duration::from_micros(now_us.saturating_sub(self.heard_us));
        if let Some(relay) = meeting.route_after_silence(silent, self.peer) {
            self.go_to(now_us, relay);
        }
    }

    /// Goes on by a TCP connection, or by UDP again.
    pub(super) fn go_by(&mut self, now_us: u64, tcp: Option<PacketStream>) {
        (self.tcp, self.heard_us) = (tcp, now_us);
    }

    /// The session is over, or there is none: the relay need not keep the place any longer.
    pub(super) fn leave(&mut self) {
        if let Some(meeting) = &mut self.meeting {
            meeting.leave(&self.socket);
        }
    }

    fn go_to(&mut self, now_us: u64, peer: SocketAddr) {
        (self.peer, self.heard_us) = (peer, now_us);
        if let Some(meeting) = &mut self.meeting {
            meeting.settle(peer);
        }
    }
}

/// A peer that is heard by the relay only, for so long, has lost the direct route.
const RELAY_AFTER_US: u64 = 2_000_000;
