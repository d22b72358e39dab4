#![no_main]

use libfuzzer_sys::fuzz_target;

// The last byte selects the name of the stream; the bytes before it are in the format of the seeds.
fuzz_target!(|input: &[u8]| {
    if let Some((&choice, bytes)) = input.split_last() {
        grebe_stages::fuzz::zmq(choice, bytes);
    }
});
