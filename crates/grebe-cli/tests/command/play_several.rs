//! Several recordings that are played in step: as channels of one stream, or each to a destination of its own.

use std::fs;
use std::path::Path;

use crate::support::{run, text};
use grebe::recording::SampleFile;
use serde_json::json;

/// A recording of `ri16_le` at 1 kS/s that begins this many milliseconds after the origin, and counts up from there.
fn recorded(folder: &Path, name: &str, begin_ms: Option<u64>, samples: std::ops::Range<i16>) -> String {
    let datetime = begin_ms.map(|ms| format!("2026-01-02T03:04:05.{ms:03}Z"));
    let capture = json!({ "core:sample_start": 0, "core:global_index": 40, "core:datetime": datetime });
    let global = json!({ "core:datatype": "ri16_le", "core:sample_rate": 1000, "core:version": "1.2.0" });
    let meta = json!({ "global": global, "captures": [capture], "annotations": [] });
    fs::write(
        folder.join(format!("{name}.sigmf-data")),
        samples.flat_map(i16::to_le_bytes).collect::<Vec<u8>>(),
    )
    .unwrap();
    let path = folder.join(format!("{name}.sigmf-meta"));
    fs::write(&path, meta.to_string()).unwrap();
    path.display().to_string()
}

fn channels(path: &str) -> Vec<Vec<i16>> {
    let mut file = SampleFile::open(path).unwrap();
    let (length, channels) = (file.len_samples() as usize, file.channels());
    let block = file.block(0, length).unwrap();
    (0..channels).map(|channel| block.channel::<i16>(channel).unwrap().into_owned()).collect()
}

#[test]
fn to_one_destination_they_are_channels_that_fit_to_the_sample() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("both.sigmf-meta").display().to_string();
    // A sample is its time in milliseconds: B's are 10,000 more.
    let a = recorded(folder.path(), "a", Some(100), 100..600);
    let b = recorded(folder.path(), "b", Some(350), 10_350..10_900);
    let played = run(&["play", &a, &b, "--to", &out, "--free-run"]);
    let said = text(&played.stderr);
    assert_eq!(played.status.code(), Some(0), "{said}");
    assert!(
        said.contains("a.sigmf-data: samples that the others lack are ignored: 250 at its beginning"),
        "{said}"
    );
    let expected = [(350..600).collect::<Vec<i16>>(), (10_350..10_600).collect()];
    assert_eq!(channels(&folder.path().join("both.sigmf-collection").display().to_string()), expected);

    // Again and again, without a seam.
    let repeat = ["--repeat", "--samples", "600", "--overwrite"];
    let played = run(&[&["play", &a, &b, "--to", &out, "--free-run"][..], &repeat[..3]].concat());
    assert_eq!(played.status.code(), Some(1), "what was there is not overwritten: {}", text(&played.stderr));
    let again = folder.path().join("again.sigmf-meta").display().to_string();
    let played = run(&[&["play", &a, &b, "--to", &again, "--free-run"][..], &repeat[..3]].concat());
    assert_eq!(played.status.code(), Some(0), "{}", text(&played.stderr));
    let file = SampleFile::open(folder.path().join("again.sigmf-collection")).unwrap();
    assert_eq!((file.len_samples(), file.segments().len()), (600, 1));

    // By their indexes all of A goes with the first of B.
    let indexed = folder.path().join("indexed.sigmf-meta").display().to_string();
    let played = run(&["play", &a, &b, "--to", &indexed, "--free-run", "--align", "index"]);
    assert_eq!(played.status.code(), Some(0), "{}", text(&played.stderr));
    let expected = [(100..600).collect::<Vec<i16>>(), (10_350..10_850).collect()];
    assert_eq!(channels(&folder.path().join("indexed.sigmf-collection").display().to_string()), expected);
}

#[test]
fn each_to_its_own_destination_all_of_them_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let a = recorded(folder.path(), "a", Some(100), 100..600);
    let b = recorded(folder.path(), "b", Some(350), 10_350..10_900);
    let to = |name: &str| folder.path().join(name).display().to_string();
    let (to_a, to_b) = (to("a2.sigmf-meta"), to("b2.sigmf-meta"));
    let played = run(&["play", &a, &b, "--to", &to_a, "--to", &to_b, "--speed", "20", "--json"]);
    assert_eq!(played.status.code(), Some(0), "{}", text(&played.stderr));
    let told: serde_json::Value = serde_json::from_slice(&played.stdout).unwrap();
    assert_eq!(told["error"], serde_json::Value::Null);
    assert_eq!(channels(&to_a), [(100..600).collect::<Vec<i16>>()]);
    assert_eq!(channels(&to_b), [(10_350..10_900).collect::<Vec<i16>>()]);
    let began = |path: &str| SampleFile::open(path).unwrap().time_at(0).unwrap();
    assert_eq!(began(&to_b).duration_since(began(&to_a)).unwrap().as_millis(), 250);
}

#[test]
fn impossible_combinations_are_refused_before_any_sample_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let a = recorded(folder.path(), "a", Some(100), 100..200);
    let late = recorded(folder.path(), "late", Some(900), 0..50);
    let timeless = recorded(folder.path(), "timeless", None, 0..50);
    let to = |name: &str| folder.path().join(name).display().to_string();
    let (x, y) = (to("x.sigmf-meta"), to("y.sigmf-meta"));
    for (arguments, status, says) in [
        (vec![&a, &late, "--to", &x], 1, "has no samples at the times of"),
        (vec![&a, &timeless, "--to", &x], 1, "its recording time is unknown (core:datetime)"),
        (vec![&a, &late, &a, "--to", &x, "--to", &y], 2, "3 recordings and 2 destinations"),
        (vec![&a, &late, "--to", &x, "--to", &x], 2, "each recording needs its own destination"),
        (
            vec![&a, &late, "--to", &x, "--to", &y, "--free-run"],
            2,
            "--free-run cannot keep recordings in step",
        ),
        (vec![&a, &late, "--to", &x, "--to", &y, "--start", "500ms"], 1, "has no samples in that stretch"),
    ] {
        let arguments: Vec<&str> = arguments.into_iter().map(|it: &str| it).collect();
        let refused = run(&[&["play"][..], &arguments].concat());
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(status), "{said}");
        assert!(said.contains(says), "{said}");
    }
    assert!(!Path::new(&x).exists() && !Path::new(&y).exists());
}
