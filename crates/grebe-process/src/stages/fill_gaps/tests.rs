use grebe_flow::StageBench;
use grebe_frame::{BatchPool, Complex, Sample, StreamTracker};
use grebe_testing::stream::{batches_of, frames_of, sample_at};
use proptest::prelude::*;

use super::*;

struct Filled {
    frames: Vec<(Header, Vec<Vec<i16>>)>,
    counts: [u64; 4],
}

fn filled(with: Filler, longest: u64, batches: Vec<Batch>) -> Filled {
    let fill = FillGaps { with, longest: Count(longest) };
    let mut bench = StageBench::new(FillGapsStage::new(&fill)).unwrap();
    let mut made = Vec::new();
    batches.into_iter().for_each(|batch| made.extend(bench.feed(batch).unwrap()));
    made.extend(bench.end().unwrap());
    let snapshot = bench.snapshot();
    let stage = snapshot.stage("stage").unwrap();
    let counts = ["filled_samples", "filled_gaps", "unfilled_samples", "copied_frames"]
        .map(|name| stage.own(name).unwrap());
    Filled { frames: frames_of(&made), counts }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Wherever the gaps are: afterwards there is none, each sample is at its place, and numbers increase
    /// by one.
    #[test]
    fn a_stream_with_holes_becomes_one_without(
        channels in 1u32..=8, together in 1usize..7,
        pieces in prop::collection::vec((1u32..100, prop_oneof![3 => Just(0u64), 1 => 1u64..700]), 1..30),
    ) {
        let mut index = 0;
        let (mut frames, mut there) = (Vec::new(), Vec::new());
        for (at, (length, gap)) in pieces.into_iter().enumerate() {
            let gap = if at == 0 { 0 } else { gap };
            there.extend(std::iter::repeat_n(false, gap as usize));
            there.extend(std::iter::repeat_n(true, length as usize));
            index += gap;
            frames.push((index, length));
            index += u64::from(length);
        }
        let gaps = frames.windows(2).filter(|pair| pair[0].0 + u64::from(pair[0].1) < pair[1].0).count() as u64;
        for with in [Filler::Zero, Filler::Hold, Filler::Mark] {
            let made = filled(with, 1_000, batches_of(channels, &frames, together));
            let mut tracker = StreamTracker::new();
            made.frames.iter().for_each(|(header, _)| { tracker.arrive(header); });
            prop_assert_eq!((tracker.counts().lost_frames, tracker.counts().lost_samples), (0, 0));
            for channel in 0..channels as usize {
                let got: Vec<i16> = made.frames.iter().flat_map(|(_, samples)| samples[channel].clone()).collect();
                let mut held = 0;
                let expected: Vec<i16> = there.iter().enumerate().map(|(index, there)| {
                    match (there, with) {
                        (true, _) => { held = sample_at(channel, index as u64); held }
                        (false, Filler::Zero) => 0,
                        (false, Filler::Hold) => held,
                        (false, Filler::Mark) => i16::MIN,
                    }
                }).collect();
                prop_assert_eq!(got, expected);
            }
            let missing = there.iter().filter(|there| !**there).count() as u64;
            prop_assert_eq!(made.counts[..3].to_vec(), vec![missing, gaps, 0]);
        }
    }
}

/// Filler between two frames with these samples, in 100 channels.
fn between<T: Sample>(with: Filler, samples: [T; 2]) -> T {
    let mut batch = BatchPool::new(1, 65_536).acquire().unwrap();
    for (sequence, first_sample_index) in [(0, 0), (2, 3)] {
        let header = Header {
            format: T::FORMAT,
            sequence,
            first_sample_index,
            channel_count: 100,
            block_length_samples: 2,
            ..Header::default()
        };
        batch.push::<T>(&header, |_, out| out.copy_from_slice(&samples)).unwrap();
    }
    let stage = FillGapsStage::new(&FillGaps { with, longest: Count(9) });
    let made = StageBench::new(stage).unwrap().feed(batch.freeze()).unwrap();
    let frames: Vec<_> = made.iter().flat_map(|batch| batch.frames()).collect();
    assert_eq!(frames.len(), 3);
    let first = frames[1].channel::<T>(0).unwrap().into_owned();
    assert!((0..100).all(|channel| frames[2].channel::<T>(channel).unwrap().as_ref() == samples));
    first[0]
}

