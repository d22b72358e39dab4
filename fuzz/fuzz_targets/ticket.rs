#![no_main]

use grebe_packet::{Purpose, Ticket};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|word: &str| {
    for purpose in [Purpose::Transfer, Purpose::Probe, Purpose::Connection] {
        if let Ok(ticket) = Ticket::from_word(word, purpose) {
            assert_eq!(Ticket::from_word(&ticket.word(), purpose).expect("what is written is read"), ticket);
        }
    }
});
