#![no_main]

use grebe_frame::{Description, DescriptionReader, HEADER_BYTES, Header};
use libfuzzer_sys::fuzz_target;

// Frames of one stream's descriptions in sequence, each after a byte with its length.
fuzz_target!(|input: &[u8]| {
    let mut reader = DescriptionReader::default();
    let mut rest = input;
    while let Some((&length, behind)) = rest.split_first() {
        let (frame, next) = behind.split_at(behind.len().min(usize::from(length) * 2));
        rest = next;
        let _ = reader.take(frame);
        // Nearly all bytes fail at the magic number, the kind or the checksums; this gets the rest past them.
        if let Some((_, payload)) = frame.split_at_checked(HEADER_BYTES) {
            let mut frame = frame.to_vec();
            frame[..8].copy_from_slice(b"GFH2\x40\0\0\0");
            frame[26..32].copy_from_slice(&[1, 0, 0, 0, 1, 0]);
            frame[32..40].copy_from_slice(&[
                payload.len() as u8,
                (payload.len() >> 8) as u8,
                0,
                0,
                0,
                0,
                0,
                0,
            ]);
            frame[48..52].copy_from_slice(&(payload.len() as u32).to_le_bytes());
            frame[52..56].copy_from_slice(&crc32c::crc32c(payload).to_le_bytes());
            if let Ok(Some(description)) = reader.take(&frame) {
                assert!(description.channels.len() <= usize::from(frame[24]));
                assert!(description.annotations.len() <= Description::ANNOTATIONS_MAX);
                let next = Header { sample_rate_hz: 1e6, producer_ts_ns: 5, ..Header::default() };
                let _ = (description.time_of(&next, u64::MAX), description.time_error_ns());
                let part = description.decimated(3, 2, 1e6);
                assert_eq!(part.annotations.len(), description.annotations.len());
            }
        }
    }
});
