use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use grebe_frame::SampleFormat;

use super::super::tests::NO_TIME;
use super::super::{Disk, Most, WideWaterfall};
use crate::data::history::Viewer;
use crate::data::recorded::samples::Reader;
use crate::data::recorded::tests::{Fake, Shared, Spectra};
use crate::data::recording::Stretch;
use crate::data::spectrum::{ROWS, WaterfallView};
use crate::data::viewport::{Detector, SpectrumSettings};

/// Bursts at -10 dBFS in the middle of a bin of 1024, over a floor of -90.
#[derive(Debug)]
struct Bursts {
    /// Where each begins, and its bin; each has 300 samples.
    bursts: Vec<(u64, usize)>,
    known: u64,
    read_rows: usize,
}

impl Spectra for Bursts {
    const FINEST: u32 = 14;

    fn known_samples(&self) -> Option<u64> {
        Some(self.known)
    }

    fn highest(&mut self, own: Range<u64>) -> Vec<f32> {
        assert!(own.end <= self.known.next_multiple_of(own.end - own.start));
        self.read_rows += 1;
        // As few bins as a summary has of so short rows.
        let log2 = (own.end - own.start).ilog2();
        let bins = (256 << ((log2 - 14) / 2)).min(1024);
        let mut highest = vec![-90.0; bins];
        for &(begin, bin) in &self.bursts {
            if begin < own.end && own.start < begin + 300 {
                highest[bin * bins / 1024] = -10.0;
            }
        }
        highest
    }
}

/// A recording whose samples cannot be read.
fn known(stretches: Vec<Stretch>, bursts: Vec<(u64, usize)>) -> Fake<Bursts> {
    let outline = Fake::outline_of(SampleFormat::Cf32, 1, stretches);
    let known = outline.len_samples();
    let shared = Arc::<Mutex<Shared>>::default();
    shared.lock().unwrap().is_gone = true;
    Fake { outline, channels: Vec::new(), shared, spectra: Bursts { bursts, known, read_rows: 0 } }
}

fn look(waterfall: &mut WideWaterfall<f32>, known: &mut Fake<Bursts>, window: Range<f64>) -> WaterfallView {
    look_for(waterfall, known, window, Detector::Highest, None)
}

fn look_for(
    waterfall: &mut WideWaterfall<f32>,
    known: &mut Fake<Bursts>,
    window: Range<f64>,
    detector: Detector,
    band: Option<(f64, f64)>,
) -> WaterfallView {
    let size = if band.is_some() { 8192 } else { 1024 };
    let settings =
        SpectrumSettings { size, waterfall: Some(0), detector, band, ..SpectrumSettings::default() };
    let disk = &mut Disk { recording: known, reader: &mut Reader::default() };
    waterfall.view(disk, Viewer::default(), settings, (0, size, 1000), window, NO_TIME).unwrap()
}

#[test]
fn every_burst_stands_in_its_row_and_bin_at_ten_zooms_and_nothing_else_does() {
    let length = 1u64 << 41;
    let bursts: Vec<(u64, usize)> =
        (0..40u64).map(|n| ((n * n * 1_234_567_891) % (length - 300), (n * 389 % 1024) as usize)).collect();
    let stretch = Stretch { position: 0, length_samples: length, first_sample_index: 0 };
    let mut known = known(vec![stretch], bursts.clone());
    for zoom in 0..10 {
        let span = length >> (2 * zoom);
        for &(begin, bin) in &bursts {
            // The burst is somewhere in the window, which ends anywhere.
            let end = (begin + 1 + span * (bin as u64 % 7) / 7).clamp(span, length);
            let mut waterfall = WideWaterfall::default();
            let view = look(&mut waterfall, &mut known, (end - span) as f64..end as f64);
            let hop = (span as f64 / ROWS as f64).ceil() as u64;
            // A cell is a bin.
            let width = if hop >= 1 << 20 { 1024 } else { 256 << ((hop.ilog2() - 16) / 2) };
            assert_eq!(view.width, width);
            let newest = end.div_ceil(hop) - 1;
            let row = |number: usize| &view.cells[number * width..][..width];
            let back = newest.checked_sub(begin / hop).unwrap() as usize;
            if back < ROWS {
                let level = row(back)[bin * width / 1024];
                assert_eq!(level, -10.0, "burst at {begin} in {span} samples up to {end}");
            }
            for number in 0..ROWS {
                let Some(place) = newest.checked_sub(number as u64) else { continue };
                let own = (place * hop).saturating_sub(hop / 4)..(place + 1) * hop + hop / 4;
                for (cell, _) in row(number).iter().enumerate().filter(|&(_, &level)| level > -50.0) {
                    let is_one = |&(begin, bin): &(u64, usize)| {
                        begin < own.end && own.start < begin + 300 && bin * width / 1024 == cell
                    };
                    assert!(bursts.iter().any(is_one), "row {number}, cell {cell} of {span} samples");
                }
            }
            let (all, is_final) = (view.sampled.unwrap(), hop >= super::FINAL_SAMPLES);
            assert!(all.is_summary && (all.done == all.all) == is_final, "{all:?}");
            let words = view.words(Detector::Highest).unwrap();
            let begin = if is_final { "highest of all " } else { "highest of the summary, and of " };
            assert!(words.starts_with(begin) && words.contains("summary"), "{words}");
            assert!(waterfall.is_settled() && waterfall.is_exact() == is_final);
        }
    }
    // Each view reads a few summary rows per own row.
    known.spectra.read_rows = 0;
    look(&mut WideWaterfall::default(), &mut known, 0.0..length as f64);
    assert!(known.spectra.read_rows <= 17 * ROWS, "{}", known.spectra.read_rows);
}

