#![no_main]

use grebe_connection::internals::{INIT_BYTES, Initiator, ReceivedPackets, Responder};
use grebe_packet::Key;
use libfuzzer_sys::fuzz_target;

// Bytes as they come from the network, before anything is proven.
fuzz_target!(|input: (u8, &[u8])| {
    let (kind, bytes) = input;
    let mut datagram = bytes.to_vec();
    if let (Some(first), 0..3) = (datagram.first_mut(), kind) {
        *first = [1, 2, 0x40][usize::from(kind)];
    }
    if kind == 0 {
        datagram.resize(INIT_BYTES, 0);
    }
    let key = Key::random().expect("random numbers");
    let mut responder = Responder::new(key.clone());
    assert!(responder.on_init(&datagram, Vec::new).is_err(), "nobody guesses a key");
    assert!(responder.on_sealed(&mut datagram.clone()).is_err());
    let mut initiator = Initiator::new(&key).expect("random numbers");
    assert!(initiator.on_reply(&datagram).is_err());
    let reply = responder.on_init(initiator.datagram(), || datagram.clone()).expect("the key is right");
    let mut session = initiator.on_reply(&reply).expect("the reply is right");
    assert!(session.open(&ReceivedPackets::default(), &mut datagram).is_err());
});
