#![no_main]

use std::net::SocketAddr;

use grebe_packet::Key;
use grebe_relay::internals::{Message, MessageBuf, Outbox, RelayCore};
use grebe_relay::{Limits, MESSAGE_BYTES, Meeting, Side, Via};
use libfuzzer_sys::fuzz_target;

// Ends with and without tickets send arbitrary messages to a relay. It must forward only between the ends of one
// ticket, and never send anybody more than that peer has sent.
fuzz_target!(|steps: Vec<(u8, u8, Vec<u8>)>| {
    let limits = Limits { sessions: 2, sessions_per_host: 2, ..Limits::default() };
    let mut relay = RelayCore::new(limits).expect("random numbers");
    let address = |host: u8| SocketAddr::from(([192, 0, 2, host % 4], 1_000));
    let at = "198.51.100.1:4737".parse().expect("an address");
    let mut ends: Vec<Meeting> = (0..4_u8)
        .map(|host| {
            let side = if host % 2 == 0 { Side::Waits } else { Side::Asks };
            let key = Key::from_bytes([host / 2; 32]);
            Meeting::new(&key, side, Via::Any, address(host), vec![address(host)], &[at])
                .expect("random numbers")
        })
        .collect();
    let mut now_us = 0;
    for (host, what, bytes) in steps.into_iter().take(200) {
        now_us += 1 + u64::from(what >> 3) * 100_000;
        let (from, end) = (address(host), &mut ends[usize::from(host % 4)]);
        let mut out = Outbox::new();
        match what % 4 {
            // A valid request, and a modified one.
            0 | 1 => {
                while let Some((to, message)) = end.poll(now_us).filter(|(to, _)| *to == at) {
                    let mut message: MessageBuf = message;
                    for (at, byte) in bytes.chunks(3).filter_map(|it| it.split_first_chunk::<2>()) {
                        let changed = usize::from(u16::from_be_bytes(*at)) % MESSAGE_BYTES;
                        message[changed] ^= byte.first().copied().unwrap_or(0) * (what % 4);
                    }
                    assert_eq!(to, at);
                    relay.on_message(now_us, from, &message, &mut out);
                }
            }
            2 => {
                let mut message = [0; MESSAGE_BYTES];
                let len = bytes.len().min(MESSAGE_BYTES);
                message[..len].copy_from_slice(&bytes[..len]);
                relay.on_message(now_us, from, &message, &mut out);
                assert!(out.len() <= 1);
            }
            _ => {
                if let Some((to, passed)) = relay.route(now_us, from, bytes.len() * 100, 1_200) {
                    assert!(passed <= bytes.len() * 100 && to != from);
                    let number = |address: SocketAddr| match address.ip() {
                        std::net::IpAddr::V4(ip) => ip.octets()[3],
                        std::net::IpAddr::V6(_) => unreachable!("there is none"),
                    };
                    assert_eq!(number(to) / 2, number(from) / 2, "another ticket's end");
                }
            }
        }
        assert!(out.len() <= 2);
        for (to, message) in out {
            assert!(Message::decode(&message).is_ok());
            let host = (0..4).find(|host| address(*host) == to).expect("one of those who asked");
            ends[usize::from(host)].take(now_us, at, &message);
        }
        relay.tick(now_us);
        assert!(relay.figures().sessions <= 2);
    }
});
