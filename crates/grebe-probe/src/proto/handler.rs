//! What an endpoint hands datagrams to, and where the answers go.

use std::net::SocketAddr;

use crate::proto::packet::{PACKET_MAX, Packet};
use crate::proto::signing::Signer;

/// Decides what to do with what comes in. It has no socket and no clock: it is told the time.
pub(crate) trait PacketHandler {
    /// A datagram came; `out` takes the answers.
    fn arrived(&mut self, arrival: Arrival<'_>, out: &mut Outbox);
    /// Called every few milliseconds; `out` takes what is due by now.
    fn tick(&mut self, now_ns: u64, out: &mut Outbox);
    /// Whether a train that is being sent should end early.
    fn should_stop(&self) -> bool;
}

/// A datagram that came in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival<'a> {
    pub(crate) from: SocketAddr,
    pub(crate) bytes: &'a [u8],
    /// When it arrived, by the endpoint's clock.
    pub(crate) arrived_ns: u64,
    /// What the time is now.
    pub(crate) now_ns: u64,
    /// Datagrams that the kernel had no room for since the socket was opened.
    pub(crate) kernel_drops: Option<u64>,
}

/// Signed packets that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox(Vec<(Option<SocketAddr>, [u8; PACKET_MAX], usize)>);

impl Outbox {
    /// Signs a packet for `to` (`None`: the connected peer).
    pub(crate) fn push(&mut self, to: Option<SocketAddr>, packet: &Packet, signer: &Signer) {
        let mut buffer = [0; PACKET_MAX];
        let len = packet.encode(signer, 0, &mut buffer);
        self.0.push((to, buffer, len));
    }

    /// Each packet and where it goes.
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
