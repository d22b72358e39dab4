//! A recording larger than a scope's memory is shown from disk: exactly, with or without a summary.

use std::fs;
use std::path::Path;

#[cfg(unix)]
use crate::support::{finish, grebe};
use crate::support::{run, text};
use serde_json::Value;

/// 70 million samples, more than a scope holds: a ramp of small steps, with one spike up and one down.
const SAMPLES: usize = 70_000_000;

fn write(path: &Path, spike: i16) {
    let mut bytes = Vec::with_capacity(SAMPLES * 2);
    for at in 0..SAMPLES {
        let sample = match at {
            12_345_678 => spike,
            33_333_333 => -20_000,
            _ => (at % 1000) as i16,
        };
        bytes.extend_from_slice(&sample.to_le_bytes());
    }
    fs::write(path, bytes).unwrap();
}

/// The picture of the whole recording; its measurements, and the messages.
fn picture(name: &str, png: &Path) -> (Value, String) {
    let output = run(&["view", name, "--png", png.to_str().unwrap(), "--json"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(fs::read(png).unwrap().starts_with(b"\x89PNG"));
    (serde_json::from_slice(&output.stdout).unwrap(), said)
}

#[test]
fn a_picture_of_a_large_file_is_exact_and_leaves_a_summary_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let (data, png) = (folder.path().join("x.s16"), folder.path().join("x.png"));
    let summary = folder.path().join("x.s16.grebe-summary");
    let name = format!("{}?rate=1M", data.display());
    write(&data, 30_000);
    let check = |told: &Value, spike: f64| {
        assert_eq!(told["exact"], true);
        let channel = &told["channels"][0];
        assert_eq!(
            (channel["max"].as_f64(), channel["min"].as_f64()),
            (Some(spike), Some(-20_000.0)),
            "{channel}"
        );
        assert_eq!(channel["level_samples"], SAMPLES);
        assert!((channel["mean"].as_f64().unwrap() - 499.5).abs() < 0.01, "{channel}");
    };
    let (told, said) = picture(&name, &png);
    check(&told, 30_000.0);
    assert!(said.contains("an exact picture needs the file"), "{said}");
    let first = fs::read(&png).unwrap();
    let bytes = fs::metadata(&summary).unwrap().len();
    assert!((1..=SAMPLES as u64 * 2 / 50).contains(&bytes), "{bytes}: at most 2 %");

    let (told, said) = picture(&name, &png);
    check(&told, 30_000.0);
    assert!(!said.contains("an exact picture needs the file"), "{said}");
    assert_eq!(fs::read(&png).unwrap(), first, "the same picture");

    // Another file of the same length, and a summary that was damaged.
    write(&data, 25_000);
    check(&picture(&name, &png).0, 25_000.0);
    let mut damaged = fs::read(&summary).unwrap();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    fs::write(&summary, damaged).unwrap();
    check(&picture(&name, &png).0, 25_000.0);
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 3, "the data, the picture, the summary");
}

#[test]
fn a_picture_of_the_received_part_is_exact_to_the_sample() {
    let folder = tempfile::tempdir().unwrap();
    let (data, png) = (folder.path().join("x.s16"), folder.path().join("x.png"));
    let name = format!("{}?rate=1M", data.display());
    write(&data, 30_000);
    let until = |after: &str, more: &[&str]| {
        let arguments = ["view", &name, "--png", png.to_str().unwrap(), "--json", "--after", after];
        let output = run(&[&arguments, more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(told["exact"], true, "{told}");
        let channel = &told["channels"][0];
        let extreme = |name: &str| channel[name].as_f64().unwrap();
        (extreme("min"), extreme("max"), told["span_s"].as_f64().unwrap())
    };
    // Around the spike of sample 12,345,678: of all that came, and of the last millisecond of it.
    for more in [&[][..], &["--span", "1ms"]] {
        let is_all = more.is_empty();
        let (_, before, span_s) = until("12.345678s", more);
        let (_, with, _) = until("12.345679s", more);
        assert_eq!((before, with), (999.0, 30_000.0), "{more:?}");
        let expected_s = if is_all { 12.345_678 } else { 0.001 };
        assert!((span_s / expected_s - 1.0).abs() < 1e-3, "{span_s}");
    }
    assert_eq!(until("33.333333s", &[]).0, 0.0, "the spike down comes next");
    let refused = run(&["view", &data.display().to_string(), "--png", "-", "--after", "1s"]);
    assert!(text(&refused.stderr).contains("rate"), "{}", text(&refused.stderr));
}

#[test]
fn a_folder_shows_its_newest_recording() {
    let folder = tempfile::tempdir().unwrap();
    let png = folder.path().join("x.png");
    let view = || run(&["view", folder.path().to_str().unwrap(), "--png", png.to_str().unwrap()]);
    let said = text(&view().stderr);
    assert!(said.contains("without a recording in it"), "{said}");
    for name in ["ecg.sigmf-meta", "ecg.sigmf-data"] {
        fs::copy(crate::support::example(name), folder.path().join(name)).unwrap();
    }
    let output = view();
    let said = text(&output.stderr);
    assert!(output.status.success() && said.contains("ecg.sigmf-meta is the newest recording"), "{said}");
    assert!(fs::read(&png).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn a_waterfall_of_a_large_file_says_of_how_many_spectra_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (data, png) = (folder.path().join("x.s16"), folder.path().join("x.png"));
    write(&data, 30_000);
    let name = format!("{}?rate=1M", data.display());
    let output = run(&["view", &name, "--png", png.to_str().unwrap(), "--json", "--waterfall"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["exact"], true);
    // 128 rows of some 546,875 samples, in transforms of 4096; 64 of each row at least. Rows of the summary, as far
    // as it is made, have all of theirs, of 1024 samples that half overlap.
    let number = |name: &str| told["waterfall"][name].as_u64().unwrap();
    let (made, all) = (number("spectra"), number("of"));
    assert!((127 * 134..=128 * 1070).contains(&all), "{all}");
    assert!((127 * 64..=all).contains(&made), "{made}");
}

#[cfg(unix)]
#[test]
fn a_killed_or_stopped_summary_leaves_the_recording_valid() {
    use std::os::unix::process::CommandExt;
    let folder = tempfile::tempdir().unwrap();
    let (data, png) = (folder.path().join("x.s16"), folder.path().join("x.png"));
    write(&data, 30_000);
    let name = format!("{}?rate=1M", data.display());
    for signal in ["-KILL", "-INT"] {
        let mut viewer = grebe(&["view", &name, "--png", png.to_str().unwrap()]);
        let viewer = viewer.process_group(0).stderr(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(120));
        crate::support::signal(signal, viewer.id());
        finish(viewer);
    }
    // Two at once.
    let viewers: Vec<_> = ["a.png", "b.png"]
        .map(|png| {
            let png = folder.path().join(png);
            let mut viewer = grebe(&["view", &name, "--png", png.to_str().unwrap()]);
            viewer.stderr(std::process::Stdio::null()).spawn().unwrap()
        })
        .into_iter()
        .map(finish)
        .collect();
    assert!(viewers.iter().all(|viewer| viewer.status.success()));
    let [a, b] = ["a.png", "b.png"].map(|png| fs::read(folder.path().join(png)).unwrap());
    assert!(a == b);
    assert_eq!(picture(&name, &png).0["exact"], true);
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 5, "the data, three pictures, the summary, and nothing of who was killed");
}
