//! Interface between an endpoint and the handler of its datagrams.

use std::net::SocketAddr;

use crate::proto::packet::{PACKET_MAX, Packet};
use crate::proto::signing::Signer;

/// Handles received datagrams, without a socket or clock of its own.
pub(crate) trait PacketHandler {
    /// Handles a datagram; answers go to `out`.
    fn arrived(&mut self, arrival: Arrival<'_>, out: &mut Outbox);
    /// Called every few milliseconds; due packets go to `out`.
    fn tick(&mut self, now_ns: u64, out: &mut Outbox);
    /// Whether to end the train in progress early.
    fn should_stop(&self) -> bool;
}

/// A received datagram.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival<'a> {
    pub(crate) from: SocketAddr,
    pub(crate) bytes: &'a [u8],
    /// Arrival time by the endpoint's clock.
    pub(crate) arrived_ns: u64,
    /// Present time.
    pub(crate) now_ns: u64,
    /// Datagrams that the kernel dropped since the socket was opened.
    pub(crate) kernel_drops: Option<u64>,
}

/// Signed packets to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox(Vec<(Option<SocketAddr>, [u8; PACKET_MAX], usize)>);

impl Outbox {
    /// Signs a packet for `to` (`None`: the connected peer).
    pub(crate) fn push(&mut self, to: Option<SocketAddr>, packet: &Packet, signer: &Signer) {
        let mut buffer = [0; PACKET_MAX];
        let len = packet.encode(signer, 0, &mut buffer);
        self.0.push((to, buffer, len));
    }

    /// Each packet with its destination.
    pub(crate) fn packets(&self) -> impl Iterator<Item = (Option<SocketAddr>, &[u8])> {
        self.0.iter().map(|(to, buffer, len)| (*to, &buffer[..*len]))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