#[test]
fn a_picture_to_be_saved_has_rows_of_one_kind() {
    let length = super::FINAL_SAMPLES * ROWS as u64;
    let stretch = Stretch { position: 0, length_samples: length, first_sample_index: 0 };
    let mut known = Fake {
        outline: Fake::outline_of(SampleFormat::F32, 1, vec![stretch]),
        channels: vec![vec![0.01; length as usize]],
        shared: Arc::default(),
        // Being made.
        spectra: Bursts { bursts: Vec::new(), known: length / 2, read_rows: 0 },
    };
    let settings = SpectrumSettings { size: 1024, waterfall: Some(0), ..SpectrumSettings::default() };
    let to_be_saved = Most { spread: Duration::from_secs(600), ..NO_TIME };
    for (most, is_summary) in [(NO_TIME, true), (to_be_saved, false)] {
        let disk = &mut Disk { recording: &mut known, reader: &mut Reader::default() };
        let mut waterfall = WideWaterfall::<f32>::default();
        let (viewer, how, window) = (Viewer::default(), (0, 1024, 1000), 0.0..length as f64);
        let view = waterfall.view(disk, viewer, settings, how, window, most).unwrap();
        let sampled = view.sampled.unwrap();
        assert_eq!((sampled.is_summary, sampled.done < sampled.all), (is_summary, is_summary), "{sampled:?}");
    }
}

#[test]
fn a_band_has_the_bins_of_the_summary_or_waits_for_finer_transforms() {
    let length = 1u64 << 41;
    let bursts = vec![(length / 3, 700), (length / 2, 705), (length / 4, 300)];
    let stretch = Stretch { position: 0, length_samples: length, first_sample_index: 0 };
    let mut known = known(vec![stretch], bursts.clone());
    // From line 697 to line 718 of 1024.
    let band = Some((0.181, 0.2015));
    let mut waterfall = WideWaterfall::default();
    let mut look = |span: u64| {
        let window = (length - span) as f64..length as f64;
        let view = look_for(&mut waterfall, &mut known, window, Detector::Highest, band);
        (view, waterfall.is_exact())
    };
    let (view, is_exact) = look(length);
    assert!(is_exact && (21..=23).contains(&view.width), "{} cells", view.width);
    assert!(view.words(Detector::Highest).unwrap().ends_with("from the summary"));
    let first = ((view.band.0 + 0.5) * 1024.0 + 0.5).round() as usize;
    for (begin, bin) in bursts {
        let row = ROWS - 1 - (begin / (length / ROWS as u64)) as usize;
        let row = &view.cells[row * view.width..][..view.width];
        let loud: Vec<usize> = (0..view.width).filter(|&cell| row[cell] > -50.0).collect();
        assert_eq!(loud, bin.checked_sub(first).filter(|cell| *cell < view.width).as_slice());
    }
    // The longest window of which all samples are read, and a longer one.
    let (view, is_exact) = look(super::REPLACED_SAMPLES);
    assert!(!is_exact, "transforms of 8192 samples have finer lines");
    let words = view.words(Detector::Highest).unwrap();
    assert!(words.starts_with("highest of the summary, and of "), "{words}");
    assert!(look(super::REPLACED_SAMPLES * 2).1);
}

#[test]
fn a_mean_is_that_of_the_summary_rows() {
    let length = 1u64 << 30;
    let stretch = Stretch { position: 0, length_samples: length, first_sample_index: 0 };
    let mut known = known(vec![stretch], vec![(length / 2 + 100, 700)]);
    let mut waterfall = WideWaterfall::default();
    let mean = look_for(&mut waterfall, &mut known, 0.0..length as f64, Detector::Mean, None);
    // A row has 2^23 samples: eight rows of the summary, of which one has the burst.
    let row = |number: usize| &mean.cells[number * 1024..][..1024];
    let wanted = 10.0 * ((1e-3 + 7.0 * 1e-11) / 8.0f32).log10();
    assert!((row(ROWS / 2 - 1)[700] - wanted).abs() < 0.01, "{} {wanted}", row(ROWS / 2 - 1)[700]);
    assert!((row(3)[700] + 110.0).abs() < 0.01);
    // The other level is another waterfall.
    let highest = look(&mut waterfall, &mut known, 0.0..length as f64);
    assert_eq!(highest.cells[(ROWS / 2 - 1) * 1024 + 700], -10.0);
}

#[test]
fn rows_that_a_summary_does_not_have_yet_are_estimated_and_those_in_a_gap_are_marked() {
    let half = 1u64 << 30;
    let of = |position, first_sample_index| Stretch { position, length_samples: half, first_sample_index };
    let mut known = known(vec![of(0, 0), of(half, half * 2)], vec![(half / 2, 700)]);
    known.spectra.known = half;
    let mut waterfall = WideWaterfall::default();
    let view = look(&mut waterfall, &mut known, 0.0..(half * 3) as f64);
    let row = |view: &WaterfallView, index: u64| {
        let number = (ROWS as u64 - 1 - index * ROWS as u64 / (half * 3)) as usize;
        view.cells[number * 1024..][..1024].to_vec()
    };
    assert_eq!(row(&view, half / 2)[700], -10.0);
    assert!(row(&view, half / 2 * 3).iter().all(|level| level.is_nan()));
    assert!(row(&view, half / 2 * 5).iter().all(|level| !level.is_finite()), "cannot be read either");
    assert!(!waterfall.is_exact());
    known.spectra.known = half * 2;
    let view = look(&mut waterfall, &mut known, 0.0..(half * 3) as f64);
    assert_eq!(row(&view, half / 2 * 5)[3], -90.0);
    assert!(waterfall.is_exact());
}
