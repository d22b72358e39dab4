//! Every format in any number of channels, from frames to files and back.

use grebe_flow::StageBench;
use grebe_frame::{Batch, Header};

use super::*;
use crate::{FileSource, PlayOptions, RecordOptions, SigmfSink};

/// Frames at these indexes and of these lengths; every byte differs from its neighbours.
pub(super) fn stream(format: SampleFormat, channels: u32, frames: &[(u64, u32)]) -> Vec<Batch> {
    let (mut sequence, mut next) = (0, frames[0].0);
    let mut batches = Vec::new();
    for &(index, length) in frames {
        sequence += if index > next { 2 } else { 0 };
        let header = Header {
            sequence,
            format,
            channel_count: channels,
            block_length_samples: length,
            sample_rate_hz: 1e6,
            first_sample_index: index,
            ..Header::default()
        };
        let mut batch = BatchPool::new(1, header.frame_bytes()).acquire().unwrap();
        let bytes = format.bytes() as u64;
        let fill = |channel: usize, out: &mut [u8]| {
            for (at, byte) in (index * bytes..).zip(out) {
                *byte = (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ channel as u8;
            }
        };
        batch.push_bytes(&header, fill).unwrap();
        batches.push(batch.freeze());
        (sequence, next) = (sequence + 1, index + u64::from(length));
    }
    batches
}

/// Begin in the stream of a stretch without a gap, and the bytes of each channel.
type Stretch = (u64, Vec<Vec<u8>>);

fn stretches_of(batches: &[Batch]) -> Vec<Stretch> {
    let (mut found, mut next): (Vec<Stretch>, _) = (Vec::new(), None);
    for frame in batches.iter().flat_map(Batch::frames) {
        let header = frame.header();
        let channels = header.channel_count as usize;
        if next != Some(header.first_sample_index) {
            found.push((header.first_sample_index, vec![Vec::new(); channels]));
        }
        for channel in 0..channels {
            found.last_mut().unwrap().1[channel].extend_from_slice(frame.channel_bytes(channel).unwrap());
        }
        next = Some(header.next_sample_index());
    }
    found
}

pub(super) fn recorded(path: &Path, batches: &[Batch]) {
    let mut bench = StageBench::new(SigmfSink::create(path, RecordOptions::default()).unwrap()).unwrap();
    for batch in batches {
        bench.feed(batch.clone()).unwrap();
    }
    bench.end().unwrap();
}

pub(super) fn played(path: &Path) -> Vec<Batch> {
    let options = PlayOptions {
        speed: None,
        repeat: false,
        samples: None,
        datagram_bytes: 9_000,
        flush_every: Duration::ZERO,
    };
    let file = SampleFile::open(path).unwrap();
    StageBench::new(FileSource::new(file, options).0).unwrap().end().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_format_is_recorded_and_played_bit_for_bit_with_its_gaps(
        number in 0u8..10,
        channels in prop_oneof![1u32..=9, Just(64u32), Just(255u32), 1u32..=255],
        steps in prop::collection::vec((prop_oneof![2 => Just(0u64), 1 => 1u64..1 << 33], 1u32..120), 1..8),
    ) {
        let format = SampleFormat::from_wire(number).unwrap();
        let (_folder, path) = scratch("take.sigmf-meta");
        let mut index = 7;
        let frames: Vec<(u64, u32)> = steps.into_iter().map(|(gap, length)| {
            let first = index + gap;
            index = first + u64::from(length);
            (first, length)
        }).collect();
        let sent = stream(format, channels, &frames);
        recorded(&path, &sent);
        let file = SampleFile::open(&path).unwrap();
        prop_assert_eq!((file.format(), file.channels()), (format, channels as usize));
        let played = played(&path);
        prop_assert!(played.iter().flat_map(Batch::frames).all(|frame| frame.header().format == format));
        prop_assert_eq!(stretches_of(&played), stretches_of(&sent));
    }

    /// A file of another program, in the other order of bytes: the same numbers.
    #[test]
    fn both_orders_of_bytes_are_read(number in 0u8..10, channels in 1u32..20, length in 1u32..40) {
        let format = SampleFormat::from_wire(number).unwrap();
        let (_folder, path) = scratch("big.sigmf-meta");
        let sent = stretches_of(&stream(format, channels, &[(0, length)])).remove(0).1;
        let (bytes, number_bytes) = (format.bytes(), format.component().bytes());
        let mut data = Vec::new();
        for at in 0..length as usize {
            for channel in &sent {
                let sample = &channel[at * bytes..(at + 1) * bytes];
                sample.chunks(number_bytes).for_each(|number| data.extend(number.iter().rev()));
            }
        }
        let kind = if format.is_complex() { "" } else { "r" };
        let order = if number_bytes > 1 { "_be" } else { "" };
        let global = json!({
            "core:datatype": format!("{kind}{format}{order}"), "core:version": "1.2.0", "core:num_channels": channels,
        });
        fs::write(&path, json!({ "global": global, "captures": [] }).to_string()).unwrap();
        fs::write(path.with_extension("sigmf-data"), data).unwrap();
        let mut file = SampleFile::open(&path).unwrap();
        let block = file.block(0, length as usize).unwrap();
        for (channel, expected) in sent.iter().enumerate() {
            prop_assert_eq!(block.channel_bytes(channel).unwrap(), expected);
        }
    }
}

#[test]
fn samples_of_another_type_and_channels_that_are_not_there_are_errors() {
    let (_folder, path) = scratch("x.sigmf-meta");
    recorded(&path, &stream(SampleFormat::Cf32, 2, &[(0, 10)]));
    let mut file = SampleFile::open(&path).unwrap();
    let block = file.block(3, 4).unwrap();
    assert_eq!(block.channel::<Complex<f32>>(1).unwrap().len(), 4);
    assert!(block.channel::<f32>(1).unwrap_err().to_string().starts_with("the samples are cf32, but f32 is"));
    assert!(block.channel::<Complex<f32>>(2).unwrap_err().to_string().contains("the stream has 2"));
    assert!(block.channel_bytes(2).is_err());
}

#[test]
fn eight_channels_have_a_file_each_and_more_are_interleaved_in_one() {
    for (channels, files) in [(8, 17), (9, 2)] {
        let (folder, path) = scratch("x.sigmf-meta");
        recorded(&path, &stream(SampleFormat::U8, channels, &[(0, 10)]));
        assert_eq!(names(&folder).len(), files);
    }
    let (_folder, path) = scratch("x.sigmf-meta");
    recorded(&path, &stream(SampleFormat::Ci16, 9, &[(0, 10)]));
    let global = read_json(&path)["global"].clone();
    assert_eq!((&global["core:datatype"], &global["core:num_channels"]), (&json!("ci16_le"), &json!(9)));
    validate(&path);
}

#[test]
fn a_stream_that_changes_its_format_ends_the_recording() {
    let (_folder, path) = scratch("x.sigmf-meta");
    let mut bench = StageBench::new(SigmfSink::create(&path, RecordOptions::default()).unwrap()).unwrap();
    bench.feed(stream(SampleFormat::I16, 1, &[(0, 10)]).remove(0)).unwrap();
    let error = bench.feed(stream(SampleFormat::F32, 1, &[(10, 10)]).remove(0)).unwrap_err().to_string();
    assert!(error.contains("from 1 channel of i16 at 1000000 S/s to 1 channel of f32 at"), "{error}");
    drop(bench);
    assert_eq!(SampleFile::open(&path).unwrap().len_samples(), 10);
}
