#![no_main]

use grebe_frame::{Frame, HEADER_BYTES, Header, SampleFormat};
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
        let bytes = header.block_length_samples as usize * header.format.bytes();
        for channel in 0..header.channel_count as usize {
            assert_eq!(frame.channel_bytes(channel).map(<[u8]>::len), Ok(bytes));
            let read = frame.channel::<i16>(channel);
            assert_eq!(read.is_ok(), header.format == SampleFormat::I16);
            assert!(read.is_err() || read.is_ok_and(|samples| samples.len() * 2 == bytes));
        }
        assert!(frame.channel_bytes(header.channel_count as usize).is_err());
    }
}
