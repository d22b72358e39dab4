//! A ring in the scope.

use std::path::Path;
use std::time::{Duration, Instant};

use grebe::frame::{AnnotationEdit, StreamAnnotation};
use grebe_serve::{RemoteViewer, connect};
use grebe_view::{Picture, ScopeLink, Sought, Viewport};
use serde_json::Value;

use super::{PERIODS, Recorder, SAWS, file_of, folder, save};
use crate::serve::served::{serve, ssh_in};
use crate::support::{Good, run};

#[test]
fn a_picture_of_a_ring_is_of_all_its_parts_while_it_is_recorded() {
    let folder = folder();
    let (ring, png) = (folder.path().join("ring"), folder.path().join("ring.png"));
    let mut recorder = Recorder::start(SAWS, &ring, &["--ring", "4s"]);
    // Three whole seconds, and the one that is written.
    recorder.wait_until(|parts| parts.len() >= 4);
    let (ring, png) = (ring.to_str().unwrap(), png.to_str().unwrap());
    let shown = run(&["view", ring, "--waterfall", "--png", png, "--json", "--no-session"]).good();
    let told: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!((&told["exact"], told["lost_samples"].as_u64()), (&Value::Bool(true), Some(0)), "{told}");
    for channel in told["channels"].as_array().unwrap() {
        let samples = channel["level_samples"].as_u64().unwrap();
        assert!((6_000_000..16_000_000).contains(&samples), "{channel}");
        let (min, max) = (channel["min"].as_f64().unwrap(), channel["max"].as_f64().unwrap());
        assert!(min < -16_000.0 && max > 16_000.0, "{channel}");
    }
    // In transforms of 4096.
    assert!(told["waterfall"]["of"].as_u64() >= Some(6_000_000 / 4096), "{}", told["waterfall"]);
    recorder.interrupt();
}

/// The next picture of a remote viewer.
fn picture(link: &ScopeLink) -> Picture {
    let mut viewport = Viewport::latest(100);
    viewport.span = Some(1.0);
    link.request(viewport);
    let began = Instant::now();
    loop {
        if let Some(picture) = link.take() {
            return picture;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no picture comes");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn find(viewer: &RemoteViewer, words: &str) -> (Vec<u64>, String) {
    let finding = viewer.finder().unwrap().find(Sought { words: words.to_owned(), scales: Vec::new() });
    let (began, mut found) = (Instant::now(), Vec::new());
    loop {
        if let Some(news) = finding.take_news() {
            found.extend(news.events.iter().map(|event| event.index));
            if let Some(ended) = news.ended {
                return (found, ended);
            }
        }
        assert!(began.elapsed() < Duration::from_secs(60), "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_served_ring_is_all_of_its_parts_followed_searched_and_annotated() {
    let folder = folder();
    let ring = folder.path().join("ring");
    let mut recorder = Recorder::start(SAWS, &ring, &["--ring", "10s"]);
    recorder.wait_until(|parts| parts.len() >= 4);
    let served = serve(&[ring.to_str().unwrap(), "--control"]);
    let link = served.link.replace(&served.token, served.control.as_ref().unwrap());
    let (link, mut viewer) = connect(&link.parse().unwrap(), "a test", 60.0, || false).unwrap();
    let first = picture(&link);
    let all = first.oldest_index..first.next_index;
    assert!(all.end - all.start >= 3 * PART_SAMPLES, "{all:?}");
    // Of each part: the saw of the second channel starts anew every 3,125 samples.
    let rate_hz = 2e6;
    let [from, to] =
        [all.end - 5 * PART_SAMPLES / 2, all.end - PART_SAMPLES / 2].map(|it| it as f64 / rate_hz);
    let (found, ended) =
        find(&viewer, &format!("edge --slope falling --level 0 --channels 2 --from {from}s --to {to}s"));
    assert!(ended.starts_with("searched the given times, 2 s"), "{ended}");
    assert_eq!(found.len() as u64, 2 * PART_SAMPLES / PERIODS[1], "{ended}");
    assert!(found.windows(2).all(|pair| pair[1] - pair[0] == PERIODS[1]), "{found:?}");
    // In the middle of the ring, and in the part that is recorded.
    let annotator = viewer.take_controls().annotator.expect("a viewer with control annotates");
    let newest = picture(&link).next_index - 1_000;
    let middle = newest - 3 * PART_SAMPLES / 2;
    for (first_sample_index, label) in [(middle, "middle"), (newest, "newest")] {
        let label = Some(label.to_owned());
        let note = StreamAnnotation { first_sample_index, length_samples: 100, label, ..Default::default() };
        let said = (annotator.edit)(AnnotationEdit::Add(note)).recv().unwrap();
        assert!(said.starts_with("annotations written into") && said.contains("ring_"), "{said}");
    }
    // All of the ring, which has less than an hour.
    let (status, saved, said) = save(&ring, &["--last", "1h"]);
    assert_eq!(status, Some(4), "{said}");
    let file = file_of(&saved);
    let labels = file.stream_annotations().into_iter().map(|it| (it.first_sample_index, it.label.unwrap()));
    assert_eq!(labels.collect::<Vec<_>>(), [(middle, "middle".to_owned()), (newest, "newest".to_owned())]);
    // All of these parts were replaced.
    let began = Instant::now();
    while picture(&link).oldest_index < all.end {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not follow the recorder");
        std::thread::sleep(Duration::from_millis(200));
    }
    recorder.interrupt();
}

#[test]
fn a_ring_is_shown_by_ssh_and_the_newest_recording_of_another_folder() {
    let folder = folder();
    let ring = folder.path().join("ring");
    let mut recorder = Recorder::start(SAWS, &ring, &["--ring", "4s"]);
    recorder.wait_until(|parts| parts.len() >= 4);
    let (ssh, _) = ssh_in(folder.path());
    let png = folder.path().join("ring.png");
    let there = ["--ssh", ssh.to_str().unwrap(), "--remote-path", env!("CARGO_BIN_EXE_grebe")];
    let shown = |path: &Path| -> Value {
        let uri = format!("ssh://me@mast/{}", path.display());
        let look = ["view", &uri, "--png", png.to_str().unwrap(), "--json", "--span", "2500ms"];
        serde_json::from_slice(&run(&[&look[..], &there].concat()).good().stdout).unwrap()
    };
    let told = shown(&ring);
    assert_eq!(told["lost_samples"].as_u64(), Some(0), "{told}");
    for channel in told["channels"].as_array().unwrap() {
        let samples = channel["level_samples"].as_u64().unwrap();
        assert!(samples.abs_diff(5 * PART_SAMPLES / 2) < 10_000, "{channel}");
    }
    recorder.interrupt();
    let example = crate::support::example("ecg.sigmf-meta");
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    for extension in ["sigmf-meta", "sigmf-data"] {
        std::fs::copy(example.with_extension(extension), other.join("ecg").with_extension(extension))
            .unwrap();
    }
    assert_eq!(shown(&other)["sample_rate_hz"], 360.0);
}

/// A part has a second.
const PART_SAMPLES: u64 = 2_000_000;
