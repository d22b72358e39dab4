use std::f64::consts::TAU;
use std::sync::{Arc, Mutex};

use grebe_frame::Complex;
use grebe_testing::Rng;

use super::*;
use crate::data::feed::ScopeFeed;
use crate::data::status::SourceStatus;
use crate::model::options::{CutBand, ViewOptions};
use crate::testing::complex_batch;

/// A second of 200 kS/s: a tone of -20 dBFS at 20 kHz from 0.5 s to 0.55 s, over noise of -60 dBFS.
fn model(mut options: ViewOptions) -> ViewModel {
    let (mut feed, link) = ScopeFeed::new(16 << 20);
    let mut rng = Rng::with_seed(4);
    let noise: Vec<f64> = (0..400_000).map(|_| (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0).collect();
    for first in (0..200_000).step_by(2_000) {
        // The recording begins with its sample 7,000.
        let value = |index: u64| {
            let (sin, cos) = ((index as f64 * 0.1).fract() * TAU).sin_cos();
            let tone = if (107_000..117_000).contains(&index) { 0.1 } else { 0.0 };
            let at = (index - 7_000) as usize;
            let noise = |at: usize| noise[at] * 1e-3 / 2f64.sqrt();
            Complex { re: (tone * cos + noise(2 * at)) as f32, im: (tone * sin + noise(2 * at + 1)) as f32 }
        };
        feed.ingest(&complex_batch(first + 7_000, 1, 2_000, 200e3, value)).unwrap();
    }
    feed.finish();
    (options.initial.waterfall, options.initial.span) = (true, Some(1.0));
    let mut model = ViewModel::new(link, options, crate::png::encode);
    look(&mut model);
    model
}

fn options() -> ViewOptions {
    ViewOptions::new(|| SourceStatus {
        name: "/data/a night.sigmf-meta".into(),
        is_recording: true,
        ..SourceStatus::default()
    })
}

fn look(model: &mut ViewModel) {
    for _ in 0..3 {
        model.request(400);
        model.refresh();
    }
}

#[test]
fn a_box_of_the_options_is_measured_snaps_to_its_burst_and_becomes_a_recording() {
    let mut of = options();
    of.initial.time_frequency_box = Some([0.45, 0.6, 10e3, 30e3]);
    let saved: Arc<Mutex<Option<CutBand>>> = Arc::default();
    let sink = saved.clone();
    of.export = Some(Box::new(move |path, extract, band| {
        let band = band.expect("a box");
        let held = extract.runs[0].first_sample_index;
        assert!(held < band.samples.start, "what is beside the box is there for the filter");
        *sink.lock().unwrap() = Some(band);
        Ok(path.into())
    }));
    let mut model = model(of);
    assert_eq!(model.controls.boxed.unwrap().samples, [97_000, 127_000]);
    let (title, rows) = model.box_rows();
    let cells = &rows[0].cells;
    assert_eq!(
        (title.as_str(), &cells[1..4]),
        ("box", &["150 ms", "20 kHz", "20 kHz"].map(String::from)[..])
    );
    assert!(
        cells[4].starts_with("-24.7") && cells[5].starts_with("-20.0") && cells[6] == "20 kHz",
        "{cells:?}"
    );
    assert_eq!(cells[9], "grebe convert '/data/a night.sigmf-meta' box.sigmf-meta --box 0.45,0.6,10k,30k");
    let mark = model.waterfall_marks().pop().unwrap();
    assert!(mark.words.starts_with("150 ms, 20 kHz, 20 kHz, -24.7"), "{mark:?}");
    model.act(Action::Box(BoxDeed::Snap));
    look(&mut model);
    let TimeFrequencyBox { samples: [from, to], frequencies: [low, high] } = model.controls.boxed.unwrap();
    assert!(from.abs_diff(107_000) < 2_048 && to.abs_diff(117_000) < 2_048, "{from} {to}");
    assert!(low < 20e3 && high > 20e3 && high - low < 2e3, "{low} {high}");
    let cells = &model.box_rows().1[0].cells;
    assert!(cells[4].starts_with("-20.") || cells[4].starts_with("-19.9"), "{cells:?}");
    model.act(Action::Box(BoxDeed::Cut));
    look(&mut model);
    let band = saved.lock().unwrap().clone().expect("it was saved");
    assert_eq!((band.samples, band.low_hz, band.high_hz), (from..to, low, high));
}

#[test]
fn a_box_is_made_by_keys_and_removed_by_escape_after_what_is_open() {
    let mut model = model(options());
    model.act(Action::Box(BoxDeed::Snap));
    assert!(
        model.seen.hud.notice.is_none() && model.open.message.as_ref().unwrap().0.starts_with("no box yet")
    );
    model.act(Action::Choices(crate::model::setting::Setting::Box));
    model.act(Action::Choose(0));
    assert!(model.controls.boxed.is_none() && model.controls.cursors.times.is_some(), "cursors first");
    assert!(model.list().is_none(), "enter must not repeat a command");
    look(&mut model);
    model.controls.markers = Some([0.2, 0.05]);
    model.act(Action::Box(BoxDeed::BetweenMarks));
    let made = model.controls.boxed.unwrap();
    assert_eq!(made.frequencies, [10e3, 40e3]);
    assert_eq!(made.samples[0..2].iter().map(|it| it % 100).sum::<u64>(), 0, "{made:?}");
    model.act(Action::Choices(crate::model::setting::Setting::Box));
    model.act(Action::Back);
    assert!(model.controls.boxed.is_some(), "the list is closed first");
    model.act(Action::Back);
    assert_eq!(model.controls.boxed, None);
    // A line is not a box.
    model.act(Action::DrawBox(AnnotatedPart { times: [0.5, 0.5], frequencies: Some([0.1, 0.4]) }));
    assert_eq!(model.controls.boxed, None);
}

#[test]
fn the_like_of_a_box_is_sought_by_band_and_duration() {
    use crate::data::finding::{Finder, Finding};
    let mut of = options();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let asks = asked.clone();
    of.finder = Some(Finder::new(move |sought| {
        asks.lock().unwrap().push(sought.words);
        Finding::begin().1
    }));
    of.initial.time_frequency_box = Some([0.45, 0.6, 10e3, 30e3]);
    let mut model = model(of);
    model.act(Action::Box(BoxDeed::FindLike));
    let words = "burst --band 10k,30k --longer 0.075000000s --shorter 0.300000000s";
    assert_eq!(*asked.lock().unwrap(), [words]);
    assert_eq!(model.open.found.as_ref().unwrap().words, words);
}

#[test]
fn paths_are_words_of_a_shell() {
    for (path, word) in
        [("file:/a/b.wav", "/a/b.wav"), ("it's.wav", r"'it'\''s.wav'"), ("x.cu8?rate=1M", "'x.cu8?rate=1M'")]
    {
        assert_eq!(quoted(path), word);
    }
}
