#![no_main]

use std::path::Path;
use std::sync::{LazyLock, Mutex};

use grebe_recording::{LabelFile, SampleFile, SigmfSettings, SigmfWriter};
use libfuzzer_sys::fuzz_target;

/// 48 samples with a gap in their middle.
static RECORDING: LazyLock<(tempfile::TempDir, Mutex<SampleFile>)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let settings = SigmfSettings { sample_rate_hz: 48e3, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&folder.path().join("x"), &settings).expect("it can be written to");
    writer.write(7, &[&[1i16; 24]]).expect("there is room");
    writer.write(1_000, &[&[1i16; 24]]).expect("there is room");
    let files = writer.finish().expect("there is room").files;
    let file = SampleFile::open(&files[0]).expect("it was written");
    (folder, Mutex::new(file))
});

// The first byte selects the kind of file. Writing the read labels again must change nothing.
fuzz_target!(|bytes: &[u8]| {
    let Some((kind, text)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let kind = [LabelFile::Csv, LabelFile::Audacity, LabelFile::SigMf][usize::from(kind % 3)];
    let file = RECORDING.1.lock().expect("no other has it");
    let path = Path::new("x");
    let Ok(read) = kind.read(path, text, &file) else { return };
    assert!(read.annotations.iter().all(|it| it.position + it.length_samples <= 48));
    let (written, shortened) = kind.write(path, &file, &read.annotations).expect("it has a rate");
    let again = kind.read(path, &written, &file).expect("what was written is read");
    let mut expected = read.annotations;
    if kind == LabelFile::SigMf {
        // In order, and each once.
        expected.dedup();
        assert!(again.annotations.len() <= expected.len());
    } else if shortened == 0 {
        assert_eq!(again.annotations, expected);
    }
});
