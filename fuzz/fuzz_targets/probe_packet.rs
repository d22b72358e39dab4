#![no_main]

use libfuzzer_sys::fuzz_target;

// A packet of `grebe probe`: without the key it is refused; a signed one that is accepted survives encoding.
fuzz_target!(|packet: &[u8]| grebe_probe::fuzz_packet(packet));
