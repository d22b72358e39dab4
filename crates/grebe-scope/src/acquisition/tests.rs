use proptest::prelude::*;

use super::*;
use crate::{Condition, Slope};

/// A record's trigger, start and samples.
type Taken = (u64, u64, Vec<Vec<i16>>);

fn edge() -> Trigger {
    Trigger::new(Condition::Edge { slope: Slope::Rising, level: 0, hysteresis: 0 }, 0).unwrap()
}

/// Two channels, the second the first plus one.
fn run(acquisition: &mut Acquisition, parts: &[(u64, Vec<i16>)], block: usize) -> Vec<Taken> {
    let mut taken = Vec::new();
    for (start, samples) in parts {
        let second: Vec<i16> = samples.iter().map(|s| s + 1).collect();
        for from in (0..samples.len()).step_by(block) {
            let to = (from + block).min(samples.len());
            acquisition
                .append(start + from as u64, &[&samples[from..to], &second[from..to]], |record| {
                    let channels = (0..2).map(|c| record.samples(c).to_vec()).collect();
                    taken.push((record.trigger.index, record.first_sample_index, channels));
                })
                .unwrap();
        }
    }
    taken
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

    /// Every trigger away from gaps has its record, in blocks of any size.
    #[test]
    fn every_trigger_gets_its_record(
        parts in proptest::collection::vec(proptest::collection::vec(-3i16..3, 1..300), 1..4),
        block in 1usize..120,
        pre in 0u64..20,
        post in 1u64..40,
    ) {
        let mut at = 1000;
        let parts: Vec<(u64, Vec<i16>)> = parts.into_iter().map(|samples| {
            let start = at;
            at += samples.len() as u64 + 7;
            (start, samples)
        }).collect();
        let mut expected = Vec::new();
        for (start, samples) in &parts {
            for i in 1..samples.len() {
                if samples[i - 1] < 0 && samples[i] >= 0 {
                    let (from, to) = (i as i64 - pre as i64, i + post as usize);
                    if from >= 0 && to <= samples.len() {
                        let record = samples[from as usize..to].to_vec();
                        let second = record.iter().map(|s| s + 1).collect();
                        expected.push((start + i as u64, start + from as u64, vec![record, second]));
                    }
                }
            }
        }
        let mut acquisition = Acquisition::new(2, &[0, 1], 0, edge(), pre, pre + post).unwrap();
        prop_assert_eq!(run(&mut acquisition, &parts, block), expected);
    }

    /// The same stream gives the same records in blocks of any size.
    #[test]
    fn blocks_change_nothing(
        samples in proptest::collection::vec(prop_oneof![8 => Just(-1i16), 1 => -2i16..3], 1..600),
        block in 1usize..100,
        pre in 0u64..10,
        post in 1u64..30,
    ) {
        let parts = [(5, samples.clone()), (5 + samples.len() as u64 + 3, samples)];
        let make = || Acquisition::new(2, &[0, 1], 0, edge(), pre, pre + post).unwrap();
        let whole = run(&mut make(), &parts, usize::MAX >> 1);
        let cut = run(&mut make(), &parts, block);
        prop_assert_eq!(whole, cut);
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    let make = |channels, channel, pre, len| Acquisition::new(channels, &[0], channel, edge(), pre, len);
    let keep = |kept: &[usize]| Acquisition::new(3, kept, 0, edge(), 0, 10);
    assert!(keep(&[0, 2]).is_ok() && keep(&[]).is_ok() && keep(&[0, 3]).is_err() && keep(&[1, 1]).is_err());
    assert!(make(0, 0, 0, 10).is_err() && make(2, 2, 0, 10).is_err());
    assert!(make(1, 0, 10, 10).is_err() && make(1, 0, 0, 0).is_err());
    let error = make(1, 0, 10, 10).unwrap_err().to_string();
    assert_eq!(error, "pre-trigger in samples: 10 was given, less than the record length is needed");
}

#[test]
fn channels_that_are_not_kept_cost_nothing() {
    let mut acquisition = Acquisition::new(3, &[0, 2], 1, edge(), 2, 4).unwrap();
    let mut taken = Vec::new();
    for first in [0i16, 4, 8] {
        let of = |add: i16| [-2, -1, 0, 1].map(|value| value + first - 4 + add);
        let block = [of(100), of(0), of(200)];
        let block: Vec<&[i16]> = block.iter().map(|channel| &channel[..]).collect();
        let keep = |record: Record<'_>| taken.push([0, 1, 2].map(|c| record.samples(c).to_vec()));
        acquisition.append(first as u64, &block, keep).unwrap();
    }
    let record = |add: i16| [-2, -1, 0, 1].map(|value| value + add).to_vec();
    assert_eq!(taken, [[record(100), vec![], record(200)]]);
    assert_eq!(Acquisition::<i16>::memory_bytes(2, 9), Some(2 * 9 * 6 + 10 * size_of::<TriggerEvent>()));
    assert_eq!(Acquisition::<i16>::memory_bytes(usize::MAX, 1 << 40), None);
}

#[test]
fn reals_are_recorded_as_integers_are() {
    let samples: Vec<i16> = (0..2000).map(|n| ((f64::from(n) * 0.07).sin() * 100.0) as i16).collect();
    let other: Vec<i16> = samples.iter().map(|sample| sample / 2).collect();
    let real = |samples: &[i16]| samples.iter().map(|&sample| f32::from(sample)).collect::<Vec<f32>>();
    let (real_samples, real_other) = (real(&samples), real(&other));
    let level = Condition::Edge { slope: Slope::Rising, level: 20.0, hysteresis: 5.0 };
    let mut reals = Acquisition::new(2, &[0, 1], 0, Trigger::new(level, 0).unwrap(), 30, 70).unwrap();
    let level = Condition::Edge { slope: Slope::Rising, level: 20, hysteresis: 5 };
    let mut integers = Acquisition::new(2, &[0, 1], 0, Trigger::new(level, 0).unwrap(), 30, 70).unwrap();
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    for from in (0..2000).step_by(90) {
        let to = (from + 90).min(2000);
        let block = [&samples[from..to], &other[from..to]];
        let taken = |record: Record<'_>| expected.push([0, 1].map(|c| real(record.samples(c))));
        integers.append(from as u64, &block, taken).unwrap();
        let block = [&real_samples[from..to], &real_other[from..to]];
        let taken = |record: Record<'_, f32>| found.push([0, 1].map(|c| record.samples(c).to_vec()));
        reals.append(from as u64, &block, taken).unwrap();
    }
    assert!(found.len() > 15);
    assert_eq!(found, expected);
}
