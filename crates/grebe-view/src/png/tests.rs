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
    let picture =
        render_png(&link, options(), &PngOptions::new(&path), |png| std::fs::write(&path, png)).unwrap();
    assert_eq!(picture.channels.len(), 2);
    assert!(fs::read(&path).unwrap().starts_with(b"\x89PNG"));
    let nowhere = folder.join("no/such.png");
    let missing =
        render_png(&link, options(), &PngOptions::new(&nowhere), |png| std::fs::write(&nowhere, png));
    assert!(matches!(missing, Err(Error::Write { .. })), "{missing:?}");
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["scope.png"]);
    fs::remove_dir_all(&folder).unwrap();
}

/// No driver draws these: they are the same on every machine.
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
        (options.theme, options.span) = (Some(theme), Some(2.0));
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
