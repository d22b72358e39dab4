use num_complex::Complex;

use super::*;
use crate::{BatchPool, Sample};

fn header(sequence: u64, block: u32) -> Header {
    Header { sequence, channel_count: 2, block_length_samples: block, ..Header::default() }
}

#[test]
fn a_batch_takes_frames_until_it_is_full_and_keeps_them_apart() {
    let mut pool = BatchPool::new(1, 1024);
    let mut batch = pool.acquire().unwrap();
    let mut sequence = 0;
    while batch
        .push::<i16>(&header(sequence, 33), |channel, samples| {
            assert_eq!(samples.len(), 33, "a channel's own samples");
            samples.fill((sequence * 2) as i16 + channel as i16);
        })
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
        for channel in 0..2 {
            assert_eq!(
                frame.channel::<i16>(channel).unwrap().as_ref(),
                [position as i16 * 2 + channel as i16; 33]
            );
        }
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
        batch.push::<i16>(&header(sequence, 32), |_, _| ()).unwrap();
    }
    let batch = batch.freeze();
    let (bytes, stride) = batch.contiguous().unwrap();
    assert_eq!((bytes.len(), stride), (3 * 192, 192));
    drop(batch);
    let mut batch = pool.acquire().unwrap();
    batch.push::<i16>(&header(0, 32), |_, _| ()).unwrap();
    batch.push::<i16>(&header(1, 33), |_, _| ()).unwrap();
    assert!(batch.freeze().contiguous().is_none());
}

#[test]
fn headers_are_rewritten_and_the_shape_stays() {
    let mut batch = BatchPool::new(1, 1024).acquire().unwrap();
    for sequence in 0..2 {
        batch.push::<i16>(&header(sequence, 5), |_, samples| samples.fill(7)).unwrap();
    }
    batch.update_headers(|header| {
        *header = Header { sequence: header.sequence + 10, first_sample_index: 3, ..Header::default() };
    });
    let batch = batch.freeze();
    for (position, frame) in batch.frames().enumerate() {
        let expected = Header { first_sample_index: 3, ..header(position as u64 + 10, 5) };
        assert_eq!(frame.header(), expected);
        assert_eq!(frame.channel::<i16>(1).unwrap().as_ref(), [7; 5]);
        assert_eq!(Header::parse(frame.header_bytes()).unwrap(), expected, "its checksum is right");
    }
}

#[test]
fn a_shared_batch_is_not_changed_in_place() {
    let mut pool = BatchPool::new(1, 1024);
    let mut batch = pool.acquire().unwrap();
    batch.push::<i16>(&header(0, 4), |_, samples| samples.fill(1)).unwrap();
    let batch = batch.freeze();
    let reader = batch.clone();
    let batch = batch.try_unique().unwrap_err();
    drop(reader);
    let mut batch = batch.try_unique().unwrap();
    let add = |_: &Header, channel: usize, samples: &mut [i16]| {
        samples.iter_mut().for_each(|sample| *sample += channel as i16);
    };
    batch.update(add).unwrap();
    let batch = batch.freeze();
    let frame = batch.frames().next().unwrap();
    assert_eq!((frame.channel::<i16>(0).unwrap()[0], frame.channel::<i16>(1).unwrap()[3]), (1, 2));
}

#[test]
fn adopting_beyond_the_chunk_is_refused() {
    let mut pool = BatchPool::new(1, 1024);
    let mut batch = pool.acquire().unwrap();
    assert_eq!(batch.adopt(1000, &header(0, 4)), Err(Full));
    assert_eq!(batch.adopt(944, &header(0, 4)), Ok(()));
}

#[test]
fn a_batch_reports_its_contents_during_and_after_building() {
    let mut pool = BatchPool::new(3, 1024);
    let mut batches: Vec<BatchMut> = (0..3).map(|_| pool.acquire().unwrap()).collect();
    let mut indices: Vec<u32> = batches.iter().map(BatchMut::index).collect();
    indices.sort_unstable();
    assert_eq!(indices, [0, 1, 2], "each chunk has its own index");

    let mut batch = batches.pop().unwrap();
    assert_eq!(
        (batch.len(), batch.is_empty(), batch.filled_bytes(), batch.capacity_bytes()),
        (0, true, 0, 1024)
    );
    batch.push::<i16>(&header(0, 8), |_, samples| samples.fill(1)).unwrap();
    batch.push::<i16>(&header(1, 8), |_, samples| samples.fill(2)).unwrap();
    // 64 + 2 channels of 16 bytes, the second one from the next multiple of 64.
    assert_eq!((batch.len(), batch.is_empty(), batch.filled_bytes()), (2, false, 128 + 96));
    assert_eq!((batch.frames().size_hint(), batch.frames().len()), ((2, Some(2)), 2));

    batch.clear();
    assert_eq!((batch.len(), batch.filled_bytes()), (0, 0));
    assert!(batch.freeze().is_empty(), "a cleared batch has no frames");

    let mut batch = batches.pop().unwrap();
    batch.push::<i16>(&header(0, 8), |_, _| ()).unwrap();
    let batch = batch.freeze();
    assert_eq!((batch.len(), batch.is_empty(), batch.pinned_bytes()), (1, false, 1024));
    assert_eq!(batch.offsets().collect::<Vec<_>>(), [0]);
}

