//! Metadata of a recording, played to each bridge and recorded there: nothing is skipped or late.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use grebe::recording::SampleFile;
use serde_json::{Value, json};

use super::pair::{Plan, assert_adds_up};
use super::table::{Describes, for_each};
use crate::support::{finish, grebe, text};

const CAPTURES: usize = 200;
/// Less than a frame has: each frame says something else.
const CAPTURE_SAMPLES: usize = 500;
const SAMPLES: usize = CAPTURES * CAPTURE_SAMPLES;
const ANNOTATIONS: usize = 60;
const RATE_HZ: u32 = 100_000;

/// A recording of many captures, each of another frequency, with some stretches labelled.
fn recording(folder: &Path, format: &str) -> PathBuf {
    let captures = (0..CAPTURES)
        .map(|at| json!({"core:sample_start": at * CAPTURE_SAMPLES, "core:frequency": 100e6 + at as f64 * 1e3}))
        .collect::<Vec<_>>();
    let annotations = (0..ANNOTATIONS)
        .map(|at| {
            let start = at * SAMPLES / ANNOTATIONS;
            json!({"core:sample_start": start, "core:sample_count": 100, "core:label": format!("event {at}")})
        })
        .collect::<Vec<_>>();
    write(folder, format, 1, SAMPLES, &json!({"captures": captures, "annotations": annotations}))
}

/// A recording of two captures with different channel names of this length.
fn named(folder: &Path, format: &str, channels: usize, letters: usize, samples: usize) -> PathBuf {
    let name =
        |capture: usize, channel: usize| format!("take {capture} {} channel {channel}", "x".repeat(letters));
    let said = |capture| {
        (0..channels)
            .map(|channel| json!({"name": name(capture, channel), "unit": "mV", "scale": 0.5, "offset": 0.0}))
            .collect::<Vec<_>>()
    };
    let captures = [0, 1].map(|at| {
        json!({"core:sample_start": at * samples / 2, "core:frequency": 1e6, "grebe:channels": said(at)})
    });
    write(folder, format, channels, samples, &json!({"captures": captures, "annotations": []}))
}

fn write(folder: &Path, format: &str, channels: usize, samples: usize, meta: &Value) -> PathBuf {
    let (datatype, sample): (_, fn(usize) -> Vec<u8>) = match format {
        "f32" => ("rf32_le", |at| (at as f32).to_le_bytes().to_vec()),
        "cu8" => ("cu8", |at| vec![at as u8, (at / 256) as u8]),
        _ => ("ri16_le", |at| (at as i16).to_le_bytes().to_vec()),
    };
    let mut meta = meta.clone();
    meta["global"] = json!({
        "core:datatype": datatype, "core:version": "1.0.0", "core:sample_rate": RATE_HZ, "core:num_channels": channels,
    });
    let path = folder.join("made.sigmf-meta");
    fs::write(&path, meta.to_string()).unwrap();
    let bytes: Vec<u8> = (0..samples * channels).flat_map(|at| sample(at / channels)).collect();
    fs::write(path.with_extension("sigmf-data"), bytes).unwrap();
    path
}

/// First sample and centre frequency in kilohertz.
type Captures = Vec<(u64, Option<u64>)>;
/// First sample and label.
type Annotations = Vec<(u64, String)>;

/// From where on each frequency holds, and each label with its start.
fn said(path: &Path) -> (Captures, Annotations) {
    let meta: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let start = |it: &Value| it["core:sample_start"].as_u64().unwrap();
    let captures = meta["captures"].as_array().unwrap().iter();
    let captures = captures.map(|it| (start(it), it["core:frequency"].as_f64().map(|hz| (hz / 1e3) as u64)));
    let annotations = meta["annotations"].as_array().unwrap().iter();
    let annotations = annotations.map(|it| (start(it), it["core:label"].as_str().unwrap().to_owned()));
    (captures.collect(), annotations.collect())
}

