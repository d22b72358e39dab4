#![no_main]

mod opened;

const NAMES: [&str; 7] = ["x.npz", "x.mat", "x.flac", "x.sr", "x.sdriq", "x.uff", "x.wav.gz"];

// The first byte selects the kind of file.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, bytes)) = bytes.split_first() else { return };
    opened::check(NAMES[usize::from(kind) % NAMES.len()], "", bytes);
});