#[test]
fn a_copied_frame_is_the_frame_at_the_next_multiple_of_64() {
    let mut pool = BatchPool::new(2, 400);
    let mut from = pool.acquire().unwrap();
    from.push::<i16>(&header(7, 5), |channel, samples| samples.fill(100 + channel as i16)).unwrap();
    let from = from.freeze();
    let frame = from.frames().next().unwrap();

    let mut to = pool.acquire().unwrap();
    let mut copies = 0;
    while to.push_copy(&frame) == Ok(()) {
        copies += 1;
    }
    // 64 + 20 bytes a frame, from 0, 128 and 256; the fourth would end at 468 of 448.
    assert_eq!((copies, to.len(), to.filled_bytes()), (3, 3, 256 + 84));
    let to = to.freeze();
    assert_eq!(to.offsets().collect::<Vec<_>>(), [0, 128, 256]);
    for copy in to.frames() {
        assert_eq!(copy.header(), frame.header());
        assert_eq!(copy.payload(), frame.payload());
    }
}

#[test]
fn a_chunk_that_a_receiver_filled_is_the_batch() {
    let mut pool = BatchPool::new(2, 1024);
    let mut from = pool.acquire().unwrap();
    from.push::<i16>(&header(3, 16), |channel, samples| samples.fill(channel as i16 - 5)).unwrap();
    let from = from.freeze();

    let mut slab = pool.acquire().unwrap();
    assert_eq!(slab.chunk().len(), 1024);
    slab.as_mut()[..128].copy_from_slice(&from.chunk()[..128]);
    slab.adopt(0, &header(3, 16)).unwrap();
    let slab = slab.freeze();
    assert_eq!(slab.chunk()[..128], from.chunk()[..128]);
    assert_eq!(slab.frames().next().unwrap().channel::<i16>(1).unwrap().as_ref(), [-4; 16]);
}

#[test]
fn updating_reaches_every_channel_of_every_frame_and_no_header() {
    let mut batch = BatchPool::new(1, 1024).acquire().unwrap();
    for sequence in 0..2 {
        batch.push::<i16>(&header(sequence, 3), |_, samples| samples.fill(10)).unwrap();
    }
    batch
        .update::<i16>(|header, channel, samples| {
            for (at, sample) in samples.iter_mut().enumerate() {
                *sample += (header.sequence as i16) * 100 + channel as i16 * 10 + at as i16;
            }
        })
        .unwrap();
    let batch = batch.freeze();
    let seen: Vec<Vec<i16>> = batch
        .frames()
        .flat_map(|frame| {
            [frame.channel::<i16>(0).unwrap().to_vec(), frame.channel::<i16>(1).unwrap().to_vec()]
        })
        .collect();
    assert_eq!(seen, [[10, 11, 12], [20, 21, 22], [110, 111, 112], [120, 121, 122]]);
    assert!(
        batch.frames().all(|frame| Header::parse(frame.header_bytes()).is_ok()),
        "headers are as they were"
    );
}

#[test]
fn a_frame_that_no_receiver_accepts_is_refused_by_its_writer() {
    let mut batch = BatchPool::new(1, 65_536).acquire().unwrap();
    let good = Header { channel_count: 8, block_length_samples: 4, sample_rate_hz: 1e6, ..Header::default() };
    let mut push = |header: Header| batch.push::<i16>(&header, |_, samples| samples.fill(0));
    for (bad, why) in [
        (Header { channel_count: 0, ..good }, Refusal::ChannelCount),
        (Header { channel_count: 256, ..good }, Refusal::ChannelCount),
        (Header { sample_rate_hz: f64::NAN, ..good }, Refusal::Rate),
        (Header { sample_rate_hz: -1.0, ..good }, Refusal::Rate),
    ] {
        assert_eq!(push(bad), Err(PushError::Refused(why)));
    }
    assert_eq!(push(good), Ok(()));
    assert_eq!(push(Header { block_length_samples: 1 << 20, ..good }), Err(PushError::Full(Full)));
    assert_eq!(batch.len(), 1);
}

