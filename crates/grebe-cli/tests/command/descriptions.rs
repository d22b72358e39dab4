//! What a recording says of its samples, played to every kind of stream and recorded there: nothing is skipped, and nothing comes late.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::support::{Listener, finish, grebe, run, text};
use grebe::recording::SampleFile;
use serde_json::{Value, json};

const CAPTURES: usize = 200;
/// 10 ms each.
const CAPTURE_SAMPLES: usize = 500;
const ANNOTATIONS: usize = 60;

/// A recording of many captures, each of another frequency, with some stretches labelled.
fn recording(folder: &Path) -> PathBuf {
    let captures = (0..CAPTURES)
        .map(|at| json!({"core:sample_start": at * CAPTURE_SAMPLES, "core:frequency": 100e6 + at as f64 * 1e3}))
        .collect::<Vec<_>>();
    let annotations = (0..ANNOTATIONS)
        .map(|at| {
            let start = at * CAPTURES * CAPTURE_SAMPLES / ANNOTATIONS;
            json!({"core:sample_start": start, "core:sample_count": 100, "core:label": format!("event {at}")})
        })
        .collect::<Vec<_>>();
    let samples: Vec<u8> = (0..CAPTURES * CAPTURE_SAMPLES).flat_map(|at| (at as i16).to_le_bytes()).collect();
    let global = json!({"core:datatype": "ri16_le", "core:version": "1.0.0", "core:sample_rate": 50_000});
    write(
        folder,
        "many",
        &json!({"global": global, "captures": captures, "annotations": annotations}),
        &samples,
    )
}

fn write(folder: &Path, name: &str, meta: &Value, samples: &[u8]) -> PathBuf {
    let path = folder.join(name).with_extension("sigmf-meta");
    fs::write(&path, meta.to_string()).unwrap();
    fs::write(path.with_extension("sigmf-data"), samples).unwrap();
    path
}

/// First sample and centre frequency in kilohertz.
type Captures = Vec<(u64, u64)>;
/// First sample and label.
type Annotations = Vec<(u64, String)>;
/// Plays a recording and records it.
type Way = fn(&Path, &Path) -> [Output; 2];

/// From where on each frequency holds, in kHz, and each label with its start.
fn said(path: &Path) -> (Captures, Annotations) {
    let meta: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let start = |it: &Value| it["core:sample_start"].as_u64().unwrap();
    let captures = meta["captures"].as_array().unwrap().iter();
    let captures = captures.map(|it| (start(it), (it["core:frequency"].as_f64().unwrap() / 1e3) as u64));
    let annotations = meta["annotations"].as_array().unwrap().iter();
    let annotations = annotations.map(|it| (start(it), it["core:label"].as_str().unwrap().to_owned()));
    (captures.collect(), annotations.collect())
}

/// Plays a file into a pipe and records what comes out of it: what both said.
fn through_a_pipe(from: &Path, to: &Path) -> [Output; 2] {
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
    let recorded = finish(recorder);
    [finish(player), recorded]
}

#[cfg(target_os = "linux")]
fn through_shared_memory(from: &Path, to: &Path) -> [Output; 2] {
    let sockets = tempfile::tempdir().unwrap();
    let start = |arguments: &[&str]| {
        let mut command = grebe(arguments);
        command.env("XDG_RUNTIME_DIR", sockets.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let recorder = start(&["record", "shm://said", to.to_str().unwrap()]);
    let player = start(&["play", from.to_str().unwrap(), "--to", "shm://said?wait=1", "--free-run"]);
    [finish(player), finish(recorder)]
}

fn over_udp(from: &Path, to: &Path) -> [Output; 2] {
    let recorder = Listener::record(to, &[]);
    let player = run(&["play", from.to_str().unwrap(), "--to", &recorder.uri()]);
    let (status, _, said) = recorder.finish();
    assert_eq!(status, Some(0), "{said}");
    [player.clone(), Output { stderr: said.into_bytes(), ..player }]
}

fn assert_good(outputs: &[Output; 2]) {
    for output in outputs {
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

#[test]
fn every_capture_and_every_annotation_comes_through_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (recording(folder.path()), folder.path().join("out.sigmf-meta"));
    assert_good(&through_a_pipe(&from, &to));
    assert_eq!(said(&to), said(&from));
}

#[cfg(target_os = "linux")]
#[test]
fn every_capture_and_every_annotation_comes_through_shared_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (recording(folder.path()), folder.path().join("out.sigmf-meta"));
    assert_good(&through_shared_memory(&from, &to));
    assert_eq!(said(&to), said(&from));
}

#[test]
fn every_capture_and_every_annotation_comes_over_udp() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (recording(folder.path()), folder.path().join("out.sigmf-meta"));
    assert_good(&over_udp(&from, &to));
    assert_eq!(said(&to), said(&from));
}

/// Of each channel in the middle of each capture.
fn names(path: &Path, samples: u64) -> Vec<Vec<String>> {
    let file = SampleFile::open(path).unwrap();
    assert_eq!(file.len_samples(), samples);
    let names = |position| file.description(position).unwrap().channels.iter().map(|it| it.name.clone());
    [samples / 4, samples * 3 / 4].map(|position| names(position).collect()).to_vec()
}

#[test]
fn names_that_are_too_long_are_shortened_and_told_once_and_are_never_older_ones() {
    const CHANNELS: usize = 200;
    const SAMPLES: u64 = 400;
    let folder = tempfile::tempdir().unwrap();
    let name =
        |capture: usize, channel: usize| format!("take {capture} {} channel {channel}", "x".repeat(400));
    let channels = |capture| {
        (0..CHANNELS)
            .map(|channel| json!({"name": name(capture, channel), "unit": "mV", "scale": 0.5, "offset": 0.0}))
            .collect::<Vec<_>>()
    };
    let captures = [0, 1].map(|at| {
        json!({"core:sample_start": at as u64 * SAMPLES / 2, "core:frequency": 1e6, "grebe:channels": channels(at)})
    });
    let global = json!({
        "core:datatype": "ri16_le", "core:version": "1.0.0", "core:sample_rate": 10_000,
        "core:num_channels": CHANNELS,
    });
    let from = write(
        folder.path(),
        "wide",
        &json!({"global": global, "captures": captures, "annotations": []}),
        &vec![0; CHANNELS * 2 * SAMPLES as usize],
    );
    let ways: &[(&str, Way)] = &[
        ("pipe", through_a_pipe),
        ("udp", over_udp),
        #[cfg(target_os = "linux")]
        ("shm", through_shared_memory),
    ];
    for (way, through) in ways {
        let to = folder.path().join(way).with_extension("sigmf-meta");
        let outputs = through(&from, &to);
        assert_good(&outputs);
        let told = text(&outputs[0].stderr);
        assert_eq!(told.matches("shorter names").count(), 1, "{way}: {told}");
        let names = names(&to, SAMPLES);
        for (capture, names) in names.iter().enumerate() {
            assert_eq!(names.len(), CHANNELS, "{way}");
            for (channel, name) in names.iter().enumerate() {
                let (begin, end) = (format!("take {capture} xxx"), format!("x channel {channel}"));
                assert!(name.starts_with(&begin) && name.ends_with(&end), "{way}: {name}");
            }
        }
    }
}
