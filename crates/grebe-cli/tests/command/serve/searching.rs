//! Searches of a remote viewer, compared with `grebe find`.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use grebe_scope::Scale;
use grebe_serve::{RemoteViewer, connect};
use grebe_view::{Finding, FoundEvent, ScopeLink, Sought};
use serde_json::Value;

use super::served::{Served, serve};
use crate::support::{Good, example, run, text};

/// Events that a remote viewer finds on a server, and the outcome of the search.
fn found(viewer: &RemoteViewer, words: &str, scales: &[Scale]) -> (Vec<FoundEvent>, String) {
    let finding = viewer.finder().unwrap().find(Sought { words: words.into(), scales: scales.to_vec() });
    let (began, mut events) = (Instant::now(), Vec::new());
    loop {
        if let Some(news) = finding.take_news() {
            events.extend(news.events);
            if let Some(ended) = news.ended {
                assert_eq!(news.found, events.len() as u64, "{ended}");
                return (events, ended);
            }
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{words}: it does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Events that `grebe find` finds in the same recording.
fn found_beside(recording: &str, words: &str) -> Vec<FoundEvent> {
    let words: Vec<&str> = words.split(' ').collect();
    let said = run(&[&["find", recording, "--json", "--trigger"], &words[..]].concat()).good();
    let of = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        FoundEvent {
            index: event["sample_index"].as_u64().unwrap(),
            length_samples: event["samples"].as_u64().unwrap(),
            lane: event["channel"].as_str().map(|lane| lane.parse().unwrap()),
        }
    };
    text(&said.stdout).lines().map(of).collect()
}

fn look(served: &Served) -> (ScopeLink, RemoteViewer) {
    connect(&served.link.parse().unwrap(), "a test", 60.0, || false).unwrap()
}

/// 8 channels of f64, more than the history of a scope holds, with a few pulses of 1.5 in the first channel,
/// and a gap.
fn large_recording(folder: &Path) -> String {
    let samples = 2_200_000u64;
    let mut data = fs::File::create(folder.join("large.sigmf-data")).unwrap();
    data.set_len(samples * 64).unwrap();
    for (position, length) in [(10u64, 3u64), (65_534, 5), (499_999, 2), (700_000, 70_000), (1_099_990, 1)] {
        for at in position..position + length {
            data.seek(SeekFrom::Start(at * 64)).unwrap();
            data.write_all(&1.5f64.to_le_bytes()).unwrap();
        }
    }
    let meta = serde_json::json!({
        "global": { "core:datatype": "rf64_le", "core:version": "1.2.0", "core:sample_rate": 1e6, "core:num_channels": 8 },
        "captures": [
            { "core:sample_start": 0, "core:global_index": 0 },
            { "core:sample_start": 500_000, "core:global_index": 500_100 },
        ],
        "annotations": [],
    });
    let path = folder.join("large.sigmf-meta");
    fs::write(&path, meta.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_remote_viewer_finds_the_same_events_as_grebe_find() {
    let folder = tempfile::tempdir().unwrap();
    let (ecg, large) = (example("ecg.sigmf-meta"), large_recording(folder.path()));
    let served = serve(&[ecg.to_str().unwrap(), &large]);
    let (_link, viewer) = look(&served);
    // Of a short one that was read into the scope's memory; in units that the viewer has.
    let millivolts = "edge --level 0.6 --hysteresis 0.1";
    let beside = found_beside(ecg.to_str().unwrap(), millivolts);
    let halves = [Scale { factor: 0.5, offset: 100.0 }];
    let (events, ended) = found(&viewer, "edge --level 160 --hysteresis 10", &halves);
    assert!(beside.len() > 100 && ended == "searched everything", "{} {ended}", beside.len());
    assert!(events == beside, "{} and {} events", events.len(), beside.len());
    for words in [
        millivolts,
        "level --level 0.6 --longer 10ms",
        "pulse --level 0.6 --shorter 50ms",
        "power --level -40 --window 100ms",
        "gap",
    ] {
        assert_eq!(found(&viewer, words, &[]).0, found_beside(ecg.to_str().unwrap(), words), "{words}");
    }
    // A recording on disk.
    let mut served = served;
    served.link += "&source=2";
    let (_link, viewer) = look(&served);
    for words in
        ["edge --level 1", "level --level 1 --longer 2us --channels 1", "pulse --level 1 --longer 2us", "gap"]
    {
        let (events, ended) = found(&viewer, words, &[]);
        assert_eq!(events, found_beside(&large, words), "{words}");
        assert!(!events.is_empty() && ended == "searched everything", "{words}: {ended}");
    }
    // Invalid searches are refused, and the next one works.
    for (words, why) in
        [("glitch", "edge, pulse"), ("edge", "--level"), ("edge --level 1 --channels 9", "there are 8")]
    {
        let (events, ended) = found(&viewer, words, &[]);
        assert!(events.is_empty() && ended.starts_with("not searched: ") && ended.contains(why), "{ended}");
    }
    assert_eq!(found(&viewer, "gap", &[]).0.len(), 1);
}

#[test]
fn a_remote_viewer_finds_events_in_the_history_of_a_stream() {
    let served = serve(&["synth:square?channels=2&rate=100k&frequency=100&amplitude=0.5"]);
    let (link, viewer) = look(&served);
    let began = Instant::now();
    let events = loop {
        let (events, ended) = found(&viewer, "edge --level 0 --channels 2", &[]);
        if events.len() >= 10 {
            assert!(ended.starts_with("searched everything, "), "{ended}");
            break events;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{ended}");
    };
    let apart: Vec<u64> = events.windows(2).map(|two| two[1].index - two[0].index).collect();
    assert!(apart.iter().all(|&apart| apart == 1000), "{apart:?}");
    assert!(events.iter().all(|event| event.lane.unwrap().to_string() == "2"));
    // A new search replaces the previous one. A disconnected viewer needs no result.
    let finder = viewer.finder().unwrap().clone();
    let sought = || Sought { words: "edge --level 0".into(), scales: Vec::new() };
    let (first, second) = (finder.find(sought()), finder.find(sought()));
    let until = |finding: &Finding| loop {
        if let Some(ended) = finding.take_news().and_then(|news| news.ended) {
            return ended;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(until(&first).contains("ended before"), "the other took its place");
    assert!(until(&second).starts_with("searched everything"));
    drop((link, viewer));
    assert!(until(&finder.find(sought())).contains("no connection"));
}
