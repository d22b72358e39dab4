//! Every pixel at ten zooms of time and ten of frequency, beside all transforms of the samples: with a spectral summary and
//! without one.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use grebe_frame::SampleFormat;
use grebe_scope::{PowerTransform, Window};
use grebe_testing::Rng;

use super::tests::{HOP, LENGTH, LINES, NO_TIME, SIZE, chirp_and_bursts, fake, settings};
use super::*;
use crate::data::recorded::samples::Reader;
use crate::data::recorded::tests::{Fake, Spectra};
use crate::data::recording::Recording;
use crate::data::viewport::Detector;

const BINS: usize = SIZE / 2;

/// A spectral summary by its definition: of transforms half over one another. Has the lines of the transform whose middle is
/// at `SIZE / 2` times its number.
#[derive(Debug)]
struct Levels(Vec<Vec<f32>>);

impl Spectra for Levels {
    const FINEST: u32 = 6;

    fn known_samples(&self) -> Option<u64> {
        Some(LENGTH as u64)
    }

    fn highest(&mut self, samples: Range<u64>) -> Vec<f32> {
        let mut bins = highest(&self.0, samples.start as usize..samples.end as usize);
        // The last bin has two lines.
        let last = bins.pop().unwrap();
        bins[BINS - 1] = bins[BINS - 1].max(last);
        bins
    }
}

/// Raises the levels to those of others.
fn raise(others: &[f32], levels: &mut [f32]) {
    levels.iter_mut().zip(others).for_each(|(level, other)| *level = level.max(*other));
}

/// Levels of a transform from `start` on; samples outside of the recording are zero.
fn levels_at(transform: &mut PowerTransform, samples: &[f32], start: i64) -> Vec<f32> {
    let at = |index: i64| usize::try_from(index).ok().and_then(|index| samples.get(index).copied());
    let size = (transform.lines() - 1) as i64 * 2;
    let own: Vec<f32> = (start..start + size).map(|index| at(index).unwrap_or(0.0)).collect();
    let mut power = vec![0.0; transform.lines()];
    assert!(transform.power(&own, &[], 0.0, &mut power));
    power.iter().map(|&power| 10.0 * power.max(1e-20).log10()).collect()
}

/// The highest levels of all transforms of a row, side by side.
pub(super) fn levels_of_row(transform: &mut PowerTransform, samples: &[f32], row: Range<usize>) -> Vec<f32> {
    let size = (transform.lines() - 1) * 2;
    let mut levels = vec![f32::NEG_INFINITY; transform.lines()];
    for start in row.clone().step_by(size).map(|at| at.min(row.end - size)) {
        raise(&levels_at(transform, samples, start as i64), &mut levels);
    }
    levels
}

/// The highest levels of the transforms whose middle is within these samples.
fn highest(levels: &[Vec<f32>], samples: Range<usize>) -> Vec<f32> {
    let mut lines = vec![f32::NEG_INFINITY; LINES];
    let hop = SIZE / 2;
    let numbers = samples.start.div_ceil(hop)..samples.end.div_ceil(hop).min(levels.len());
    levels[numbers].iter().for_each(|levels| raise(levels, &mut lines));
    lines
}

