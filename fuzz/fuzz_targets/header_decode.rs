#![no_main]

use grebe_frame::{Frame, HEADER_BYTES, Header};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    decode(bytes);
    // Nearly all bytes fail at the magic number; this gets the rest past it.
    let mut bytes = bytes.to_vec();
    if bytes.len() >= HEADER_BYTES {
        bytes[..4].copy_from_slice(b"GFH2");
        bytes[4..8].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
        bytes[36..40].fill(0);
        decode(&bytes);
    }
});

fn decode(bytes: &[u8]) {
    if let Ok(header) = Header::parse(bytes) {
        let mut again = [0; HEADER_BYTES];
        header.write(&mut again);
        assert_eq!(Header::parse(&again), Ok(header));
    }
    if let Ok(frame) = Frame::parse(bytes) {
        let header = frame.header();
        for channel in 0..=header.channel_count as usize {
            let expected =
                if channel < header.channel_count as usize { header.block_length_samples } else { 0 };
            assert_eq!(frame.channel(channel).len(), expected as usize);
        }
    }
}