/// A frame of every format that `T` stands for: written, read, changed and read again.
fn round_trip<T: Sample>(values: [T; 3], change: impl Fn(T) -> T) {
    let header = Header { channel_count: 2, block_length_samples: 3, format: T::FORMAT, ..Header::default() };
    let mut batch = BatchPool::new(1, 4096).acquire().unwrap();
    batch.push::<T>(&header, |_, samples| samples.copy_from_slice(&values)).unwrap();
    assert_eq!(batch.filled_bytes(), HEADER_BYTES + 6 * T::FORMAT.bytes());
    batch
        .update::<T>(|_, channel, samples| {
            samples.iter_mut().filter(|_| channel == 1).for_each(|sample| *sample = change(*sample));
        })
        .unwrap();
    let wire: Vec<_> =
        batch.frames().flat_map(|frame| [frame.header_bytes(), frame.payload()].concat()).collect();
    let frame = Frame::parse(&wire).unwrap();
    assert_eq!(frame.channel::<T>(0).unwrap().as_ref(), values, "{}", T::FORMAT);
    assert_eq!(frame.channel::<T>(1).unwrap().as_ref(), values.map(change), "{}", T::FORMAT);
    let mut copy = BatchPool::new(1, 4096).acquire().unwrap();
    copy.push_bytes(&header, |channel, out| out.copy_from_slice(frame.channel_bytes(channel).unwrap()))
        .unwrap();
    assert_eq!(copy.frames().next().unwrap().payload(), frame.payload());
}

#[test]
fn frames_hold_samples_of_every_format() {
    round_trip([1i16, -2, i16::MAX], |sample| sample / 2);
    round_trip([1i8, -2, i8::MIN], |sample| sample / 2);
    round_trip([1u8, 2, u8::MAX], |sample| sample / 2);
    round_trip([1i32, -2, i32::MAX], |sample| sample / 2);
    round_trip([1f32, -2.5, f32::MAX], |sample| sample / 2.0);
    round_trip([1f64, -2.5, f64::MIN_POSITIVE], |sample| sample / 2.0);
    round_trip([1, -2, 3].map(|re| Complex::new(re as i8, 5)), |sample| Complex::new(sample.im, sample.re));
    round_trip([1, 2, 3].map(|re| Complex::new(re as u8, 255)), |sample| Complex::new(sample.im, sample.re));
    round_trip([1, -2, 3].map(|re| Complex::new(re as i16, 500)), |sample| {
        Complex::new(sample.im, sample.re)
    });
    round_trip([1.0, -2.0, 3.0].map(|re| Complex::new(re as f32, 0.1)), |sample| {
        Complex::new(sample.im, sample.re)
    });
}

#[test]
fn samples_of_another_format_than_the_header_says_are_refused() {
    let header =
        Header { channel_count: 1, block_length_samples: 4, format: SampleFormat::F32, ..Header::default() };
    let mut batch = BatchPool::new(1, 4096).acquire().unwrap();
    let refused = batch.push::<i16>(&header, |_, _| panic!("nothing is to be filled"));
    assert_eq!(refused, Err(PushError::Format { is: SampleFormat::I16, header: SampleFormat::F32 }));
    assert_eq!(batch.len(), 0);
    batch.push::<f32>(&header, |_, samples| samples.fill(0.5)).unwrap();
    let wrong = ChannelError::Format { asked: SampleFormat::I16, is: SampleFormat::F32 };
    assert_eq!(batch.update::<i16>(|_, _, _| panic!("nothing is to be changed")), Err(wrong));
    batch.update_headers(|header| header.format = SampleFormat::I32);
    assert_eq!(
        batch.frames().next().unwrap().header().format,
        SampleFormat::F32,
        "where the samples lie stays"
    );
}

#[test]
fn a_description_rides_with_every_batch_until_it_changes() {
    let named =
        |name: &str| Some(Arc::new(Description { name: Some(name.to_owned()), ..Description::default() }));
    let (first, second) = (named("first"), named("second"));
    let mut pool = BatchPool::new(2, 4096);
    assert_eq!(pool.acquire().unwrap().freeze().description(), None);
    pool.describe(first.clone());
    let before = pool.acquire().unwrap().freeze();
    assert!(Arc::ptr_eq(before.description().unwrap(), first.as_ref().unwrap()));
    pool.describe(second.clone());
    let mut after = pool.acquire().unwrap();
    assert_eq!(after.description(), second.as_ref());
    assert_eq!(before.description(), first.as_ref(), "what was lent stays what it was");
    after.describe(before.description());
    assert_eq!(after.freeze().description(), first.as_ref());
    drop(before);
    pool.describe(None);
    assert_eq!(pool.acquire().unwrap().description(), None, "whatever the chunk was used for before");
}
