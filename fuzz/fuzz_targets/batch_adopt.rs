#![no_main]

use grebe_frame::{BatchPool, HEADER_BYTES, Header, StreamTracker};
use libfuzzer_sys::fuzz_target;

const CHUNK_BYTES: usize = 4_096;

// The first words are offsets of frames in the chunk, the bytes are the chunk.
fuzz_target!(|input: (Vec<u16>, &[u8])| {
    let (offsets, bytes) = input;
    let mut pool = BatchPool::new(2, CHUNK_BYTES);
    let mut batch = pool.acquire().expect("a new pool has free chunks");
    let length = bytes.len().min(CHUNK_BYTES);
    batch.chunk()[..length].copy_from_slice(&bytes[..length]);
    for offset in offsets {
        let offset = usize::from(offset) % CHUNK_BYTES;
        if let Some(head) = batch.chunk()[offset..].first_chunk_mut::<HEADER_BYTES>() {
            head[..8].copy_from_slice(b"GFH2\x40\0\0\0");
            head[36..40].fill(0);
        }
        if let Ok(header) = Header::parse(&batch.chunk()[offset..]) {
            // A frame that does not fit is refused.
            let _ = batch.adopt(offset, &header);
        }
    }
    let mut copy = pool.acquire().expect("the pool has two chunks");
    let batch = batch.freeze();
    let mut tracker = StreamTracker::new();
    let mut samples = 0;
    for frame in batch.frames() {
        tracker.arrive(&frame.header());
        for channel in 0..frame.header().channel_count as usize {
            // A later offset may have overwritten this header, so its length may be wrong.
            samples += frame.channel_bytes(channel).map_or(0, <[u8]>::len);
        }
        let _ = copy.push_copy(&frame);
    }
    assert!(samples <= batch.len() * CHUNK_BYTES);
    assert!(tracker.counts().frames <= batch.len() as u64);
});