#[test]
fn every_pixel_at_ten_zooms_is_what_all_transforms_have() {
    let samples = chirp_and_bursts();
    let mut transform = PowerTransform::real(SIZE, Window::Rectangular).unwrap();
    transform.set_full_scale(32_768.0);
    let levels: Vec<Vec<f32>> = (0..=LENGTH * 2 / SIZE)
        .map(|number| levels_at(&mut transform, &samples, (number as i64 - 1) * SIZE as i64 / 2))
        .collect();
    let mut plain = fake(SampleFormat::I16, vec![samples.clone()], &[(0, LENGTH as u64)]);
    let Fake { outline, channels, .. } =
        fake(SampleFormat::I16, vec![samples.clone()], &[(0, LENGTH as u64)]);
    let mut summarized = Fake { outline, channels, shared: plain.shared.clone(), spectra: Levels(levels) };
    let bursts: Vec<usize> = (0..5).map(|number| LENGTH / 7 * (number + 1) + 37 * number).collect();
    let mut shown = 0;
    for zoom in 0..10 {
        let span = (HOP as f64 / 1.4f64.powi(zoom)) as usize * ROWS;
        // A burst is somewhere in the window.
        let end = (bursts[zoom as usize % 5] + span * 2 / 3).clamp(span, LENGTH);
        let window = (end - span) as f64..end as f64;
        let hop = span / ROWS;
        let newest = end.div_ceil(hop) - 1;
        let look = |recording: &mut dyn Recording, is_whole: bool| {
            let (mut waterfall, mut reader) = (WideWaterfall::<i16>::default(), Reader::default());
            loop {
                let disk = &mut Disk { recording, reader: &mut reader };
                let view = waterfall
                    .view(disk, Viewer::default(), settings(), (0, SIZE, 1000), window.clone(), NO_TIME)
                    .unwrap();
                if !is_whole || waterfall.is_exact() {
                    break view;
                }
            }
        };
        let with = look(&mut summarized, false);
        assert!(with.sampled.unwrap().is_summary && with.width == BINS, "{hop} samples a row");
        let without = look(&mut plain, true);
        for back in 0..ROWS {
            let Some(number) = newest.checked_sub(back) else { break };
            let row = number * hop..((number + 1) * hop).min(LENGTH);
            let [with, without] =
                [&with, &without].map(|view| &view.cells[back * view.width..][..view.width]);
            // Rows of the summary reach into their neighbours by a quarter.
            let mut in_bins =
                |samples: Range<usize>| summarized.spectra.highest(samples.start as u64..samples.end as u64);
            let least = in_bins(row.clone());
            let most = in_bins(row.start.saturating_sub(hop / 4)..row.end + hop / 4);
            for cell in 0..BINS {
                let place = format!("{hop} samples a row, row {back}, cell {cell}");
                assert!(with[cell] >= least[cell] && with[cell] <= most[cell], "{place}: {}", with[cell]);
            }
            let exact = levels_of_row(&mut transform, &samples, row.clone());
            for cell in 0..LINES {
                let place = format!("{hop} samples a row, row {back}, cell {cell}");
                let is_same = (without[cell] - exact[cell]).abs() < 0.02 || exact[cell] < -110.0;
                assert!(is_same, "{place}: {}, {}", without[cell], exact[cell]);
            }
            for _ in bursts.iter().filter(|&&begin| row.contains(&(begin + SIZE / 2))) {
                let line = SIZE * 3 / 8;
                assert!(with[line] > -13.0 && without[line].max(exact[line]) > -13.0, "{hop}, row {back}");
                shown += 1;
            }
        }
    }
    assert!(shown >= 20, "{shown} bursts");
}

/// Samples per transform of the zooms of frequency, and per row.
const LONG: usize = 8192;
const LONG_HOP: usize = LONG + 900;
/// In lines of such a transform: two tones, and bursts of half of one.
const TONES: [f64; 2] = [1000.0, 1003.0];
const BURST_LINE: f64 = 1012.0;

/// Two tones in noise, and a burst in every tenth row.
fn tones_and_bursts() -> (Vec<f32>, Vec<usize>) {
    let mut rng = Rng::with_seed(49);
    let length = LONG_HOP * ROWS;
    let bursts: Vec<usize> = (0..12).map(|number| LONG_HOP * 10 * number + 3000 + 377 * number).collect();
    let tone = |line: f64, at: usize| (TAU * line / LONG as f64 * at as f64).sin();
    let mut samples: Vec<f64> = (0..length)
        .map(|at| {
            let noise = 30.0 * (rng.f64() - 0.5);
            TONES.iter().map(|&line| 1000.0 * tone(line, at)).sum::<f64>() + noise
        })
        .collect();
    for &begin in &bursts {
        (begin..begin + LONG / 2).for_each(|at| samples[at] += 16_000.0 * tone(BURST_LINE, at));
    }
    (samples.iter().map(|&sample| sample.round() as f32).collect(), bursts)
}

