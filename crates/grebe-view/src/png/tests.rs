//! PNG files, without a display.

use std::fs;
use std::path::Path;

use super::*;
use crate::data::feed::ScopeFeed;
use crate::data::status::SourceStatus;
use crate::model::channel::ThemeChoice;
use crate::testing;

fn options() -> ViewOptions {
    ViewOptions::new(|| SourceStatus { name: "test".into(), ..SourceStatus::default() })
}

#[test]
fn an_ended_stream_is_drawn_at_once_and_nothing_half_written_is_left() {
    let folder = std::env::temp_dir().join(format!("grebe-view-png-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (mut feed, link) = ScopeFeed::new(1 << 20);
    feed.ingest(&testing::sine_batch(0, 2, 2000, 1e3)).unwrap();
    feed.finish();
    let path = folder.join("scope.png");
    let picture = render_png(&link, options(), &PngOptions::new(&path), |png| std::fs::write(&path, png))
        .unwrap()
        .picture;
    assert_eq!(picture.lanes.len(), 2);
    assert!(fs::read(&path).unwrap().starts_with(b"\x89PNG"));
    let nowhere = folder.join("no/such.png");
    let missing =
        render_png(&link, options(), &PngOptions::new(&nowhere), |png| std::fs::write(&nowhere, png));
    assert!(matches!(missing, Err(Error::Write { .. })), "{missing:?}");
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["scope.png"]);
    fs::remove_dir_all(&folder).unwrap();
}

/// No driver is involved, so the images are the same on every machine.
#[test]
fn pictures_are_as_they_were_designed() {
    let mut results = egui_kittest::SnapshotResults::new();
    for (theme, name) in [(ThemeChoice::Dark, "dark"), (ThemeChoice::Light, "light")] {
        let (mut feed, link) = ScopeFeed::new(1 << 20);
        for block in (0..40).filter(|block| !(20..24).contains(block)) {
            feed.ingest(&testing::sine_batch(block * 50, 3, 50, 1e3)).unwrap();
        }
        feed.finish();
        let mut options = options();
        (options.initial.theme, options.initial.span) = (Some(theme), Some(2.0));
        let mut model = ViewModel::new(link, options, encode);
        for (keys, what) in [("v", "traces"), ("mc", "trigger"), ("fw", "spectrum")] {
            for key in keys.chars() {
                model.act(crate::model::keys::char_action(key).unwrap());
            }
            model.request(raster::plot_columns(640));
            model.refresh();
            let png = encode(&mut model, 640, 420).unwrap();
            let image = image::load_from_memory(&png).unwrap().to_rgba8();
            results.add(egui_kittest::try_image_snapshot(&image, format!("png_{what}_{name}")));
        }
    }
}

#[test]
fn a_silent_source_is_an_error_that_names_the_file() {
    let (_feed, link) = ScopeFeed::new(1 << 20);
    let png = PngOptions { wait: Duration::from_millis(20), ..PngOptions::new("never.png") };
    let error = render_png(&link, options(), &png, |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("never.png"), "{error}");
    assert!(!Path::new("never.png").exists());
}

/// A chirp from 1 kHz to 400 kHz in a second at 1 MS/s, with one glitch near its start. The source pauses after
/// `pause_after` of its 100 blocks.
fn drawn(pause_after: u64) -> Picture {
    let (mut feed, link) = ScopeFeed::new(64 << 20);
    let chirp = |_: usize, index: u64| {
        let t = index as f64 * 1e-6;
        let phase = std::f64::consts::TAU * (1e3 * t + (400e3 - 1e3) / 2.0 * t * t);
        if index == 12_345 { 20_000 } else { (phase.sin() * 2300.0).round() as i16 }
    };
    let source = std::thread::spawn(move || {
        for block in 0..100 {
            feed.ingest(&testing::batch(block * 10_000, 1, 10_000, 1e6, chirp)).unwrap();
            if block == pause_after {
                std::thread::sleep(Duration::from_millis(250));
            }
        }
    });
    let mut options = options();
    (options.initial.spectrum, options.initial.span) = (true, Some(0.1));
    let day = Duration::from_secs(86_400);
    let png = PngOptions { measure: true, after: day, ..PngOptions::new("one.png") };
    let picture = render_png(&link, options, &png, |_| Ok(())).unwrap().picture;
    source.join().unwrap();
    picture
}

#[test]
fn a_file_has_one_answer_however_fast_it_is_read() {
    use grebe_scope::Quantity;
    let first = drawn(3);
    let told = |picture: &Picture| {
        let channels = &picture.lanes[0].columns;
        let spectrum = picture.spectrum.as_ref().unwrap().channels[0].clone();
        (channels.clone(), picture.measured.clone(), spectrum, picture.trigger, picture.triggers.clone())
    };
    for pause_after in [50, 98, 99] {
        assert_eq!(told(&drawn(pause_after)), told(&first), "paused after {pause_after}");
    }
    let measured = &first.measured[0];
    assert_eq!((measured.samples, measured.level_samples), (100_000, 100_000));
    // The middle of the transform lies 4096 samples before the right edge.
    let line = first.spectrum.as_ref().unwrap().channels[0].peaks[0].line / 8192.0 * 1e6;
    let truth = 1e3 + (400e3 - 1e3) * (first.right_index() - 4096.0) * 1e-6;
    assert!((line - truth).abs() < 2e3 && first.right_index() > 900_000.0, "{line}, not {truth}");
    assert!((measured.set.get(Quantity::PeakToPeak).unwrap() - 4600.0).abs() < 10.0);
    assert!(first.trigger.is_some_and(|trigger| trigger.searched_samples == 1_000_000));
}

#[test]
fn what_is_over_is_awaited_until_it_is_exact_and_what_runs_is_not() {
    let png = PngOptions::new("x.png");
    let (after, settle) = (png.after, png.settle);
    assert!(after < settle);
    let mut picture = Picture { is_ended: true, is_estimated: true, ..Picture::waiting() };
    assert!(!is_reached(&picture, after, &png) && is_reached(&picture, settle, &png));
    picture.is_estimated = false;
    assert!(is_reached(&picture, Duration::ZERO, &png));
    picture.is_ended = false;
    assert!(!is_reached(&picture, Duration::ZERO, &png) && is_reached(&picture, after, &png));
}
