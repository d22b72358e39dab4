#![no_main]

use libfuzzer_sys::fuzz_target;

// The first byte chooses the name of the stream; then datagrams, each behind a byte that says how long it is.
fuzz_target!(|input: &[u8]| {
    let Some((&choice, mut rest)) = input.split_first() else { return };
    let mut datagrams = Vec::new();
    while let Some((&length, behind)) = rest.split_first() {
        let (datagram, next) = behind.split_at(behind.len().min(usize::from(length)));
        datagrams.push(datagram.to_vec());
        rest = next;
    }
    grebe_stages::fuzz::raw(choice, datagrams);
});