#[test]
fn every_pixel_at_ten_zooms_of_frequency_is_what_all_transforms_have() {
    const PIXELS: usize = 600;
    let (samples, bursts) = tones_and_bursts();
    let length = samples.len();
    let mut recording = fake(SampleFormat::I16, vec![samples.clone()], &[(0, length as u64)]);
    let (mut waterfall, mut reader) = (WideWaterfall::<i16>::default(), Reader::default());
    let mut truths: BTreeMap<usize, Vec<Vec<f32>>> = BTreeMap::new();
    for zoom in 0..10 {
        // The deepest shows 16 lines.
        let width = 0.5 * (16.0 / 4096.0f64).powf(f64::from(zoom) / 9.0);
        let low = (1006.0 / LONG as f64 - width / 2.0).max(0.0);
        let band = (low, low + width);
        let settings = SpectrumSettings {
            size: LONG,
            band: (zoom > 0).then_some(band),
            window: Window::Hann,
            ..settings()
        };
        let view = loop {
            let disk = &mut Disk { recording: &mut recording, reader: &mut reader };
            let most = Most { spread: Duration::from_secs(1), blocks: Duration::from_secs(1) };
            let how = (0, LONG, PIXELS);
            let window = 0.0..length as f64;
            let view = waterfall.view(disk, Viewer::default(), settings, how, window, most).unwrap();
            if waterfall.is_exact() {
                break view;
            }
        };
        let size = crate::data::spectrum::row_size(false, LONG, settings.band);
        assert_eq!(size, if zoom == 0 { LONG / 2 } else { LONG });
        let truth = truths.entry(size).or_insert_with(|| {
            let mut transform = PowerTransform::real(size, Window::Hann).unwrap();
            transform.set_full_scale(32_768.0);
            let row = |back: usize| length - (back + 1) * LONG_HOP..length - back * LONG_HOP;
            (0..ROWS).map(|back| levels_of_row(&mut transform, &samples, row(back))).collect()
        });
        let pixels = view.pixels(band, (PIXELS, ROWS), Detector::Highest);
        let joined = ((view.band.1 - view.band.0) * size as f64 / view.width as f64).round() as usize;
        for (back, truth) in truth.iter().enumerate() {
            for x in 0..PIXELS {
                let line = |x: usize| (band.0 + width * x as f64 / PIXELS as f64) * size as f64;
                let row = &pixels[back * PIXELS..][..PIXELS];
                let level = row[x];
                let (from, to) = (line(x), line(x + 1));
                // The lines in it, and those of the cells that it touches.
                let least = (from + 0.5).ceil() as usize..(to - 0.5).floor() as usize + 1;
                let most = (from - joined as f64).round().max(0.0) as usize
                    ..((to + joined as f64).round() as usize + 1).min(truth.len());
                let highest = |lines: Range<usize>| {
                    truth[lines.start..lines.end.max(lines.start)].iter().copied().fold(-115.0, f32::max)
                };
                let (least, most) = (highest(least), highest(most));
                let place = format!("zoom {zoom}, row {back}, pixel {x}: {least} to {most}, {level}");
                // Far below a burst, single precision counts.
                let slack = if level < -80.0 { 0.5 } else { 0.02 };
                assert!(level <= most + slack, "{place}");
                // A cell over the edge of a pixel is in one of both.
                let near = &row[x.saturating_sub(1)..(x + 2).min(PIXELS)];
                let near = near.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                assert!(near >= least - slack || least < -110.0, "{place}");
                // One line over several pixels.
                let own = (from + 0.5) as usize;
                if joined == 1 && own == (to + 0.5) as usize {
                    let is_same = (level - truth[own]).abs() < slack || truth[own] < -110.0;
                    assert!(is_same, "{place}, {}", truth[own]);
                }
            }
        }
        let pixel = |line: f64| ((line / LONG as f64 - band.0) / width * PIXELS as f64) as usize;
        for &begin in &bursts {
            let rows = [begin, begin + LONG / 2 - 1].map(|at| (length - 1 - at) / LONG_HOP);
            let levels = rows.map(|row| pixels[row * PIXELS + pixel(BURST_LINE)]);
            assert!(levels[0].max(levels[1]) > -30.0, "zoom {zoom}, burst at {begin}: {levels:?}");
        }
        // Two tones are two lines.
        if zoom >= 7 {
            let quiet = pixels.chunks_exact(PIXELS).nth(1).unwrap();
            let [a, b] = TONES.map(|line| quiet[pixel(line)]);
            let between = pixel(TONES[0])..pixel(TONES[1]);
            let dip = quiet[between].iter().copied().fold(f32::INFINITY, f32::min);
            assert!((a + 30.3).abs() < 0.5 && (b + 30.3).abs() < 0.5 && dip < a - 5.0, "{a} {dip} {b}");
        }
    }
}
