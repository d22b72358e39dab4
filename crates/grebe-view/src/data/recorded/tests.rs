mod derived;
mod fake;

use std::ops::Range;
use std::sync::{Arc, Mutex};

use grebe_frame::SampleFormat;
use grebe_scope::Quantity;
use grebe_testing::Rng;

use crate::data::annotations::AnnotationQuery;
use crate::data::core::ScopeCore;
use crate::data::history::Viewer;
use crate::data::lane::{LaneId, LaneMask};
use crate::data::picture::Picture;
use crate::data::recording::Stretch;
use crate::data::viewport::{Region, Scales, SpectrumSettings, Viewport, Window};
pub(super) use fake::{Fake, Shared, Spectra};

fn extremes(samples: &[f32]) -> (f32, f32) {
    samples.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(min, max), &it| (min.min(it), max.max(it)))
}

/// A core over channels of noise with spikes, of `samples` samples each, which lack 300,001 in the middle.
fn core(
    format: SampleFormat,
    channels: usize,
    samples: usize,
) -> (ScopeCore, Vec<Vec<f32>>, Arc<Mutex<Shared>>) {
    let mut rng = Rng::with_seed(9);
    let values = samples * format.components();
    let channels: Vec<Vec<f32>> = (0..channels)
        .map(|_| {
            let mut all: Vec<f32> = (0..values).map(|_| f32::from(rng.i16(-100..100))).collect();
            for _ in 0..values / 40_000 {
                all[rng.usize(0..values)] = f32::from(rng.i16(..));
            }
            all
        })
        .collect();
    let half = samples as u64 / 2 + 7;
    let stretches = vec![
        Stretch { position: 0, length_samples: half, first_sample_index: 1000 },
        Stretch {
            position: half,
            length_samples: samples as u64 - half,
            first_sample_index: 1000 + half + MISSING,
        },
    ];
    let shared = Arc::new(Mutex::new(Shared { known: samples as u64, ..Shared::default() }));
    let outline = Fake::outline_of(format, channels.len(), stretches);
    let fake = Fake { outline, channels: channels.clone(), shared: Arc::clone(&shared), spectra: () };
    (ScopeCore::of_recording(Box::new(fake)).unwrap(), channels, shared)
}

const MISSING: u64 = 300_001;

/// Checks each column of a picture against all of its samples, within its rounded borders.
fn check(picture: &Picture, channels: &[Vec<f32>], half: u64, is_narrow: bool) {
    let (quantum, all) = (picture.grid.quantum_samples().max(1), channels[0].len() as u64);
    let node = if is_narrow { 1 } else { 1 << (quantum.ilog2() / 2 * 2) };
    let position = |index: u64| match index.checked_sub(1000) {
        None => 0,
        Some(at) if at < half => at,
        Some(at) => at.saturating_sub(MISSING).clamp(half, all),
    };
    let mut checked = 0;
    for lane in &picture.lanes {
        let samples = &channels[lane.lane.channel];
        for (column, at) in lane.columns.iter().zip(picture.first_column..) {
            let Ok(number) = u64::try_from(at) else { continue };
            let span = picture.grid.span(number);
            let (start, end) = (position(span.start), position(span.end));
            if start == end {
                assert!(column.is_empty(), "{at} {column:?}");
                continue;
            }
            let is_missing = span.start.max(1000) < 1000 + half + MISSING && span.end > 1000 + half;
            assert_eq!(column.has_gap(), is_missing, "{at}");
            let start = start / node * node;
            let end = if is_missing || end == all {
                end.next_multiple_of(node).min(all)
            } else {
                end / node * node
            };
            assert_eq!(
                (column.min, column.max),
                extremes(&samples[start as usize..end as usize]),
                "{at} {span:?} {start}..{end}"
            );
            checked += 1;
        }
    }
    assert!(checked > 0);
}

#[test]
fn every_column_at_every_zoom_is_what_brute_force_finds() {
    for format in [SampleFormat::I16, SampleFormat::F32] {
        let samples = 3_000_000;
        let (mut core, channels, _) = core(format, 2, samples);
        let half = samples as u64 / 2 + 7;
        for columns in [100, 300] {
            for span in [1e-3, 0.05, 0.2, 0.41, 0.9, 1.7, 3.3, 20.0] {
                for window in
                    [Window::Latest, Window::Ending { at: 1_950_000.0 }, Window::Ending { at: 900_123.0 }]
                {
                    let viewport = Viewport { span: Some(span), window, ..Viewport::latest(columns) };
                    let picture = core.answer(&viewport, 1);
                    assert!(!picture.is_estimated && picture.is_ended);
                    assert_eq!(
                        (picture.oldest_index, picture.next_index),
                        (1000, 3_000_000 + 1000 + MISSING)
                    );
                    // The history holds no samples from before the start.
                    let right =
                        if let Window::Ending { at } = window { at } else { picture.next_index as f64 };
                    let margin = 2.0 * picture.grid.samples_per_column() + 32.0;
                    let held = right + margin - (right - span * 1e6 - margin).max(0.0);
                    check(&picture, &channels, half, held <= 4096.0 * columns as f64);
                }
            }
        }
    }
}

