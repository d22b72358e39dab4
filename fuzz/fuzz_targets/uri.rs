#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| grebe_stages::fuzz::uri(text));
