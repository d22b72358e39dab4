#![no_main]

mod opened;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    opened::check("x.sigmf", "", bytes);
    opened::check("x.sigmf", "a.sigmf-meta", bytes);
});