#[test]
fn a_gap_is_there_and_counted() {
    let (mut core, ..) = core(SampleFormat::I16, 1, 3_000_000);
    let picture = core.answer(&Viewport { span: Some(4.0), ..Viewport::latest(200) }, 1);
    let gaps: Vec<_> = picture.gaps.iter().map(|gap| (gap.start, gap.end, gap.generator_samples)).collect();
    let start = 1000 + 1_500_007;
    assert_eq!(gaps, [(start, start + MISSING, MISSING)]);
    assert_eq!((picture.counts.samples, picture.counts.generator_samples), (3_000_000, MISSING));
    let elsewhere =
        Viewport { window: Window::Ending { at: 500_000.0 }, span: Some(0.1), ..Viewport::latest(50) };
    assert!(core.answer(&elsewhere, 1).gaps.is_empty());
}

#[test]
fn a_box_is_measured_from_its_samples_although_the_picture_is_elsewhere() {
    let (mut core, channels, _) = core(SampleFormat::F32, 2, 3_000_000);
    // Before the gap, and after it.
    for (index, position) in [(501_000, 500_000), (2_301_001, 2_000_000)] {
        let region = Region { channel: 1, samples: index..index + 200_000, band: (0.1, 0.2).into() };
        let viewport = Viewport { region: Some(region.clone()), span: Some(1e-3), ..Viewport::latest(100) };
        let measured = core.answer(&viewport, 1).region.unwrap();
        assert_eq!((&measured.region, measured.signal.samples), (&region, 200_000));
        let own = &channels[1][position..position + 200_000];
        let power = own.iter().map(|&it| f64::from(it).powi(2)).sum::<f64>() / own.len() as f64;
        // Relative to a sine, and a fifth of the band.
        let (all, within) = (10.0 * (2.0 * power).log10(), 10.0 * (2.0 * power / 5.0).log10());
        assert!((measured.signal.power_dbfs.unwrap() - all).abs() < 0.01, "{measured:?}");
        assert!((measured.signal.channel_power_dbfs.unwrap() - within).abs() < 0.2, "{measured:?}");
        assert!(measured.peak.is_some_and(|(at, _)| (0.1..=0.2).contains(&at)), "{measured:?}");
    }
}

#[test]
fn a_window_has_a_spectrum_and_a_waterfall_however_wide_its_columns_are() {
    let (mut core, ..) = core(SampleFormat::F32, 1, 6_000_000);
    let spectrum = Some(SpectrumSettings { waterfall: Some(0), ..SpectrumSettings::default() });
    for end in [3_000_000.0, 6_301_001.0] {
        let window = Window::Ending { at: end };
        let picture = core.answer(&Viewport { window, span: Some(6.0), spectrum, ..Viewport::latest(3) }, 1);
        let view = picture.spectrum.expect("a spectrum");
        assert!(view.channels[0].dbfs.iter().any(|level| level.is_finite()));
        assert!(view.waterfall.is_some());
    }
}

#[test]
fn measurements_are_of_all_that_is_shown() {
    let (mut core, channels, _) = core(SampleFormat::I16, 2, 3_000_000);
    let viewport = Viewport { span: Some(4.0), measure: Some(Scales::default()), ..Viewport::latest(100) };
    let picture = core.answer(&viewport, 1);
    for (measured, samples) in picture.measured.iter().zip(&channels) {
        let (min, max) = extremes(samples);
        assert_eq!(measured.set.get(Quantity::Min), Some(min.into()));
        assert_eq!(measured.set.get(Quantity::Max), Some(max.into()));
        let mean = samples.iter().map(|&sample| f64::from(sample)).sum::<f64>() / samples.len() as f64;
        assert!((measured.set.get(Quantity::Mean).unwrap() - mean).abs() < 1e-6);
        assert_eq!(measured.level_samples, samples.len() as u64);
    }
}

