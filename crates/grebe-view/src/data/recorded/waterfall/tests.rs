use std::f64::consts::TAU;
use std::sync::{Arc, Mutex};

use grebe_frame::SampleFormat;
use grebe_scope::Window;

use super::rows::TRANSFORMS_MIN;
use super::*;
use crate::data::recorded::samples::Reader;
use crate::data::recorded::tests::{Fake, Shared};
use crate::data::recording::Stretch;
use crate::data::viewport::Detector;

pub(super) const SIZE: usize = 64;
/// From 0 Hz to half the rate.
pub(super) const LINES: usize = SIZE / 2 + 1;
/// 100 transforms and a part of one: the last transform overlaps its neighbour.
pub(super) const HOP: usize = 100 * SIZE + 24;
pub(super) const LENGTH: usize = HOP * ROWS;
pub(super) const NO_TIME: Most = Most { spread: Duration::ZERO, blocks: Duration::ZERO };

/// A recording of these runs: the first index in the stream, and the length of each.
pub(super) fn fake(format: SampleFormat, channels: Vec<Vec<f32>>, stretches: &[(u64, u64)]) -> Fake {
    let mut position = 0;
    let of = |&(first_sample_index, length_samples): &(u64, u64)| {
        position += length_samples;
        Stretch { position: position - length_samples, length_samples, first_sample_index }
    };
    let outline = Fake::outline_of(format, channels.len(), stretches.iter().map(of).collect());
    Fake { outline, channels, shared: Arc::new(Mutex::new(Shared::default())), spectra: () }
}

/// A chirp from 0 to half the rate, and five bursts of a tone, each as long as a transform.
pub(super) fn chirp_and_bursts() -> Vec<f32> {
    let mut samples: Vec<f64> = (0..LENGTH)
        .map(|at| {
            let part = at as f64 / LENGTH as f64;
            1000.0 * (TAU * 0.25 * part * at as f64).sin()
        })
        .collect();
    for number in 0..5 {
        let begin = LENGTH / 7 * (number + 1) + 37 * number;
        for (at, sample) in samples.iter_mut().enumerate().skip(begin).take(SIZE) {
            *sample += 16_000.0 * (TAU * 0.375 * at as f64).sin();
        }
    }
    samples.iter().map(|&sample| sample.round() as f32).collect()
}

pub(super) fn settings() -> SpectrumSettings {
    SpectrumSettings {
        size: SIZE,
        window: Window::Rectangular,
        waterfall: Some(0),
        ..SpectrumSettings::default()
    }
}

/// The levels of the transforms from these samples on, in decibels of a full-scale sine, by the definition.
fn by_definition(samples: &[f32], starts: impl Iterator<Item = usize>, detector: Detector) -> Vec<f64> {
    let mut powers = vec![Vec::new(); LINES];
    let turns: Vec<(f64, f64)> = (0..SIZE).map(|at| (TAU * at as f64 / SIZE as f64).sin_cos()).collect();
    for start in starts {
        let own = &samples[start..start + SIZE];
        let level = |line: usize| {
            let (mut re, mut im) = (0.0, 0.0);
            for (at, &sample) in own.iter().enumerate() {
                let (sin, cos) = turns[at * line % SIZE];
                re += f64::from(sample) * cos;
                im -= f64::from(sample) * sin;
            }
            // Both end lines have no mirror image.
            let sides = if line == 0 || line == SIZE / 2 { 1.0 } else { 2.0 };
            (re.hypot(im) * sides / SIZE as f64 / 32_768.0).max(1e-10).powi(2)
        };
        powers.iter_mut().enumerate().for_each(|(line, powers)| powers.push(level(line)));
    }
    let level = |powers: Vec<f64>| match detector {
        Detector::Highest => 10.0 * powers.iter().copied().fold(0.0, f64::max).log10(),
        Detector::Mean => 10.0 * (powers.iter().sum::<f64>() / powers.len() as f64).log10(),
    };
    powers.into_iter().map(level).collect()
}

