#![no_main]

use libfuzzer_sys::fuzz_target;

// A packet of `grebe probe`: without the key it is refused; signed, what is accepted says the same when it is written again.
fuzz_target!(|packet: &[u8]| grebe_probe::fuzz_packet(packet));
