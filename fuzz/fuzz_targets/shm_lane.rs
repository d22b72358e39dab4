#![no_main]

use libfuzzer_sys::fuzz_target;

// Actions and writes of a consumer in its own lane, step by step.
fuzz_target!(|input: (u8, Vec<(u8, u16, u64)>)| grebe_shm::fuzz::lane(input.0, input.1));
