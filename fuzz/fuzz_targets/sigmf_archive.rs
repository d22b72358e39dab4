#![no_main]

use std::fs;
use std::sync::LazyLock;

use grebe_recording::SampleFile;
use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("there is a temporary folder"));

fuzz_target!(|bytes: &[u8]| {
    let path = FOLDER.path().join("x.sigmf");
    fs::write(&path, bytes).expect("the folder can be written to");
    for path in [path.clone(), path.join("a.sigmf-meta")] {
        if let Ok(mut file) = SampleFile::open(&path) {
            let format = file.format();
            let (channels, length) = (file.channels(), file.len_samples() as usize);
            assert!((1..=255).contains(&channels) && length > 0 && length <= bytes.len());
            let block = file.block(0, length).expect("what was announced can be read");
            assert_eq!(
                block.channel_bytes(channels - 1).expect("it is there").len(),
                length * format.bytes()
            );
        }
    }
});
