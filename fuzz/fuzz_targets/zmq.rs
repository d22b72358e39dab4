#![no_main]

use libfuzzer_sys::fuzz_target;

// The last byte chooses the name of the stream: what stands before it is what seeds are.
fuzz_target!(|input: &[u8]| {
    if let Some((&choice, bytes)) = input.split_last() {
        grebe_stages::fuzz::zmq(choice, bytes);
    }
});
