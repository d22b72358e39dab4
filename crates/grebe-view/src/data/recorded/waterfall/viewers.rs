//! Several viewers of one recording.

use grebe_frame::SampleFormat;
use grebe_scope::{PowerTransform, Window};

use super::rows::{SAVED_TIME, SHARED_TIME};
use super::tests::{LENGTH, LINES, NO_TIME, SIZE, chirp_and_bursts, fake, settings};
use super::zooms::levels_of_row;
use super::*;
use crate::data::recorded::samples::Reader;
use crate::data::recorded::tests::Fake;

/// A window, with a name for errors.
type Wanted = (&'static str, Range<f64>);

/// All of it, a middle part, and the same zoom elsewhere.
fn windows() -> [Wanted; 3] {
    let all = LENGTH as f64;
    [("all", 0.0..all), ("middle", all / 4.0..all * 3.0 / 4.0), ("start", 0.0..all / 2.0)]
}

fn look(
    waterfall: &mut WideWaterfall<i16>,
    fake: &mut Fake,
    viewer: u64,
    window: &Range<f64>,
) -> WaterfallView {
    let disk = &mut Disk { recording: fake, reader: &mut Reader::default() };
    waterfall.view(disk, Viewer(viewer), settings(), (0, SIZE, 1000), window.clone(), NO_TIME).unwrap()
}

/// The finished waterfalls of viewers in turn, each with a window, and the bytes that were read.
fn finished(windows: &[Wanted]) -> (Vec<WaterfallView>, u64) {
    let mut fake = fake(SampleFormat::I16, vec![chirp_and_bursts()], &[(0, LENGTH as u64)]);
    let mut waterfall = WideWaterfall::default();
    for _ in 0..10_000 {
        let mut is_exact = true;
        let looks = (0..).zip(windows).map(|(viewer, (_, window))| {
            let view = look(&mut waterfall, &mut fake, viewer, window);
            is_exact &= waterfall.is_exact();
            view
        });
        let views = looks.collect();
        if is_exact {
            return (views, fake.shared.lock().unwrap().read_bytes);
        }
    }
    panic!("no end");
}

#[test]
fn windows_of_several_viewers_become_what_each_alone_becomes() {
    let samples = chirp_and_bursts();
    let mut transform = PowerTransform::real(SIZE, Window::Rectangular).unwrap();
    transform.set_full_scale(32_768.0);
    let windows = windows();
    let (together, bytes) = finished(&windows[..2]);
    let mut bytes_alone = 0;
    for (view, wanted) in together.iter().zip(&windows) {
        let (name, window) = wanted;
        let (alone, own_bytes) = finished(std::slice::from_ref(wanted));
        assert!(view.cells == alone[0].cells && view.sampled == alone[0].sampled, "{name}");
        bytes_alone += own_bytes;
        let hop = (window.end - window.start) as usize / ROWS;
        let newest = (window.end as usize).div_ceil(hop) - 1;
        for back in 0..ROWS {
            let row = (newest - back) * hop..((newest - back + 1) * hop).min(LENGTH);
            let truth = levels_of_row(&mut transform, &samples, row);
            for (cell, (is, should)) in view.cells[back * LINES..][..LINES].iter().zip(truth).enumerate() {
                let is_same = (is - should).abs() < 0.02 || should < -110.0;
                assert!(is_same, "{name}, row {back}, cell {cell}: {is}, {should}");
            }
        }
    }
    assert_eq!(bytes, bytes_alone, "no row is made twice");
    // The same window costs nothing more, nor do the rows that two windows share.
    let (_, same) = finished(&[windows[1].clone(), windows[1].clone()]);
    let (_, middle) = finished(&windows[1..2]);
    let (_, both) = finished(&windows[1..]);
    assert_eq!(same, middle);
    assert!(both < middle * 8 / 5, "{both} for {middle}: half of each is the other's");
}

#[test]
fn rows_of_viewers_that_left_are_dropped_and_all_rows_are_bounded() {
    let mut fake = fake(SampleFormat::I16, vec![chirp_and_bursts()], &[(0, LENGTH as u64)]);
    let (mut waterfall, windows) = (WideWaterfall::default(), windows());
    for (viewer, (_, window)) in (0..).zip(&windows) {
        look(&mut waterfall, &mut fake, viewer, window);
    }
    assert_eq!((waterfall.looks.len(), waterfall.sets.len()), (3, 2), "two have the same zoom");
    waterfall.forget(Viewer(1));
    assert_eq!((waterfall.looks.len(), waterfall.sets.len()), (2, 2));
    waterfall.forget(Viewer(0));
    assert_eq!((waterfall.looks.len(), waterfall.sets.len()), (1, 1));
    // Another zoom replaces that of the same viewer.
    look(&mut waterfall, &mut fake, 2, &windows[0].1);
    assert_eq!((waterfall.looks.len(), waterfall.sets.len()), (1, 1));
    assert_eq!(waterfall.sets[0].key, waterfall.looks[0].key);
    // More viewers than there is memory for: each with a zoom of its own.
    let row_bytes = waterfall.looks[0].key.row_bytes();
    let viewers = (LOOKS_BYTES / (ROWS * row_bytes)) as u64 + 10;
    for viewer in 0..viewers {
        let window = 0.0..LENGTH as f64 - (viewer % 50) as f64 * (10 * ROWS) as f64;
        look(&mut waterfall, &mut fake, viewer, &window);
    }
    let bytes: usize = waterfall.looks.iter().map(Look::bytes).sum();
    assert!(bytes <= LOOKS_BYTES && bytes > LOOKS_BYTES / 2, "{bytes}");
    assert_eq!(waterfall.looks.last().unwrap().viewer, Viewer(viewers - 1));
}

#[test]
fn viewers_share_the_time_and_a_picture_to_be_saved_has_more() {
    let (one, four, saved) = (Most::of(false, 0), Most::of(false, 3), Most::of(true, 3));
    assert_eq!((one.spread, one.blocks), (SHARED_TIME, SHARED_TIME));
    assert_eq!((four.spread, four.blocks), (SHARED_TIME / 4, SHARED_TIME / 4));
    assert_eq!((saved.spread, saved.blocks), (SAVED_TIME, SHARED_TIME / 4));
}
