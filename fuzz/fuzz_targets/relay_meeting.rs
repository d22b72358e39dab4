#![no_main]

use std::net::SocketAddr;

use grebe_packet::Key;
use grebe_relay::{Meeting, Side, Via};
use libfuzzer_sys::fuzz_target;

// An end with an arbitrary relay and arbitrary other senders: it sends a bounded number of messages, and only to the
// relay.
fuzz_target!(|input: (u8, Vec<(u8, Vec<u8>)>)| {
    let (kind, came) = input;
    let side = if kind & 1 == 0 { Side::Waits } else { Side::Asks };
    let via = [Via::Any, Via::Direct, Via::Relay][usize::from(kind >> 1) % 3];
    let relay: SocketAddr = "198.51.100.1:4737".parse().expect("an address");
    let own = "192.0.2.7:4000".parse().expect("an address");
    let key = Key::random().expect("random numbers");
    let mut meeting = Meeting::new(&key, side, via, own, vec![own], &[relay]).expect("random numbers");
    let mut now_us = 0;
    let (mut sent, most) = (0, 2 + came.len() as u64);
    for (wait, mut bytes) in came.into_iter().take(100) {
        now_us += u64::from(wait) * 10_000;
        while let Some((to, message)) = meeting.poll(now_us) {
            assert_eq!(to, relay, "nobody else's address was sealed with the key");
            sent += 1;
            // The number of the request, which every answer must repeat.
            if let (Some(place), true) = (bytes.get_mut(2..10), wait & 1 == 0) {
                place.copy_from_slice(&message[43..51]);
            }
        }
        if wait & 2 == 0 {
            bytes.resize(grebe_relay::MESSAGE_BYTES, 0);
        }
        let from = if wait & 4 == 0 { relay } else { "203.0.113.9:9".parse().expect("an address") };
        assert!(meeting.take(now_us, from, &bytes) <= bytes.len());
        assert_eq!(meeting.next_knock(), None);
        assert!(meeting.direct().next().is_none());
    }
    assert!(sent <= most + now_us / 50_000, "{sent} in {now_us} us");
});
