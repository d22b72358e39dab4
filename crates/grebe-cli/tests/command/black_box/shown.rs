//! A ring in the scope.

use std::path::Path;

use serde_json::Value;

use super::{Recorder, SAWS, folder};
use crate::serve::served::ssh_in;
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