#[test]
fn what_is_not_known_is_guessed_from_samples_of_its_own_and_becomes_exact() {
    // Too many lanes to hold their samples.
    let (mut core, channels, shared) = core(SampleFormat::F32, 24, 1_500_000);
    shared.lock().unwrap().known = 0;
    let viewport = Viewport { span: Some(3.0), lanes: LaneMask::ALL.only([0, 23]), ..Viewport::latest(100) };
    let picture = core.answer(&viewport, 1);
    assert!(picture.is_estimated && core.refresh(), "another picture would be better");
    for lane in &picture.lanes {
        for column in lane.columns.iter().filter(|column| !column.is_empty()) {
            assert!(column.min <= column.max && column.min >= -32_768.0);
        }
    }
    // The first half has a summary, so its columns no longer change.
    shared.lock().unwrap().known = 800_000;
    let half = core.answer(&viewport, 2);
    assert!(half.is_estimated);
    shared.lock().unwrap().known = 1_500_000;
    let whole = core.answer(&viewport, 3);
    assert!(!whole.is_estimated && !core.refresh());
    check(&whole, &channels, 1_500_000 / 2 + 7, whole.grid.samples_per_column() <= 4096.0);
    let known = |picture: &Picture| -> Vec<_> {
        let columns = picture.lanes[0].columns.iter().zip(picture.first_column..);
        let columns = columns.filter(|(_, at)| (0..20).contains(at));
        columns.map(|(column, _)| (column.min, column.max)).collect()
    };
    assert_eq!(known(&half), known(&whole));
}

#[test]
fn many_samples_are_read_for_the_second_picture_of_each_viewer() {
    let samples = 6_000_000;
    let (mut core, channels, shared) = core(SampleFormat::I16, 1, samples);
    shared.lock().unwrap().known = 0;
    let whole = Viewport { span: Some(6.4), ..Viewport::latest(300) };
    for viewer in [Viewer::default(), Viewer(1)] {
        let elsewhere =
            Viewport { window: Window::Ending { at: 500_000.0 }, span: Some(0.01), ..Viewport::latest(300) };
        core.answer_for(viewer, &elsewhere, 1);
        shared.lock().unwrap().read_bytes = 0;
        let first = core.answer_for(viewer, &whole, 2);
        assert!(first.is_estimated && first.lanes[0].columns.iter().any(|column| !column.is_empty()));
        assert!(shared.lock().unwrap().read_bytes < 1_000_000, "a few samples of each column");
        assert!(core.refresh(), "another would be better");
        let second = core.answer_for(viewer, &whole, 3);
        assert!(!second.is_estimated);
        check(&second, &channels, samples as u64 / 2 + 7, true);
    }
    // A picture to be saved has no second one.
    let kept = Viewport { span: Some(6.3), is_exact: true, ..whole };
    assert!(!core.answer(&kept, 4).is_estimated);
}

#[test]
fn a_recording_that_grows_is_followed_and_one_that_is_cut_is_no_end() {
    let (mut core, channels, shared) = core(SampleFormat::I16, 1, 2_000_000);
    let first = core.answer(&Viewport { span: Some(0.01), ..Viewport::latest(100) }, 1);
    assert_eq!(first.next_index, 2_000_000 + 1000 + MISSING);
    shared.lock().unwrap().grown = Some(1_900_000);
    assert!(core.refresh());
    let cut = core.answer(&Viewport { span: Some(0.01), ..Viewport::latest(100) }, 2);
    assert_eq!(cut.next_index, 1_900_000 + 1000 + MISSING);
    check(&cut, &[channels[0][..1_900_000].to_vec()], 1_000_007, cut.grid.samples_per_column() <= 4096.0);
    shared.lock().unwrap().grown = Some(2_000_000);
    assert!(core.refresh());
    let again = core.answer(&Viewport { span: Some(0.01), ..Viewport::latest(100) }, 3);
    assert_eq!(again.next_index, first.next_index);
    // The newer descriptions and annotations are known, too.
    let [(_, early), (latest, late)] = [cut.next_index, first.next_index].map(fake::said_at);
    assert_eq!((&first.description, &again.description), (&None, &Some(latest)));
    let whole =
        Viewport { span: Some(3.0), annotations: Some(AnnotationQuery::default()), ..Viewport::latest(100) };
    assert_eq!(core.answer(&whole, 3).listed.unwrap().rows, [early, late]);
    check(&again, &channels, 1_000_007, again.grid.samples_per_column() <= 4096.0);
    // Gone: nothing can be read, and nothing panics.
    shared.lock().unwrap().is_gone = true;
    let viewport =
        Viewport { window: Window::Ending { at: 500_000.0 }, span: Some(0.01), ..Viewport::latest(100) };
    let gone = core.answer(&viewport, 4);
    assert!(gone.lanes[0].columns.iter().all(|column| column.is_empty()));
}

