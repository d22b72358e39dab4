//! A recording keeps a stream's description, and playing it sends the same description.

use std::sync::Arc;

use grebe_flow::StageBench;
use grebe_frame::{Batch, ChannelDescription, ClockReading, Description, Header};

use super::formats::{played, recorded};
use super::*;
use crate::{RecordOptions, SigmfSink};

fn tuned(first_sample_index: u64, frequency_hz: f64) -> Arc<Description> {
    Arc::new(Description {
        first_sample_index,
        name: Some("band".into()),
        channels: vec![volts("left"), volts("right")],
        centre_frequency_hz: Some(frequency_hz),
        bandwidth_hz: Some(2e5),
        gain_db: Some(30.5),
        hardware: Some("a receiver".into()),
        author: Some("N.N.".into()),
        notes: Some("on the roof".into()),
        clock: None,
        recorded_at: None,
        recorded_error_ns: None,
        recorded_axis: None,
        is_undated: false,
        clock_port: None,
        measured: None,
        annotations: Vec::new(),
        rest: serde_json::from_value(
            json!({ "core:license": "https://example.org/", "antenna:model": "dipole" }),
        )
        .unwrap(),
    })
}

fn volts(name: &str) -> ChannelDescription {
    ChannelDescription { name: name.into(), unit: "V".into(), scale: 0.25, offset: -1.0 }
}

/// Frames of 100 samples of two channels, with these descriptions.
fn described(descriptions: &[Option<Arc<Description>>]) -> Vec<Batch> {
    let batch = |(number, description): (u64, &Option<Arc<Description>>)| {
        let mut batch = BatchPool::new(1, 4_096).acquire().unwrap();
        let header = Header {
            sequence: number,
            producer_ts_ns: 5_000_000_000 + number * 100_000,
            format: SampleFormat::Ci16,
            channel_count: 2,
            block_length_samples: 100,
            sample_rate_hz: 1e6,
            first_sample_index: number * 100,
            ..Header::default()
        };
        batch.push_bytes(&header, |_, bytes| bytes.fill(number as u8)).unwrap();
        batch.describe(description.as_ref());
        batch.freeze()
    };
    (0..).zip(descriptions).map(batch).collect()
}

#[test]
fn a_description_that_arrives_late_applies_to_earlier_samples_that_it_covers() {
    for (applies_from, expected) in [(0, json!(100_000_000)), (100, json!(null))] {
        let (folder, path) = scratch("x.sigmf-meta");
        recorded(&path, &described(&[None, Some(tuned(applies_from, 100e6))]));
        let meta_json = read_json(&folder.path().join("x_ch1.sigmf-meta"));
        assert_eq!(meta_json["captures"][0]["core:frequency"], expected, "{meta_json}");
        assert_eq!(meta_json["captures"][1]["core:frequency"], 100_000_000, "{meta_json}");
    }
}

#[test]
fn a_description_is_written_to_sigmfs_fields_and_read_back() {
    let (folder, path) = scratch("x.sigmf-meta");
    let (low, high) = (tuned(0, 100e6), tuned(250, 101e6));
    // The second one comes early, and holds from the middle of a frame on.
    recorded(&path, &described(&[Some(low.clone()), Some(high.clone()), Some(high.clone()), Some(high)]));
    let metas = ["x_ch1", "x_ch2"].map(|name| folder.path().join(name).with_extension("sigmf-meta"));
    for (meta, channel) in metas.iter().zip(["left", "right"]) {
        let meta_json = read_json(meta);
        let global = &meta_json["global"];
        assert_eq!(global["core:hw"], "a receiver");
        assert_eq!(global["core:author"], "N.N.");
        assert_eq!(global["core:description"], "on the roof");
        assert_eq!(global["core:license"], "https://example.org/");
        assert_eq!(global["grebe:name"], "band");
        assert_eq!(
            global["grebe:channels"],
            json!([{"name": channel, "unit": "V", "scale": 0.25, "offset": -1.0}])
        );
        let names: Vec<&str> = global["core:extensions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        for name in ["grebe", "antenna", "capture_details"] {
            assert!(names.contains(&name), "{names:?}");
        }
        let captures = meta_json["captures"].as_array().unwrap();
        let places: Vec<_> = captures
            .iter()
            .map(|capture| (capture["core:sample_start"].as_u64(), capture["core:frequency"].as_f64()))
            .collect();
        assert_eq!(places, [(Some(0), Some(100e6)), (Some(250), Some(101e6))]);
        assert_eq!(captures[1]["capture_details:gain"], 30.5);
        assert_eq!(captures[1].get("grebe:channels"), None, "as in global");
        validate(meta);
    }

    let file = SampleFile::open(&path).unwrap();
    let expected = |first, hz| Description { first_sample_index: first, ..(*tuned(first, hz)).clone() };
    let said = |position| file.description(position).map(|it| (**it).clone());
    assert_eq!(said(249).unwrap(), expected(0, 100e6));
    assert_eq!(said(250).unwrap(), Description { first_sample_index: 0, ..expected(250, 101e6) });

    let batches = played(&path);
    let heard: Vec<_> = batches
        .iter()
        .map(|batch| {
            let first = batch.frames().next().unwrap().header().first_sample_index;
            let said = (**batch.description().unwrap()).clone();
            assert!(said.recorded_at.is_some(), "when it arrived, as nobody said when it was made");
            (first, Description { recorded_at: None, ..said })
        })
        .collect();
    assert!(
        heard.iter().all(
            |(first, said)| *said == if *first < 250 { expected(0, 100e6) } else { expected(250, 101e6) }
        )
    );
    assert!(heard.iter().any(|(first, _)| *first == 250), "no batch has both");
}

