#![no_main]

use libfuzzer_sys::fuzz_target;

// The first byte chooses the name of the stream; the rest are lines.
fuzz_target!(|input: &[u8]| {
    if let Some((&choice, lines)) = input.split_first() {
        grebe_stages::fuzz::text(choice, lines);
    }
});
