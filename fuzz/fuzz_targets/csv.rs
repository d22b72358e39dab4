#![no_main]

use std::fs;
use std::path::PathBuf;

use grebe_recording::{CsvOptions, SampleFile, import_csv};
use grebe_stages::Cancel;
use libfuzzer_sys::fuzz_target;

// The first byte selects the format of samples.
fuzz_target!(|bytes: &[u8]| {
    let Some((kind, text)) = bytes.split_first() else { return };
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("x.csv");
    fs::write(&path, text).expect("the folder can be written to");
    let query = ["", "?format=i16&rate=1k", "?format=cf32", "?format=u8"][usize::from(kind % 4)];
    let named = PathBuf::from(format!("{}{query}", path.display()));
    let out = folder.path().join("x");
    if let Ok(imported) = import_csv(&named, &out, &CsvOptions::default(), &Cancel::default()) {
        let file = SampleFile::open(&imported.path).expect("what was written can be read");
        assert!((1..=255).contains(&file.channels()) && file.len_samples() > 0);
        assert!(file.len_samples() as usize <= text.len());
    }
});
