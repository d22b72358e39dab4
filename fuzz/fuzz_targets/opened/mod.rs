//! A recording of arbitrary bytes: what it announces can be read.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use grebe_recording::SampleFile;

static FOLDER: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("there is a temporary folder"));

/// Opens these bytes as a file of this name, and `inside` it if that is not empty. Unpacked, it may hold more than
/// its bytes: then only its first and last samples are read.
pub fn check(name: &str, inside: &str, bytes: &[u8]) {
    let path = FOLDER.path().join(name);
    fs::write(&path, bytes).expect("the folder can be written to");
    let path = if inside.is_empty() { path } else { path.join(inside) };
    if let Ok(mut file) = SampleFile::open(&path) {
        let is_packed = ["npz", "mat", "flac", "sr", "gz"].iter().any(|kind| name.ends_with(kind));
        assert!(is_packed || file.len_samples() as usize <= bytes.len());
        read(&mut file, &path);
    }
}

fn read(file: &mut SampleFile, path: &Path) {
    let (format, channels, length) = (file.format(), file.channels(), file.len_samples());
    assert!((1..=255).contains(&channels) && length > 0, "{}", path.display());
    let _ = (file.description(0), file.time_at(length), file.annotations().len());
    let count = length.min(1 << 12);
    for first in [0, length - count] {
        let block = file.block(first, count as usize).expect("what was announced can be read");
        let bytes = block.channel_bytes(channels - 1).expect("it is there").len();
        assert_eq!(bytes, count as usize * format.bytes());
    }
}