/// One view of everything, with time for the minimum number of transforms only.
fn look(waterfall: &mut WideWaterfall<i16>, fake: &mut Fake, window: Range<f64>) -> WaterfallView {
    look_for(waterfall, fake, window, Detector::Highest)
}

fn look_for(
    waterfall: &mut WideWaterfall<i16>,
    fake: &mut Fake,
    window: Range<f64>,
    detector: Detector,
) -> WaterfallView {
    let mut reader = Reader::default();
    let disk = &mut Disk { recording: fake, reader: &mut reader };
    let settings = SpectrumSettings { detector, ..settings() };
    waterfall.view(disk, Viewer::default(), settings, (0, SIZE, 1000), window, NO_TIME).unwrap()
}

#[test]
fn it_becomes_the_levels_of_all_transforms_and_says_until_then_of_how_many_it_is() {
    Detector::ALL.into_iter().for_each(becomes_the_levels_of_all_transforms);
}

fn becomes_the_levels_of_all_transforms(detector: Detector) {
    let name = detector.name();
    let samples = chirp_and_bursts();
    let mut fake = fake(SampleFormat::I16, vec![samples.clone()], &[(0, LENGTH as u64)]);
    let mut waterfall = WideWaterfall::default();
    let (mut views, mut done) = (0, 0);
    let mut settled_at = None;
    let view = loop {
        let view = look_for(&mut waterfall, &mut fake, 0.0..LENGTH as f64, detector);
        let sampled = view.sampled.unwrap();
        assert_eq!(sampled.all, 101 * ROWS as u64);
        assert!(sampled.done > done, "{sampled:?} behind {done}");
        done = sampled.done;
        views += 1;
        if waterfall.is_settled() && settled_at.is_none() {
            settled_at = Some(done);
            assert_eq!(view.words(detector).unwrap(), format!("{name} of {done} of 12928 spectra so far"));
        }
        if waterfall.is_exact() {
            break view;
        }
    };
    assert_eq!(settled_at, Some(64 * ROWS as u64));
    assert!(views > 100, "each look makes some");
    assert_eq!(view.words(detector).unwrap(), format!("{name} of all 12928 spectra"));
    assert_eq!((view.width, view.cells.len()), (LINES, LINES * ROWS));
    for row in 0..ROWS {
        let begin = LENGTH - (row + 1) * HOP;
        let starts = (0..101).map(|number| begin + (number * SIZE).min(HOP - SIZE));
        let truth = by_definition(&samples, starts, detector);
        let own = &view.cells[row * view.width..][..view.width];
        for (cell, (&is, should)) in own.iter().zip(truth).enumerate() {
            assert!(
                (f64::from(is) - should).abs() < 0.02 || should < -110.0,
                "row {row}, cell {cell}: {is}, {should}"
            );
        }
    }
    // Every burst shows in its row: it fills at least half of a transform.
    for number in (0..5).filter(|_| detector == Detector::Highest) {
        let begin = LENGTH / 7 * (number + 1) + 37 * number;
        let row = (LENGTH - 1 - begin) / HOP;
        let level = view.cells[row * view.width + SIZE * 3 / 8];
        assert!(level > -13.0, "burst {number}: {level}");
    }
}

#[test]
fn rows_stay_where_the_window_is_moved_and_are_made_anew_where_it_is_zoomed() {
    let mut fake = fake(SampleFormat::I16, vec![chirp_and_bursts()], &[(0, LENGTH as u64)]);
    let mut waterfall = WideWaterfall::default();
    let half = LENGTH as f64 / 2.0;
    while !waterfall.is_exact() || waterfall.looks.is_empty() {
        look(&mut waterfall, &mut fake, 0.0..half);
    }
    let before = look(&mut waterfall, &mut fake, 0.0..half);
    let hop = half / ROWS as f64;
    let moved = look(&mut waterfall, &mut fake, hop * 5.0..half + hop * 5.0);
    // Five rows are new.
    let width = before.width;
    assert_eq!(moved.cells[5 * width..], before.cells[..123 * width]);
    let zoomed = look(&mut waterfall, &mut fake, 0.0..half / 4.0);
    assert!(zoomed.sampled.unwrap().done <= TRANSFORMS_MIN as u64 + 1, "{:?}", zoomed.sampled);
}

