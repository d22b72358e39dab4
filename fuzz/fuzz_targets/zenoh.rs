//! A message of frames, and what somebody announces.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8], &[u8])| {
    let (choice, attachment, bytes) = input;
    match choice % 2 {
        0 => grebe_zenoh::fuzz::message(attachment, bytes),
        _ => grebe_zenoh::fuzz::announcement("grebe/what/a1/lab/adc", bytes),
    }
});
