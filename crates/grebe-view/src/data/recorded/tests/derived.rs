//! Parts of complex channels in windows of more samples than are held.

use super::*;
use crate::data::lane::Part;

/// Extremes and mean of the finite values.
fn values(samples: &[f32]) -> ((f32, f32), f64) {
    let finite = samples.iter().filter(|sample| sample.is_finite());
    let sum: f64 = finite.clone().map(|&sample| f64::from(sample)).sum();
    (extremes(samples), sum / finite.count() as f64)
}

#[test]
fn parts_of_a_wide_window_are_estimated_and_then_exact() {
    let samples = 3_000_000;
    let (mut core, channels, shared) = core(SampleFormat::Cf32, 1, samples);
    let of = |component| channels[0].iter().skip(component).step_by(2).copied().collect::<Vec<f32>>();
    let (i, q) = (of(0), of(1));
    let magnitude: Vec<f32> = i.iter().zip(&q).map(|(i, q)| i.hypot(*q)).collect();
    // The gap separates the samples on its two sides.
    let mut frequency = vec![0.0; samples];
    for run in [0..GAP_AT, GAP_AT..samples] {
        grebe_scope::instantaneous_frequency(None, &i[run.clone()], &q[run.clone()], &mut frequency[run]);
    }
    let lanes = LaneMask::NONE.toggled(0).part_toggled(Part::I).part_toggled(Part::Q);
    let lanes = lanes.part_toggled(Part::Magnitude).part_toggled(Part::Frequency);
    let viewport = Viewport { span: Some(3.4), lanes, ..Viewport::latest(100) };
    let mut picture = core.answer(&viewport, 1);
    assert!(picture.is_estimated, "not all of it at once");
    let filled = |picture: &Picture| {
        picture.lanes.iter().map(|lane| lane.columns.iter().filter(|it| !it.is_empty()).count()).min()
    };
    assert!(filled(&picture) > Some(60), "an estimate of all of it");
    let mut pictures = 1;
    while core.refresh() && pictures < 10_000 {
        picture = core.answer(&viewport, 1 + pictures);
        pictures += 1;
    }
    assert!(!picture.is_estimated, "exact after {pictures} pictures");
    assert_eq!(picture.lanes.len(), 2);
    let position = |index: u64| match index.saturating_sub(1000) {
        at if at < GAP_AT as u64 => at as usize,
        at => (at.saturating_sub(MISSING).max(GAP_AT as u64) as usize).min(samples),
    };
    for (lane, all) in picture.lanes.iter().zip([&magnitude, &frequency]) {
        for (column, at) in lane.columns.iter().zip(picture.first_column..) {
            let Ok(number) = u64::try_from(at) else { continue };
            let span = picture.grid.span(number);
            let own = &all[position(span.start)..position(span.end)];
            if own.is_empty() {
                assert!(column.is_empty(), "{at}");
                continue;
            }
            let ((min, max), _) = values(own);
            let near = |a: f32, b: f32| (a - b).abs() <= 2e-6 * b.abs().max(1.0);
            assert!(
                near(column.min, min) && near(column.max, max),
                "{:?} {at} {column:?} {min} {max}",
                lane.lane
            );
        }
        let (_, mean) = values(all);
        assert!((lane.mean - mean).abs() < 1e-4 * mean.abs().max(1.0), "{} {mean}", lane.mean);
    }
    // Nothing is read again for the same picture.
    shared.lock().unwrap().read_bytes = 0;
    core.answer(&viewport, 1 + pictures);
    assert_eq!(shared.lock().unwrap().read_bytes, 0);
}

#[test]
fn viewers_with_other_zooms_become_exact_beside_each_other() {
    let (mut core, ..) = core(SampleFormat::Cf32, 1, 3_000_000);
    let lanes = LaneMask::NONE.toggled(0).part_toggled(Part::I).part_toggled(Part::Q);
    let lanes = lanes.part_toggled(Part::MagnitudeDb);
    let viewports = [3.4, 2.9].map(|span| Viewport { span: Some(span), lanes, ..Viewport::latest(100) });
    let mut are_exact = [false; 2];
    for number in 0..1000 {
        for (at, viewport) in viewports.iter().enumerate() {
            are_exact[at] = !core.answer_for(Viewer(at as u64), viewport, number).is_estimated;
        }
        if are_exact == [true; 2] {
            return;
        }
    }
    panic!("{are_exact:?}");
}

const GAP_AT: usize = 1_500_007;
