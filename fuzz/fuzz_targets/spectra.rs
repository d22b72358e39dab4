#![no_main]

use std::fs;
use std::sync::LazyLock;

use grebe_recording::{SpectralRow, SpectralSummary};
use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("there is a temporary folder"));

// Fixes the magic and the checksums of the head and of the first row, so that the code after them is reached. The
// last byte is the length of that row.
fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    if bytes.len() > HEAD_BYTES {
        bytes[..10].copy_from_slice(b"GREBESPE\x01\0");
        let checksum = crc32c::crc32c(&bytes[..HEAD_BYTES - 4]);
        bytes[HEAD_BYTES - 4..HEAD_BYTES].copy_from_slice(&checksum.to_le_bytes());
        let row_bytes = 2 + (64 << (bytes[bytes.len() - 1] % 5));
        if let Some(row) = bytes.get_mut(HEAD_BYTES..HEAD_BYTES + row_bytes + 4) {
            let checksum = crc32c::crc32c(&row[..row_bytes]);
            row[row_bytes..].copy_from_slice(&checksum.to_le_bytes());
        }
    }
    let path = FOLDER.path().join("x.grebe-spectra");
    fs::write(&path, &bytes).expect("the folder can be written to");
    let Ok(Some(summary)) = SpectralSummary::open(&path) else { return };
    let mut row = SpectralRow::default();
    let samples = summary.known_samples();
    for log2 in [14, 16, 18, 24, 32] {
        let rows = samples.div_ceil(1 << log2);
        for number in [0, rows / 2, rows.saturating_sub(1)] {
            if summary.row(0, log2, number, &mut row).is_ok() {
                assert_eq!(row.highest.len(), row.mean.len());
                assert!(row.highest.len().is_power_of_two() && row.highest.len() <= 1024);
            }
        }
        assert!(summary.row(0, log2, rows, &mut row).is_err());
        assert!(summary.row(255, log2, 0, &mut row).is_err());
    }
    assert!(summary.row(0, 33, 0, &mut row).is_err());
});

const HEAD_BYTES: usize = 68;