#[test]
fn what_is_missing_is_missing_in_its_row_and_nothing_reaches_across() {
    let samples = chirp_and_bursts();
    // Row 60 from the end is missing, and a third of the one before it.
    let begin = (LENGTH - 61 * HOP - HOP / 3) as u64;
    let end = (LENGTH - 60 * HOP) as u64;
    let left: Vec<f32> = samples[..begin as usize].iter().chain(&samples[end as usize..]).copied().collect();
    let mut fake = fake(SampleFormat::I16, vec![left], &[(0, begin), (end, LENGTH as u64 - end)]);
    let mut waterfall = WideWaterfall::default();
    let view = loop {
        let view = look(&mut waterfall, &mut fake, 0.0..LENGTH as f64);
        if waterfall.is_exact() {
            break view;
        }
    };
    let row = |number: usize| &view.cells[number * view.width..][..view.width];
    assert!(row(60).iter().all(|level| level.is_nan()), "{:?}", row(60));
    for number in [59, 61] {
        assert!(row(number).iter().all(|level| level.is_finite()), "row {number}");
    }
    // A step in the middle of a transform would be equally loud everywhere.
    let start = LENGTH - 62 * HOP;
    let starts = (0..101).map(|number| start + (number * SIZE).min(HOP - SIZE));
    let truth = by_definition(&samples, starts.filter(|&at| at + SIZE <= begin as usize), Detector::Highest);
    assert!(
        row(61)
            .iter()
            .zip(truth)
            .all(|(&is, should)| (f64::from(is) - should).abs() < 0.02 || should < -110.0)
    );

    // Unreadable samples count as missing, without an error.
    fake.shared.lock().unwrap().is_gone = true;
    let view = look(&mut WideWaterfall::default(), &mut fake, 0.0..LENGTH as f64);
    assert!(view.cells.iter().all(|level| !level.is_finite()));
}

#[test]
fn a_complex_channel_has_both_sides_of_its_centre() {
    let tone = |at: usize, turn: f64, shift: f64| (0.25 * (TAU * turn * at as f64 + shift).cos()) as f32;
    let of = |turn: f64| {
        let i: Vec<f32> = (0..LENGTH).map(|at| tone(at, turn, 0.0)).collect();
        let q: Vec<f32> = (0..LENGTH).map(|at| tone(at, turn, -TAU / 4.0)).collect();
        [i, q]
    };
    let lanes = [of(0.125), of(-0.25)].concat();
    // As in a file: I and Q alternate.
    let woven: Vec<Vec<f32>> =
        lanes.chunks(2).map(|iq| iq[0].iter().zip(&iq[1]).flat_map(|(&i, &q)| [i, q]).collect()).collect();
    let outline_of = |channels: usize| {
        let stretch = Stretch { position: 0, length_samples: LENGTH as u64, first_sample_index: 0 };
        Fake::outline_of(SampleFormat::Cf32, channels, vec![stretch])
    };
    let shared = Arc::new(Mutex::new(Shared::default()));
    let mut fake = Fake { outline: outline_of(2), channels: woven, shared, spectra: () };
    let mut waterfall = WideWaterfall::<f32>::default();
    let mut reader = Reader::default();
    let disk = &mut Disk { recording: &mut fake, reader: &mut reader };
    let view = waterfall
        .view(
            disk,
            Viewer::default(),
            settings(),
            (1, SIZE, 1000),
            0.0..LENGTH as f64,
            Most { spread: Duration::from_secs(60), blocks: Duration::from_secs(60) },
        )
        .unwrap();
    assert!(waterfall.is_exact());
    assert_eq!(view.width, SIZE);
    for row in view.cells.chunks_exact(SIZE) {
        let loudest = (0..SIZE).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
        assert_eq!(loudest, SIZE / 2 - SIZE / 4, "a quarter of the rate below the centre");
        assert!((row[loudest] + 12.04).abs() < 0.05, "{}", row[loudest]);
    }
}