/// Plays a file into a pipe and records the output; returns the path and the player's messages.
fn through_a_pipe(folder: &Path, from: &Path) -> (PathBuf, String) {
    let to = folder.join("out.sigmf-meta");
    let mut player = grebe(&["play", from.to_str().unwrap(), "--to", "pipe:", "--free-run"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let recorder = grebe(&["record", "pipe:", to.to_str().unwrap()])
        .stdin(player.stdout.take().unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (recorder, player) = (finish(recorder), finish(player));
    for output in [&recorder, &player] {
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    (to, text(&player.stderr))
}

#[test]
fn each_description_holds_from_its_own_sample_on_where_each_frame_has_another() {
    for_each(|bridge| {
        let folder = tempfile::tempdir().unwrap();
        let from = recording(folder.path(), bridge.format);
        let mut pair = Plan { plays: Some(&from), ..Plan::of(bridge) }.start(&[]);
        let (producer, recorder) = pair.finish();
        assert_eq!(producer.status, Some(0), "{}: {producer:?}", bridge.sink);
        recorder.assert_end(bridge);
        assert_adds_up(bridge, SAMPLES as u64, &producer, &recorder);
        let (mut captures, annotations) = said(&pair.file());
        match bridge.describes {
            Describes::Everything => assert_eq!((captures, annotations), said(&from), "{}", bridge.source),
            Describes::Frequency => {
                assert_eq!((captures, annotations.len()), (said(&from).0, 0), "{}", bridge.source);
            }
            // It states nothing, not even an old frequency.
            Describes::Nothing => {
                captures.dedup_by_key(|(_, frequency)| *frequency);
                assert_eq!((captures.len(), annotations.len()), (1, 0), "{}", bridge.source);
            }
        }
    });
}

#[test]
fn each_description_holds_from_its_own_sample_on_in_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let from = recording(folder.path(), "i16");
    let (to, _) = through_a_pipe(folder.path(), &from);
    assert_eq!(said(&to), said(&from));
}

/// Of each channel in the middle of each capture.
fn assert_shortened(path: &Path, told: &str, channels: usize, samples: usize) {
    assert_eq!(told.matches("shorter names").count(), 1, "{told}");
    let file = SampleFile::open(path).unwrap();
    assert_eq!(file.len_samples(), samples as u64);
    for capture in 0..2 {
        let said = file.description((samples / 4 + capture * samples / 2) as u64).unwrap();
        assert_eq!(said.channels.len(), channels);
        for (channel, said) in said.channels.iter().enumerate() {
            let (begin, end) = (format!("take {capture} xxx"), format!("x channel {channel}"));
            let (is_first, is_last) = (said.name.starts_with(&begin), said.name.ends_with(&end));
            assert!(is_first && is_last, "{} of {} letters", begin, said.name.len());
        }
    }
}

const LONG: [(usize, usize, usize); 2] = [(200, 5_000, 400), (1, 1_000_000, 20_000)];

#[test]
fn a_description_of_a_megabyte_is_shortened_reported_once_and_never_outdated() {
    for_each(|bridge| {
        let is_carried = bridge.describes == Describes::Everything;
        for (channels, letters, samples) in
            LONG.into_iter().filter(|&(channels, ..)| channels == 1 || is_carried)
        {
            let folder = tempfile::tempdir().unwrap();
            let from = named(folder.path(), bridge.format, channels, letters, samples);
            let mut pair = Plan { plays: Some(&from), ..Plan::of(bridge) }.start(&[]);
            let (producer, recorder) = pair.finish();
            assert_eq!(producer.status, Some(0), "{}: {producer:?}", bridge.sink);
            recorder.assert_end(bridge);
            assert_adds_up(bridge, samples as u64, &producer, &recorder);
            if is_carried {
                assert_shortened(&pair.file(), &producer.said, channels, samples);
            }
        }
    });
}

#[test]
fn a_description_of_a_megabyte_is_shortened_in_a_pipe() {
    for (channels, letters, samples) in LONG {
        let folder = tempfile::tempdir().unwrap();
        let from = named(folder.path(), "i16", channels, letters, samples);
        let (to, told) = through_a_pipe(folder.path(), &from);
        assert_shortened(&to, &told, channels, samples);
    }
}