#[test]
fn a_gap_before_the_end_is_filled() {
    let mut batches = batches_of(2, &[(0, 10)], 1);
    let last = batches[0].frames().next_back().unwrap().header();
    let mut end = BatchPool::new(1, 4096).acquire().unwrap();
    let header = Header {
        sequence: last.sequence + 2,
        first_sample_index: last.next_sample_index() + 90,
        block_length_samples: 0,
        ..last
    };
    end.push::<i16>(&header, |_, _| ()).unwrap();
    batches.push(end.freeze());
    let made = filled(Filler::Zero, 1_000, batches);
    let samples: u32 = made.frames.iter().map(|(header, _)| header.block_length_samples).sum();
    assert_eq!((samples, made.counts), (100, [90, 1, 0, 0]));
    assert_eq!(made.frames.last().unwrap().0.first_sample_index, 100);
}

#[test]
fn every_format_is_filled() {
    assert_eq!(
        between(Filler::Hold, [Complex::new(1.0f32, 2.0), Complex::new(3.0, 4.0)]),
        Complex::new(3.0, 4.0)
    );
    assert_eq!(between(Filler::Hold, [1.0, 2.5f64]), 2.5);
    assert_eq!(between(Filler::Zero, [Complex::new(9u8, 9); 2]), Complex::new(128, 128));
    assert_eq!(between(Filler::Zero, [9i32; 2]), 0);
    assert_eq!(between(Filler::Mark, [9i32; 2]), i32::MIN);
    assert_eq!(between(Filler::Mark, [Complex::new(9i8, 9); 2]), Complex::new(-128, -128));
    let none = between(Filler::Mark, [Complex::new(9.0f32, 9.0); 2]);
    assert!(none.re.is_nan() && none.im.is_nan());
}

#[test]
fn a_stream_without_gaps_passes_unchanged() {
    let batches = batches_of(3, &[(0, 64), (64, 64), (128, 5)], 2);
    let (before, held) = (frames_of(&batches), batches.clone());
    let made = filled(Filler::Mark, 1_000, batches);
    assert_eq!(made.frames, before);
    assert_eq!(made.counts, [0; 4], "nothing was copied although somebody else held it");
    drop(held);
}

#[test]
fn a_hole_that_is_too_long_stays_with_its_lost_frames() {
    let made = filled(Filler::Zero, 100, batches_of(1, &[(0, 64), (164, 64), (1_000, 64), (1_064, 1)], 1));
    assert_eq!(made.counts, [100, 1, 772, 0]);
    let mut tracker = StreamTracker::new();
    made.frames.iter().for_each(|(header, _)| {
        tracker.arrive(header);
    });
    let counts = tracker.counts();
    assert_eq!((counts.lost_frames, counts.lost_samples), (2, 772));
    assert_eq!(counts.samples, 64 * 3 + 100 + 1);
}

#[test]
fn fill_gaps_fills_generator_drops_and_renumbers_the_rest() {
    // Consecutive frame numbers, although samples are missing.
    let mut batches = batches_of(1, &[(0, 10)], 1);
    for (sequence, index) in [(1, 50), (2, 60)] {
        let mut batch = BatchPool::new(1, 4096).acquire().unwrap();
        let header = Header {
            sequence,
            channel_count: 1,
            block_length_samples: 10,
            sample_rate_hz: 1e6,
            first_sample_index: index,
            sg_drops_total: 40,
            ..Header::default()
        };
        batch.push::<i16>(&header, |_, samples| samples.fill(9)).unwrap();
        batches.push(batch.freeze());
    }
    let held = batches[2].clone();
    let made = filled(Filler::Hold, 1_000, batches);
    let numbers: Vec<(u64, u64)> =
        made.frames.iter().map(|(header, _)| (header.sequence, header.first_sample_index)).collect();
    assert_eq!(numbers, [(0, 0), (1, 10), (2, 20), (3, 30), (4, 40), (5, 50), (6, 60)]);
    assert_eq!(made.counts, [40, 1, 0, 1], "the batch that was held is copied to get its number");
    assert_eq!(held.frames().next().unwrap().header().sequence, 2);
}

#[test]
fn another_stream_keeps_its_numbers() {
    let mut batches = batches_of(1, &[(1_000, 10)], 1);
    batches.extend(batches_of(2, &[(0, 10), (30, 10)], 1));
    let made = filled(Filler::Zero, 1_000, batches);
    let shapes: Vec<_> =
        made.frames.iter().map(|(header, _)| (header.sequence, header.first_sample_index)).collect();
    assert_eq!(shapes, [(0, 1_000), (0, 0), (1, 10), (2, 20), (3, 30)]);
}
