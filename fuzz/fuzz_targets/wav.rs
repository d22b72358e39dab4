#![no_main]

mod opened;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| opened::check("x.wav", "", bytes));
