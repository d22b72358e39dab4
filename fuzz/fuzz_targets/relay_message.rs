#![no_main]

use grebe_relay::internals::{Message, next_datagram};
use libfuzzer_sys::fuzz_target;

// Messages between an end and a relay: encoding a decoded message must give the same bytes. Also datagrams over TCP,
// in sequence.
fuzz_target!(|input: (u8, &[u8])| {
    let (kind, bytes) = input;
    let mut message = [0; grebe_relay::MESSAGE_BYTES];
    let len = bytes.len().min(message.len());
    message[..len].copy_from_slice(&bytes[..len]);
    (message[0], message[1]) = ([0x80, 0x81, 0x82, 0x83, 0x90][usize::from(kind) % 5], 1);
    if let Ok(read) = Message::decode(&message) {
        assert_eq!(read.encode(), message);
    }
    // Raw, as from the network.
    let _ = Message::decode(bytes);
    let mut at = 0;
    while let Some(datagram) = next_datagram(bytes, at) {
        assert!(datagram.start == at + 2 && datagram.end <= bytes.len());
        at = datagram.end;
    }
});
