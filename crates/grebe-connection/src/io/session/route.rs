//! Route from an end to its peer: datagrams to an address, or TCP while UDP fails.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use grebe_datagram::Sender;

use super::connect::{self, Fallback};
use super::outlet::Outlet;
use super::rendezvous::Rendezvous;
use super::tcp::{PacketStream, TcpDoor};
use crate::error::Result;

/// Route to the peer.
pub(super) struct Route {
    pub(super) outlet: Outlet,
    /// Second handle of the same socket, for packets to the peer and the meeting.
    pub(super) socket: UdpSocket,
    pub(super) peer: SocketAddr,
    /// TCP connection that carries everything while it lasts.
    pub(super) tcp: Option<PacketStream>,
    /// TCP listener, if this end made the ticket.
    pub(super) door: Option<TcpDoor>,
    /// TCP dialler, if this end has the ticket.
    pub(super) fallback: Fallback,
    /// Meeting, if the ticket names a relay.
    pub(super) meeting: Option<Rendezvous>,
    /// Time of the last packet on the route in use. The peer may be audible on another route and still
    /// receive nothing on this one.
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

    /// Sends due packets, see [`Outlet`].
    pub(super) fn send(&mut self, next: impl FnMut(&mut [u8]) -> Result<Option<usize>>) -> Result<()> {
        match &mut self.tcp {
            Some(tcp) => self.outlet.send_by(tcp, next),
            None => self.outlet.send_to(self.peer, next),
        }
    }

    /// Notes the source address of the peer's newest packet. An attacker who holds back packets must not
    /// redirect us. So the route changes only when it fails, and only to another port of the same address or
    /// to the relay.
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

    /// Keeps the place at the relay, and switches to the relay after a long silence of the peer.
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

    /// Switches to a TCP connection, or back to UDP.
    pub(super) fn go_by(&mut self, now_us: u64, tcp: Option<PacketStream>) {
        (self.tcp, self.heard_us) = (tcp, now_us);
    }

    /// Frees the place at the relay after the session, or if there is none.
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

/// Time of packets from the relay alone after which the direct route counts as lost.
const RELAY_AFTER_US: u64 = 2_000_000;
