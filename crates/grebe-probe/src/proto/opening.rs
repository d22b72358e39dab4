//! What a client hears before its session begins.

use crate::proto::handler::{Arrival, Outbox, PacketHandler};
use crate::proto::packet::Packet;
use crate::proto::packet::body::Body;
use crate::proto::signing::Keys;

/// Waits for the server's reply to a hello or a start.
pub(crate) struct Opening {
    pub(crate) keys: Keys,
    pub(crate) nonce: [u8; 16],
    pub(crate) reply: Option<Body>,
}

impl PacketHandler for Opening {
    fn arrived(&mut self, arrival: Arrival<'_>, _: &mut Outbox) {
        let Some(packet) = Packet::decode(arrival.bytes, &self.keys.server) else { return };
        let is_ours = match &packet.body {
            Body::Challenge { nonce, .. } | Body::Wait { nonce, .. } => *nonce == self.nonce,
            Body::Welcome(welcome) => welcome.nonce == self.nonce,
            Body::Bye { .. } => true,
            _ => false,
        };
        // A late challenge does not take the place of a welcome.
        let is_news = !matches!(packet.body, Body::Challenge { .. }) || self.reply.is_none();
        if is_ours && is_news {
            self.reply = Some(packet.body);
        }
    }

    fn tick(&mut self, _: u64, _: &mut Outbox) {}

    fn should_stop(&self) -> bool {
        false
    }
}
