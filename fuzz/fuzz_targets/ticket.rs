#![no_main]

use grebe_transfer::Ticket;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|word: &str| {
    if let Ok(ticket) = Ticket::from_word(word) {
        assert_eq!(Ticket::from_word(&ticket.word()).expect("what is written is read"), ticket);
    }
});