#[test]
fn a_picture_reads_no_more_than_it_needs() {
    let (mut core, _, shared) = core(SampleFormat::I16, 1, 8_000_000);
    let narrow =
        |at: f64| Viewport { window: Window::Ending { at }, span: Some(1e-3), ..Viewport::latest(500) };
    core.answer(&narrow(4_000_000.0), 1);
    let first = std::mem::take(&mut shared.lock().unwrap().read_bytes);
    assert!((2000..100_000).contains(&first), "{first}");
    // Moved by a screen: those samples are already held.
    core.answer(&narrow(4_001_000.0), 2);
    assert_eq!(shared.lock().unwrap().read_bytes, 0);
    core.answer(&Viewport { span: Some(9.0), ..Viewport::latest(500) }, 3);
    assert!(shared.lock().unwrap().read_bytes < 4_000_000, "requests the newest samples");
}

#[test]
fn samples_are_copied_from_wherever_they_are() {
    let (mut core, channels, _) = core(SampleFormat::I16, 2, 3_000_000);
    core.answer(&Viewport { span: Some(4.0), ..Viewport::latest(100) }, 1);
    let extract = core.extract(Viewer::default(), (500_000..500_100).into());
    assert_eq!((extract.len_samples(), extract.lanes.clone()), (100, vec![LaneId::real(0), LaneId::real(1)]));
    for (lane, samples) in channels.iter().enumerate() {
        for at in 0..100 {
            let expected = f64::from(samples[499_000 + at]);
            assert_eq!(extract.runs[0].samples.value(lane, at), Some(expected));
        }
    }
}

#[test]
fn what_has_not_come_is_drawn_from_nodes_and_asked_for_and_then_read() {
    let (mut core, channels, shared) = core(SampleFormat::I16, 1, 3_000_000);
    // Everything except the first million.
    shared.lock().unwrap().missing = Some(1_000_000..3_000_000);
    let end = 1000 + 3_000_000 + MISSING;
    let narrow =
        Viewport { span: Some(0.02), window: Window::Ending { at: end as f64 }, ..Viewport::latest(500) };
    let guessed = core.answer(&narrow, 1);
    assert!(guessed.is_estimated && guessed.lanes[0].line.is_none());
    let wanted = shared.lock().unwrap().wanted.clone().unwrap();
    let is_about = |at: u64, expected: u64| at.abs_diff(expected) <= 200;
    let Range { start, end } = wanted.singly;
    assert!(is_about(start, 2_980_000) && is_about(end, 3_000_000), "with its margin: {wanted:?}");
    let arrived = guessed.arrived.clone().unwrap();
    assert!(arrived.iter().all(|&part| part == 0.0), "{arrived:?}");
    // Nodes cover all of their samples, so no peak is too low.
    let highest = |picture: &Picture| {
        picture.lanes[0].columns.iter().fold(f32::MIN, |most, column| most.max(column.max))
    };
    let own = channels[0][2_980_000..].iter().copied().fold(f32::MIN, f32::max);
    assert!(highest(&guessed) >= own);

    shared.lock().unwrap().missing = Some(1_000_000..2_900_000);
    let exact = core.answer(&narrow, 2);
    assert!(!exact.is_estimated && highest(&exact) == own);
    assert!(exact.arrived.unwrap().iter().all(|&part| part == 1.0));

    // All of it, from coarse nodes until the finer ones have arrived.
    let whole = Viewport { span: Some(end as f64 / 1e6), ..narrow };
    shared.lock().unwrap().finest = 14;
    let coarse = core.answer(&whole, 3);
    assert!(coarse.is_estimated, "nodes of 16,384 samples, columns of 6,000");
    let arrived = coarse.arrived.unwrap();
    assert!(arrived[10] == 1.0 && arrived[200] == 0.0 && arrived[255] > 0.0, "{arrived:?}");
    shared.lock().unwrap().finest = 0;
    let whole = core.answer(&whole, 4);
    assert!(!whole.is_estimated, "what has not come is known by its nodes");
    let all = channels[0].iter().copied().fold(f32::MIN, f32::max);
    assert_eq!(highest(&whole), all);
}

#[test]
fn without_nodes_only_what_has_come_is_drawn() {
    let (mut core, _, shared) = core(SampleFormat::F32, 1, 40_000_000);
    {
        let mut shared = shared.lock().unwrap();
        (shared.known, shared.missing) = (0, Some(10_000_000..40_000_000));
    }
    let end = 1000 + 40_000_000 + MISSING;
    let whole = Viewport {
        span: Some(end as f64 / 1e6),
        window: Window::Ending { at: end as f64 },
        ..Viewport::latest(400)
    };
    let picture = core.answer(&whole, 1);
    assert!(picture.is_estimated);
    let columns = &picture.lanes[0].columns;
    assert!(columns[..90].iter().any(|column| !column.is_empty()), "what has come");
    assert!(columns[120..].iter().all(|column| column.is_empty()), "and nothing else");
}