#[test]
fn the_producers_clock_says_when_a_segment_was_recorded() {
    let (folder, path) = scratch("x.sigmf-meta");
    let clock = ClockReading {
        producer_ts_ns: 4_000_000_000,
        unix_time_ns: 1_767_323_045_000_000_000,
        error_ns: Some(20_000),
        clock: None,
    };
    let at = |first_sample_index, hz| {
        Some(Arc::new(Description { clock: Some(clock), ..(*tuned(first_sample_index, hz)).clone() }))
    };
    recorded(&path, &described(&[at(0, 1e6), at(150, 2e6)]));
    let captures = read_json(&folder.path().join("x_ch1.sigmf-meta"))["captures"].clone();
    assert_eq!(captures[0]["core:datetime"], "2026-01-02T03:04:06.000000Z");
    assert_eq!(captures[1]["core:datetime"], "2026-01-02T03:04:06.000150Z");
}

#[test]
fn a_channel_that_changes_its_meaning_begins_a_capture_and_new_notes_do_not() {
    let (folder, path) = scratch("x.sigmf-meta");
    let mut other = (*tuned(100, 1e6)).clone();
    other.notes = Some("still there".into());
    let mut scaled = other.clone();
    (scaled.first_sample_index, scaled.channels[1].scale) = (200, 0.5);
    let stream = [(*tuned(0, 1e6)).clone(), other, scaled].map(|description| Some(Arc::new(description)));
    recorded(&path, &described(&stream));
    let captures = |name: &str| {
        let meta = read_json(&folder.path().join(name));
        assert_eq!(meta["global"]["core:description"], "on the roof");
        meta["captures"].as_array().unwrap().clone()
    };
    assert_eq!(captures("x_ch1.sigmf-meta").len(), 2);
    assert_eq!(captures("x_ch2.sigmf-meta")[1]["grebe:channels"][0]["scale"], 0.5);
    let file = SampleFile::open(&path).unwrap();
    assert_eq!(file.description(199).unwrap().channels[1].scale, 0.25);
    assert_eq!(
        file.description(200).unwrap().channels,
        [volts("left"), ChannelDescription { scale: 0.5, ..volts("right") }]
    );
}

#[test]
fn the_electrocardiogram_keeps_its_unit_when_it_is_played_and_recorded() {
    let (_folder, path) = scratch("x.sigmf-meta");
    recorded(&path, &played(ECG.as_ref()));
    let file = SampleFile::open(&path).unwrap();
    let lead = ChannelDescription { name: "MLII".into(), unit: "mV".into(), scale: 0.005, offset: 0.0 };
    let said = file.description(0).unwrap();
    assert_eq!(said.channels, [lead]);
    assert!(said.author.as_ref().unwrap().contains("Moody") && said.notes.as_ref().unwrap().contains("MLII"));
    assert!(said.rest.contains_key("core:license"));
    validate(&path);
}

#[test]
fn a_stream_that_says_nothing_makes_a_recording_that_says_nothing() {
    let (_folder, path) = scratch("x.sigmf-meta");
    recorded(&path, &described(&[None, None]));
    assert_eq!(SampleFile::open(&path).unwrap().description(0), None);
    // A late description applies from its own position.
    let late = tuned(100, 1e6);
    let mut bench = StageBench::new(
        SigmfSink::create(&path, RecordOptions { overwrite: true, ..RecordOptions::default() }).unwrap(),
    )
    .unwrap();
    for batch in described(&[None, Some(late)]) {
        bench.feed(batch).unwrap();
    }
    bench.end().unwrap();
    let file = SampleFile::open(&path).unwrap();
    assert_eq!(stretches(&file), [(0, 100, 0), (100, 100, 100)]);
    assert_eq!(file.description(0).unwrap().centre_frequency_hz, None);
    assert_eq!(file.description(100).unwrap().centre_frequency_hz, Some(1e6));
}

#[test]
fn annotations_are_read_and_a_bad_description_is_left_out_in_words() {
    let (_folder, path) = scratch("x.sigmf-meta");
    let many: Vec<Value> = (0..3).map(|_| json!({"name": "x"})).collect();
    for (global, note) in [
        (json!({"core:hw": 5}), Some("cannot be read, and are ignored")),
        (json!({"grebe:channels": many}), Some("more channels than the 2")),
        (json!({"core:hw": "fine"}), None),
    ] {
        let mut fields = json!({
            "core:datatype": "ri8", "core:version": "1.2.0", "core:num_channels": 2, "core:sample_rate": 1,
            "core:offset": 100,
        });
        fields.as_object_mut().unwrap().extend(global.as_object().unwrap().clone());
        let meta = json!({
            "global": fields,
            "captures": [{"core:sample_start": 100}],
            "annotations": [
                {"core:sample_start": 104, "core:label": "to the end"},
                {"core:sample_start": 101, "core:sample_count": 2, "core:comment": "c"},
                {"core:sample_start": 106, "core:sample_count": 1, "core:label": "behind it"},
            ],
        });
        fs::write(&path, meta.to_string()).unwrap();
        fs::write(path.with_extension("sigmf-data"), [1; 12]).unwrap();
        let file = SampleFile::open(&path).unwrap();
        let places: Vec<_> = file.annotations().iter().map(|it| (it.position, it.length_samples)).collect();
        assert_eq!(places, [(1, 2), (4, 2)]);
        assert_eq!(file.annotations()[0].fields["core:comment"], "c");
        match note {
            Some(note) => assert!(file.notes().iter().any(|it| it.contains(note)), "{:?}", file.notes()),
            None => assert_eq!(file.notes(), ["annotations outside of the data are ignored: 1"]),
        }
    }
}
