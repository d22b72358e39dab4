//! Messages over a connection.

use std::io;

use crate::message::{MESSAGE_BYTES_MAX, Malformed, Message};
use crate::platform::{Connection, Memory, Received};

pub(crate) enum Packet {
    /// Message with its memory.
    Message(Message, Vec<Memory>),
    /// Malformed packet.
    Malformed(Malformed),
    /// Nothing available now.
    Nothing,
    /// The other side hung up.
    HungUp,
}

/// Sends a message; never waits.
pub(crate) fn send_message(to: &Connection, message: &Message, memory: &[&Memory]) -> io::Result<()> {
    let mut bytes = [0; MESSAGE_BYTES_MAX];
    let len = message.encode(&mut bytes);
    to.send(&bytes[..len], memory)
}

/// Receives the next message; never waits.
pub(crate) fn receive(from: &Connection) -> Packet {
    let mut bytes = [0; MESSAGE_BYTES_MAX];
    match from.receive(&mut bytes) {
        Received::Packet(len, memory) => match Message::decode(&bytes[..len]) {
            Ok(message) => Packet::Message(message, memory),
            Err(malformed) => Packet::Malformed(malformed),
        },
        Received::TooLong => Packet::Malformed(Malformed::Foreign),
        Received::Nothing => Packet::Nothing,
        Received::HungUp => Packet::HungUp,
    }
}
