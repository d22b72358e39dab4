use std::io;
use std::ops::Range;

use grebe_frame::SampleFormat;

use super::super::{Disk, Most, WideWaterfall};
use crate::data::recorded::samples::Reader;
use crate::data::recorded::tests::Fake;
use crate::data::recording::{Recording, RecordingOutline, RecordingPower, RecordingSums, Stretch};
use crate::data::spectrum::{ROWS, WaterfallView};
use crate::data::viewport::{Detector, SpectrumSettings};

/// A recording without samples: bursts at -10 dBFS in the middle of a bin of 1024, over a floor of -90.
#[derive(Debug)]
struct Known {
    outline: RecordingOutline,
    /// Where each begins, and its bin; each has 300 samples.
    bursts: Vec<(u64, usize)>,
    known: u64,
    read_rows: usize,
}

impl Known {
    fn new(stretches: Vec<Stretch>, bursts: Vec<(u64, usize)>) -> Self {
        let outline = Fake::outline_of(SampleFormat::Cf32, 1, stretches);
        let known = outline.len_samples();
        Self { outline, bursts, known, read_rows: 0 }
    }
}

impl Recording for Known {
    fn outline(&self) -> &RecordingOutline {
        &self.outline
    }

    fn refresh(&mut self) -> bool {
        false
    }

    fn read(&mut self, _: u64, _: usize, _: &mut Vec<u8>) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn known_samples(&self) -> u64 {
        0
    }

    fn level(&self, _: u32) -> Option<u32> {
        None
    }

    fn extremes(&mut self, _: usize, _: u32, _: Range<u64>, _: &mut Vec<(f32, f32)>) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn sums(&self, _: usize, _: Range<u64>) -> RecordingSums {
        RecordingSums::default()
    }

    fn memory_bytes(&self) -> usize {
        0
    }

    fn known_power_samples(&mut self) -> Option<u64> {
        Some(self.known)
    }

    fn power_level(&self, log2: u32) -> Option<u32> {
        (14..=32).step_by(2).take_while(|&level| level <= log2).last()
    }

    fn power(
        &mut self,
        channel: usize,
        log2: u32,
        number: u64,
        power: &mut RecordingPower,
    ) -> io::Result<()> {
        assert_eq!(channel, 0);
        let own = number << log2..(number + 1) << log2;
        assert!(own.end.min(self.outline.len_samples()) <= self.known);
        self.read_rows += 1;
        // As few bins as a summary has of so short rows.
        let bins = (256 << ((log2 - 14) / 2)).min(1024);
        power.highest.clear();
        power.highest.resize(bins, -90.0);
        for &(begin, bin) in &self.bursts {
            if begin < own.end && own.start < begin + 300 {
                power.highest[bin * bins / 1024] = -10.0;
            }
        }
        power.mean.clear();
        power.mean.extend(power.highest.iter().map(|level| level - 20.0));
        Ok(())
    }
}

const NO_TIME: Most = Most { spread: std::time::Duration::ZERO, blocks: std::time::Duration::ZERO };

fn look(waterfall: &mut WideWaterfall<f32>, known: &mut Known, window: Range<f64>) -> WaterfallView {
    look_for(waterfall, known, window, Detector::Highest)
}

fn look_for(
    waterfall: &mut WideWaterfall<f32>,
    known: &mut Known,
    window: Range<f64>,
    detector: Detector,
) -> WaterfallView {
    let settings =
        SpectrumSettings { size: 1024, waterfall: Some(0), detector, ..SpectrumSettings::default() };
    let disk = &mut Disk { recording: known, reader: &mut Reader::default() };
    waterfall.view(disk, settings, (0, 1024), window, NO_TIME).unwrap()
}

#[test]
fn every_burst_stands_in_its_row_and_bin_at_ten_zooms_and_nothing_else_does() {
    let length = 1u64 << 41;
    let bursts: Vec<(u64, usize)> =
        (0..40u64).map(|n| ((n * n * 1_234_567_891) % (length - 300), (n * 389 % 1024) as usize)).collect();
    let stretch = Stretch { position: 0, length_samples: length, first_sample_index: 0 };
    let mut known = Known::new(vec![stretch], bursts.clone());
    for zoom in 0..10 {
        let span = length >> (2 * zoom);
        for &(begin, bin) in &bursts {
            // The burst is somewhere in the window, which ends anywhere.
            let end = (begin + 1 + span * (bin as u64 % 7) / 7).clamp(span, length);
            let mut waterfall = WideWaterfall::default();
            let view = look(&mut waterfall, &mut known, (end - span) as f64..end as f64);
            assert_eq!(view.width, 1024);
            let hop = (span as f64 / ROWS as f64).ceil() as u64;
            let newest = end.div_ceil(hop) - 1;
            let row = |number: usize| &view.cells[number * 1024..][..1024];
            let back = newest.checked_sub(begin / hop).unwrap() as usize;
            if back < ROWS {
                assert_eq!(row(back)[bin], -10.0, "burst at {begin} in {span} samples up to {end}");
            }
            let wide = if hop >= 1 << 20 { 1 } else { 4 };
            for number in 0..ROWS {
                let Some(place) = newest.checked_sub(number as u64) else { continue };
                let own = (place * hop).saturating_sub(hop / 4)..(place + 1) * hop + hop / 4;
                for (cell, _) in row(number).iter().enumerate().filter(|&(_, &level)| level > -50.0) {
                    let is_one = |&(begin, bin): &(u64, usize)| {
                        begin < own.end && own.start < begin + 300 && bin / wide == cell / wide
                    };
                    assert!(bursts.iter().any(is_one), "row {number}, cell {cell} of {span} samples");
                }
            }
            let all = view.sampled.unwrap();
            assert!(all.is_summary && all.done == all.all, "{all:?}");
            assert!(view.words(Detector::Highest).unwrap().ends_with("from the summary"));
            assert!(waterfall.is_settled() && (waterfall.is_exact() || hop < super::FINAL_SAMPLES));
        }
    }
    // Each view reads a few summary rows per own row.
    known.read_rows = 0;
    look(&mut WideWaterfall::default(), &mut known, 0.0..length as f64);
    assert!(known.read_rows <= 17 * ROWS, "{}", known.read_rows);
}

#[test]
fn a_mean_is_that_of_the_summary_rows() {
    let length = 1u64 << 30;
    let stretch = Stretch { position: 0, length_samples: length, first_sample_index: 0 };
    let mut known = Known::new(vec![stretch], vec![(length / 2 + 100, 700)]);
    let mut waterfall = WideWaterfall::default();
    let mean = look_for(&mut waterfall, &mut known, 0.0..length as f64, Detector::Mean);
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
    let mut known = Known::new(vec![of(0, 0), of(half, half * 2)], vec![(half / 2, 700)]);
    known.known = half;
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
    known.known = half * 2;
    let view = look(&mut waterfall, &mut known, 0.0..(half * 3) as f64);
    assert_eq!(row(&view, half / 2 * 5)[3], -90.0);
    assert!(waterfall.is_exact());
}
