#![no_main]

use libfuzzer_sys::fuzz_target;

// The first byte selects the name of the stream. Datagrams follow, each after a byte with its length in words.
fuzz_target!(|input: &[u8]| {
    let Some((&choice, mut rest)) = input.split_first() else { return };
    let mut datagrams = Vec::new();
    while let Some((&words, behind)) = rest.split_first() {
        let (datagram, next) = behind.split_at(behind.len().min(usize::from(words) * 4));
        datagrams.push(datagram.to_vec());
        rest = next;
    }
    grebe_stages::fuzz::vita49(choice, datagrams);
});
