#![no_main]

use std::fs;
use std::sync::LazyLock;

use grebe_recording::SampleFile;
use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    fs::write(folder.path().join("x.sigmf-data"), [7; 48]).expect("it can be written to");
    folder
});

fuzz_target!(|bytes: &[u8]| {
    let path = FOLDER.path().join("x.sigmf-meta");
    fs::write(&path, bytes).expect("the folder can be written to");
    if let Ok(mut file) = SampleFile::open(&path) {
        let (mut position, channels, sample_bytes) = (0, file.channels(), file.format().bytes() as u64);
        for segment in file.segments().to_vec() {
            assert_eq!(segment.position, position);
            assert!(segment.length_samples > 0);
            let block =
                file.block(position, segment.length_samples as usize).expect("segments lie in the file");
            let bytes = segment.length_samples * sample_bytes;
            assert_eq!(block.channel_bytes(channels - 1).expect("it is there").len() as u64, bytes);
            position += segment.length_samples;
        }
        assert_eq!(position, file.len_samples());
        assert!(file.block(position, 1).is_err());
    }
});
