#![no_main]

use libfuzzer_sys::fuzz_target;

// A rate in kHz, then reads of eleven bytes: samples, flags, a time.
fuzz_target!(|input: &[u8]| {
    let Some((rate, reads)) = input.split_first_chunk::<2>() else { return };
    let reads: Vec<(u16, Option<i64>, bool)> = reads
        .as_chunks::<11>()
        .0
        .iter()
        .map(|read| {
            let samples = u16::from_le_bytes([read[0], read[1]]);
            let time_ns = i64::from_le_bytes(std::array::from_fn(|at| read[3 + at]));
            (samples, (read[2] & 1 > 0).then_some(time_ns), read[2] & 2 > 0)
        })
        .collect();
    grebe_stages::fuzz::soapy_times(f64::from(u16::from_le_bytes(*rate)) * 1e3, &reads);
});
