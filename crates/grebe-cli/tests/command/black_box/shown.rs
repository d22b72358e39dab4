//! A ring in the scope.

use serde_json::Value;

use super::{Recorder, SAWS, folder};
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
