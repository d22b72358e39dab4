#![no_main]

use libfuzzer_sys::fuzz_target;

// A packet on the control socket.
fuzz_target!(|packet: &[u8]| grebe_shm::fuzz::message(packet));
