//! Annotations through a stream and back, and from file to file.

use std::sync::Arc;

use grebe_frame::{Batch, Description, StreamAnnotation};
use grebe_ring::Cancel;
use grebe_testing::stream::batches_of;

use super::formats::{played, recorded};
use super::*;

/// A recording of `captures` (sample_start, global_index) and these annotations.
fn annotated(path: &Path, len_samples: usize, captures: &[(u64, u64)], annotations: &Value) {
    let capture =
        |&(start, index): &(u64, u64)| json!({"core:sample_start": start, "core:global_index": index});
    let captures: Vec<Value> = captures.iter().map(capture).collect();
    let meta = json!({
        "global": {"core:datatype": "ri8", "core:version": "1.2.0", "core:sample_rate": 1_000_000,
            "core:extensions": [{"name": "signal", "version": "1.0.0", "optional": true}]},
        "captures": captures,
        "annotations": annotations,
    });
    fs::write(path, meta.to_string()).unwrap();
    let samples: Vec<u8> = (0..len_samples).map(|at| at as u8).collect();
    fs::write(path.with_extension("sigmf-data"), samples).unwrap();
}

fn named(start: u64, count: u64, label: &str) -> Value {
    json!({
        "core:sample_start": start, "core:sample_count": count, "core:label": label, "core:comment": "c",
        "core:generator": "g", "core:uuid": "0c1f1f0a-5d31-4a7a-8f7e-111111111111",
        "core:freq_lower_edge": 99e6, "core:freq_upper_edge": 100.5e6,
    })
}

#[test]
fn annotations_pass_through_a_stream_with_gaps_unchanged() {
    let (folder, path) = scratch("a.sigmf-meta");
    // Across the gap, in it, in the second stretch, in a later stream, and a point.
    let annotations = json!([
        named(0, 500, "all of one stream"),
        named(50, 100, "across the gap"),
        named(120, 0, "a point"),
        named(120, 40, "after it"),
        named(450, 100, "the tail"),
        named(500, 20, "again"),
    ]);
    annotated(&path, 600, &[(0, 40), (100, 1_000), (500, 10)], &annotations);
    let out = folder.path().join("b.sigmf-meta");
    recorded(&out, &played(&path));
    let mut expected = annotations.clone();
    // It extended into another stream, and ends with its own.
    expected[4]["core:sample_count"] = 50.into();
    let mut written = read_json(&out)["annotations"].as_array().unwrap().clone();
    written.retain(|annotation| annotation["core:label"] != "the sender began again");
    assert_eq!(Value::from(written), expected);
    validate(&out);
}

#[test]
fn thousands_go_through_and_each_is_written_once() {
    let (folder, path) = scratch("a.sigmf-meta");
    let annotations: Vec<Value> =
        (0..5_000u64).map(|at| named(at / 3 * 11, at % 7 * 10, &format!("beat {at}"))).collect();
    let annotations = Value::from(annotations);
    annotated(&path, 20_000, &[(0, 0), (9_000, 9_500)], &annotations);
    let out = folder.path().join("b.sigmf-meta");
    let batches = played(&path);
    recorded(&out, &batches);
    let written = read_json(&out)["annotations"].as_array().unwrap().clone();
    for (got, expected) in written.iter().zip(annotations.as_array().unwrap()) {
        assert_eq!(got, expected);
    }
    assert_eq!(written.len(), 5_000);
    for description in batches.iter().filter_map(Batch::description) {
        assert!(description.annotations.len() <= Description::ANNOTATIONS_MAX);
        assert!(description.text_bytes() < 65_536);
    }
}

#[test]
fn a_file_keeps_all_that_they_say() {
    let (folder, path) = scratch("a.sigmf-meta");
    let mut annotations = json!([
        named(0, 160, "across the gap"),
        named(90, 30, "x".repeat(5_000).as_str()),
        named(155, 5, "again"),
    ]);
    annotations[1]["signal:detail"] = json!({"type": "analog"});
    annotations[1]["core:freq_lower_edge"] = json!("unknown");
    annotated(&path, 160, &[(0, 40), (100, 1_000), (150, 10)], &annotations);
    let out = folder.path().join("b.sigmf-meta");
    SampleFile::open(&path)
        .unwrap()
        .save_as(&out, &crate::SaveOptions::default(), &Cancel::default())
        .unwrap();
    let meta = read_json(&out);
    assert_eq!(meta["annotations"], annotations);
    assert_eq!(meta["global"]["core:extensions"][0]["name"], "signal");
    let mut again = folder.path().join("c.sigmf-meta");
    fs::rename(&out, &again).unwrap();
    fs::rename(out.with_extension("sigmf-data"), again.with_extension("sigmf-data")).unwrap();
    again.set_extension("sigmf-data");
    assert_eq!(SampleFile::open(&again).unwrap().annotations().len(), 3);
}

#[test]
fn fields_too_long_for_a_stream_are_reported_and_omitted() {
    let (_folder, path) = scratch("a.sigmf-meta");
    let annotations = json!([named(0, 5, "short"), named(3, 5, "x".repeat(2_000).as_str())]);
    annotated(&path, 100, &[(0, 0)], &annotations);
    let (labels, note) = crate::labels::Labels::of(&SampleFile::open(&path).unwrap());
    assert_eq!(labels.due(), Some(0));
    assert!(note.unwrap().starts_with("1 annotations are too long"));
}

fn label(first_sample_index: u64, length_samples: u64, label: &str) -> StreamAnnotation {
    StreamAnnotation { first_sample_index, length_samples, label: Some(label.into()), ..Default::default() }
}

fn said(annotations: &[StreamAnnotation]) -> Option<Arc<Description>> {
    Some(Arc::new(Description { annotations: annotations.to_vec(), ..Description::default() }))
}

#[test]
fn a_recorder_that_joins_late_and_loses_samples_puts_labels_where_they_belong() {
    let (_folder, path) = scratch("a.sigmf-meta");
    // 64 samples of 1000 on, then a gap of 36, and 64 more.
    let batches = batches_of(1, &[(1_000, 64), (1_100, 64)], 1);
    let described = [
        said(&[
            label(10, 20, "long over"),
            label(900, 150, "begun before"),
            label(1_070, 5, "lost"),
            label(1_090, 20, "half lost"),
        ]),
        said(&[
            label(900, 150, "begun before"),
            label(1_010, 3, "late"),
            label(1_110, 10, "one"),
            label(1_110, 10, "another"),
            label(5_000, 5, "not yet"),
        ]),
    ];
    let batches: Vec<Batch> = batches
        .into_iter()
        .zip(described)
        .map(|(batch, description)| {
            let mut batch = batch.try_unique().unwrap();
            batch.describe(description.as_ref());
            batch.freeze()
        })
        .collect();
    recorded(&path, &batches);
    let written = read_json(&path)["annotations"].clone();
    let places: Vec<_> = written
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let number = |name: &str| it[name].as_u64().unwrap();
            (number("core:sample_start"), number("core:sample_count"), it["core:label"].as_str().unwrap())
        })
        .collect();
    let expected = [
        (0, 50, "begun before"),
        (10, 3, "late"),
        (64, 0, "lost"),
        (64, 10, "half lost"),
        (74, 10, "one"),
        (74, 10, "another"),
    ];
    assert_eq!(places, expected);
}
