use super::*;
use crate::BatchPool;

fn header(sequence: u64, block: u32) -> Header {
    Header { sequence, channel_count: 2, block_length_samples: block, ..Header::default() }
}

#[test]
fn a_batch_takes_frames_until_it_is_full_and_keeps_them_apart() {
    let mut pool = BatchPool::new(1, 1024);
    let mut batch = pool.acquire().unwrap();
    let mut sequence = 0;
    while batch
        .push(&header(sequence, 33), |channel, samples| samples.fill((sequence * 2) as i16 + channel as i16))
        .is_ok()
    {
        sequence += 1;
    }
    // 64 + 132 bytes per frame, rounded up to 256.
    assert_eq!((sequence, batch.len()), (4, 4));
    let batch = batch.freeze();
    assert_eq!(batch.samples(), 4 * 33);
    for (position, frame) in batch.frames().enumerate() {
        assert_eq!(frame.header().sequence, position as u64);
        assert!(frame.channel(1).iter().all(|&sample| sample == position as i16 * 2 + 1));
    }
    assert!(pool.acquire().is_none());
    drop(batch);
    assert!(pool.acquire().unwrap().is_empty());
}

#[test]
fn whole_blocks_of_32_samples_lie_back_to_back() {
    let mut pool = BatchPool::new(1, 4096);
    let mut batch = pool.acquire().unwrap();
    for sequence in 0..3 {
        batch.push(&header(sequence, 32), |_, _| ()).unwrap();
    }
    let batch = batch.freeze();
    let (bytes, stride) = batch.contiguous().unwrap();
    assert_eq!((bytes.len(), stride), (3 * 192, 192));
    drop(batch);
    let mut batch = pool.acquire().unwrap();
    batch.push(&header(0, 32), |_, _| ()).unwrap();
    batch.push(&header(1, 33), |_, _| ()).unwrap();
    assert!(batch.freeze().contiguous().is_none());
}

#[test]
fn headers_are_rewritten_and_the_shape_stays() {
    let mut batch = BatchPool::new(1, 1024).acquire().unwrap();
    for sequence in 0..2 {
        batch.push(&header(sequence, 5), |_, samples| samples.fill(7)).unwrap();
    }
    batch.update_headers(|header| {
        *header = Header { sequence: header.sequence + 10, first_sample_index: 3, ..Header::default() };
    });
    let batch = batch.freeze();
    for (position, frame) in batch.frames().enumerate() {
        let expected = Header { first_sample_index: 3, ..header(position as u64 + 10, 5) };
        assert_eq!(frame.header(), expected);
        assert_eq!(frame.channel(1).as_ref(), [7; 5]);
        assert_eq!(Header::parse(frame.header_bytes()).unwrap(), expected, "its checksum is right");
    }
}

#[test]
fn a_shared_batch_is_not_changed_in_place() {
    let mut pool = BatchPool::new(1, 1024);
    let mut batch = pool.acquire().unwrap();
    batch.push(&header(0, 4), |_, samples| samples.fill(1)).unwrap();
    let batch = batch.freeze();
    let reader = batch.clone();
    let batch = batch.try_unique().unwrap_err();
    drop(reader);
    let mut batch = batch.try_unique().unwrap();
    batch.update(|_, channel, samples| samples.iter_mut().for_each(|sample| *sample += channel as i16));
    let batch = batch.freeze();
    let frame = batch.frames().next().unwrap();
    assert_eq!((frame.channel(0)[0], frame.channel(1)[3]), (1, 2));
}

#[test]
fn adopting_beyond_the_chunk_is_refused() {
    let mut pool = BatchPool::new(1, 1024);
    let mut batch = pool.acquire().unwrap();
    assert_eq!(batch.adopt(1000, &header(0, 4)), Err(Full));
    assert_eq!(batch.adopt(944, &header(0, 4)), Ok(()));
}
