#![no_main]

use grebe_shm::message::{MESSAGE_BYTES_MAX, Message};
use libfuzzer_sys::fuzz_target;

// A packet on the control socket: what is accepted is in range, and says the same when it is sent on.
fuzz_target!(|packet: &[u8]| {
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
});
