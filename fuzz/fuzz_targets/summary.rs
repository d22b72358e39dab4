#![no_main]

use std::fs;
use std::sync::LazyLock;

use grebe_recording::Summary;
use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("there is a temporary folder"));

// Fixes the magic and the checksums of the head, so that the code after them is reached. The last byte is the length
// of the data after the blocks.
fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    if bytes.len() > HEAD_BYTES {
        bytes[..10].copy_from_slice(b"GREBESUM\x01\0");
        let coarse = bytes.len() - usize::from(bytes[bytes.len() - 1]).min(bytes.len() - HEAD_BYTES);
        let checksum = crc32c::crc32c(&bytes[coarse..]);
        bytes[56..60].copy_from_slice(&checksum.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..HEAD_BYTES - 4]);
        bytes[HEAD_BYTES - 4..HEAD_BYTES].copy_from_slice(&checksum.to_le_bytes());
    }
    let path = FOLDER.path().join("x.grebe-summary");
    fs::write(&path, &bytes).expect("the folder can be written to");
    let Ok(Some(summary)) = Summary::open(&path) else { return };
    let mut nodes = Vec::new();
    for level in [8, 14, 16, 28] {
        let count = summary.known_samples().div_ceil(1 << level);
        if summary.extremes(0, level, 0..count, &mut nodes).is_ok() {
            assert_eq!(nodes.len() as u64, count);
        }
        assert!(summary.extremes(0, level, 0..count + 1, &mut nodes).is_err());
        nodes.clear();
    }
    // Queries during a copy of the summary and its recording.
    for samples in [0..1, 0..summary.known_samples(), summary.known_samples() / 2..u64::MAX] {
        let bytes = summary.bytes_of(samples);
        assert!(bytes.start <= bytes.end, "{bytes:?}");
    }
    let _ = summary.contradicts(3, &bytes);
    let (sums, of) = summary.sums(0, 0..summary.known_samples());
    assert_eq!((sums.count, of), (summary.known_samples(), 0..summary.known_samples()));
});

const HEAD_BYTES: usize = 68;
