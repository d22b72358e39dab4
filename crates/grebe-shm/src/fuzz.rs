//! Entry points of the fuzz targets: the parts that read data from another process.

use crate::Policy;
use crate::message::{MESSAGE_BYTES_MAX, Message};

/// Drives a lane with these steps and writes of a consumer. The producer must neither panic nor lose a chunk.
pub fn lane(policy: u8, steps: Vec<(u8, u16, u64)>) {
    let policy = Policy::ALL[usize::from(policy) % Policy::ALL.len()];
    let steps = steps.into_iter().map(|(step, at, word)| (step, usize::from(at), word));
    crate::lane::hostile::harms_nobody(policy, steps);
}

/// Parses a packet from the control socket. An accepted packet is in range, and stays the same when sent on.
pub fn message(packet: &[u8]) {
    let Ok(message) = Message::decode(packet) else { return };
    if let Message::Welcome(welcome) = &message {
        assert!(welcome.payload_bytes() <= 1 << 40 && welcome.quota_chunks <= welcome.chunks);
    }
    let mut again = [0; MESSAGE_BYTES_MAX];
    let len = message.encode(&mut again);
    match (Message::decode(&again[..len]), message) {
        (Ok(Message::Hello(again)), Message::Hello(hello)) => assert_eq!(again.policy, hello.policy),
        (Ok(Message::Refused(_)), Message::Refused(_)) | (Ok(Message::Bye(_)), Message::Bye(_)) => {}
        (again, message) => assert_eq!(again, Ok(message)),
    }
}
