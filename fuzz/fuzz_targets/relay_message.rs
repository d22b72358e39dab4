#![no_main]

use grebe_relay::internals::{Message, next_datagram};
use libfuzzer_sys::fuzz_target;

// Each message between an end and a relay: what is read is written as it was. And datagrams over TCP, one behind the other.
fuzz_target!(|input: (u8, &[u8])| {
    let (kind, bytes) = input;
    let mut message = [0; grebe_relay::MESSAGE_BYTES];
    let len = bytes.len().min(message.len());
    message[..len].copy_from_slice(&bytes[..len]);
    (message[0], message[1]) = ([0x80, 0x81, 0x82, 0x83, 0x90][usize::from(kind) % 5], 1);
    if let Ok(read) = Message::decode(&message) {
        assert_eq!(read.encode(), message);
    }
    // As it comes from the network.
    let _ = Message::decode(bytes);
    let mut at = 0;
    while let Some(datagram) = next_datagram(bytes, at) {
        assert!(datagram.start == at + 2 && datagram.end <= bytes.len());
        at = datagram.end;
    }
});
