//! Hosts of a graph that go away and are started again: `restart = "always"`.

use std::fs;

use serde_json::Value;

use super::hosts::{Lab, is_alive};
use crate::support::{Good, finish, signal, text, wait_until};

/// It runs for ever: here, and through here on a second host. The generator waits, so a busy machine loses nothing.
const ENDLESS: &str = r#"
    stage = [
        { id = "adc", kind = "synth", host = "mast", params = { rate = "200k", wave = "noise", free_run = true } },
        { id = "pace", kind = "throttle", host = "mast" },
        { id = "far", kind = "record", host = "store", params = { file = "far.sigmf-meta" } },
        { id = "near", kind = "record", params = { file = "near.sigmf-meta" } },
    ]
    edge = [
        { from = "adc", to = "pace", capacity = 1 },
        { from = "pace", to = "far", policy = "drop_oldest" },
        { from = "pace", to = "near" },
    ]
    host = [{ name = "HOST", restart = "always" }]
"#;

/// The generator's samples, from its start.
pub(super) fn made(lab: &Lab) -> Vec<u8> {
    let graph = r#"
        stage = [
            { id = "adc", kind = "synth", params = { rate = "200k", wave = "noise", samples = "4M", free_run = true } },
            { id = "disk", kind = "record", params = { file = "made.sigmf-meta" } },
        ]
        edge = [{ from = "adc", to = "disk" }]
    "#;
    lab.run(graph, &[]).good();
    lab.data("here/made")
}

/// Whether samples are those that were made from `begin` on, as far as that is known.
pub(super) fn is_made(made: &[u8], begin: u64, bytes: &[u8]) -> bool {
    let made = made.get(2 * begin as usize..).unwrap_or_default();
    made.iter().zip(bytes).all(|(made, seen)| made == seen)
}

/// The segments of a recording that was closed in order.
pub(super) fn segments(lab: &Lab, name: &str) -> Vec<(u64, Vec<u8>)> {
    lab.assert_closed(name);
    known_segments(lab, name)
}

/// The segments of a recording, as far as it is known to be good: where each begins in the stream, and its bytes.
pub(super) fn known_segments(lab: &Lab, name: &str) -> Vec<(u64, Vec<u8>)> {
    let meta = fs::read(lab.path(name).with_extension("sigmf-meta")).unwrap();
    let meta: Value = serde_json::from_slice(&meta).unwrap();
    let captures = meta["captures"].as_array().unwrap();
    let mut data = lab.data(name);
    if let Some(known) = meta["global"]["grebe:known_samples"].as_u64() {
        data.truncate(2 * known as usize);
    }
    let start = |at: usize| {
        captures.get(at).map_or(data.len(), |it| 2 * it["core:sample_start"].as_u64().unwrap() as usize)
    };
    let index = |capture: &Value| capture["core:global_index"].as_u64().unwrap_or(0);
    let all =
        captures.iter().enumerate().map(|(at, it)| (index(it), data[start(at)..start(at + 1)].to_vec()));
    // A description that is new begins a segment, too.
    let mut segments: Vec<(u64, Vec<u8>)> = Vec::new();
    for (index, bytes) in all {
        match segments.last_mut() {
            Some((begin, before)) if *begin + before.len() as u64 / 2 == index => before.extend(bytes),
            _ => segments.push((index, bytes)),
        }
    }
    segments
}

pub(super) fn stage<'a>(report: &'a Value, name: &str) -> &'a Value {
    let stages = report["graph"]["stages"].as_array().unwrap();
    stages.iter().find(|stage| stage["name"] == name).unwrap_or_else(|| panic!("no {name}: {report}"))
}

/// Kills grebe on a host, and waits until it is back.
pub(super) fn kill(lab: &Lab, host: &str) {
    end(lab, host, "-KILL");
}

fn end(lab: &Lab, host: &str, name: &str) {
    let id = lab.id(host);
    signal(name, id);
    wait_until("it is started again", || lab.id(host) != id);
}

#[test]
fn a_source_killed_repeatedly_returns_after_gaps_known_to_the_sample() {
    for via in ["ssh", "udp"] {
        let lab = Lab::new();
        let made = made(&lab);
        let child = lab.start_heard(&ENDLESS.replace("HOST", "mast"), &["--via", via, "--json"]);
        for kills in 0..4 {
            for name in ["here/near", "store/far"] {
                let before = lab.known_bytes(name);
                lab.await_data(name, before + 40_000);
            }
            if kills < 3 {
                // A host that shuts down asks its processes to end.
                end(&lab, "mast", if kills == 1 { "-TERM" } else { "-KILL" });
                // Data in flight came before that.
                wait_until("both hear it again", || lab.goes_on() == 2 * (kills + 1));
            }
        }
        let ids = [lab.id("mast"), lab.id("store")];
        signal("-INT", child.id());
        let output = finish(child);
        let said = lab.said();
        assert_eq!(output.status.code(), Some(130), "{via}: {said}");
        assert!(ids.iter().all(|&id| !is_alive(id)), "{via}: somebody stayed");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(stage(&report, "mast")["own"]["restarts"], 3, "{report}");
        assert_eq!(stage(&report, "mast")["own"]["is_away"], 0, "{report}");
        assert!(said.matches("mast is back after").count() == 3, "{said}");
        assert_eq!(lab.goes_on(), 6, "{said}");
        let mut recorded = 0;
        for (name, link) in [("here/near", "near-from-pace"), ("store/far", "store:far-from-pace")] {
            let segments = segments(&lab, name);
            assert_eq!(segments.len(), 4, "{via}: {name}: {said}");
            // Each time it began again.
            for (_, bytes) in &segments {
                assert!(is_made(&made, 0, bytes), "{via}: {name}: other samples");
            }
            let gaps = segments.windows(2).map(|pair| pair[1].0 - pair[0].0 - pair[0].1.len() as u64 / 2);
            let gaps: Vec<u64> = gaps.collect();
            assert!(gaps.iter().all(|&gap| gap > 0), "{gaps:?}");
            let own = &stage(&report, link)["own"];
            assert_eq!(own["away_samples"].as_u64(), Some(gaps.iter().sum()), "{via}: {report}");
            assert_eq!(own["producer_restarts"], 3, "{via}: {report}");
            recorded += segments.iter().map(|(_, bytes)| bytes.len() as u64 / 2).sum::<u64>();
        }
        let recorders =
            ["near", "store:far"].map(|name| stage(&report, name)["samples_in"].as_u64().unwrap());
        assert_eq!(recorders.iter().sum::<u64>(), recorded, "{report}");
    }
}

#[test]
fn a_killed_recorder_continues_in_another_file_and_costs_others_nothing() {
    let lab = Lab::new();
    let made = made(&lab);
    let child = lab.start_heard(&ENDLESS.replace("HOST", "store"), &["--via", "ssh", "--json"]);
    let names = ["store/far", "store/far_2", "store/far_3"];
    for (at, name) in names.into_iter().enumerate() {
        lab.await_data(name, 40_000);
        if at < 2 {
            kill(&lab, "store");
        }
    }
    signal("-INT", child.id());
    let output = finish(child);
    let said = lab.said();
    assert_eq!(output.status.code(), Some(130), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(stage(&report, "store")["own"]["restarts"], 2, "{report}");
    // A consumer on this host has all of it.
    let near = segments(&lab, "here/near");
    assert!(near.len() == 1 && near[0].0 == 0 && is_made(&made, 0, &near[0].1), "{said}");
    // Each recording continues the previous one, with the generator's values at its indices.
    let mut end = 0;
    for name in names {
        if name == "store/far_3" {
            lab.assert_closed(name);
        }
        for (begin, bytes) in known_segments(&lab, name) {
            assert!(begin >= end, "{name} begins at {begin}, and the one before ended at {end}");
            assert!(is_made(&made, begin, &bytes), "{name}");
            end = begin + bytes.len() as u64 / 2;
        }
    }
    let own = &stage(&report, "mast:pace-to-far")["own"];
    let unconfirmed = own["unconfirmed_samples"].as_u64().unwrap();
    assert_eq!(report["losses"]["unconfirmed_samples"], unconfirmed, "{report}");
    let sent = stage(&report, "mast:pace-to-far")["samples_in"].as_u64().unwrap();
    assert!(unconfirmed < sent, "{report}");
}

#[test]
fn a_stage_between_two_hosts_that_is_killed_leaves_a_gap_and_nothing_else() {
    let lab = Lab::new();
    let made = made(&lab);
    let graph = r#"
        stage = [
            { id = "adc", kind = "synth", host = "mast", params = { rate = "200k", wave = "noise", free_run = true } },
            { id = "pace", kind = "throttle", host = "mast" },
            { id = "same", kind = "gain", host = "store" },
            { id = "near", kind = "record", params = { file = "near.sigmf-meta" } },
        ]
        edge = [
            { from = "adc", to = "pace", capacity = 1 },
            { from = "pace", to = "same", policy = "drop_oldest" },
            { from = "same", to = "near" },
        ]
        host = [{ name = "store", restart = "always" }]
    "#;
    let child = lab.start_heard(graph, &["--via", "ssh", "--json"]);
    for kills in 0..3 {
        let before = lab.known_bytes("here/near");
        lab.await_data("here/near", before + 40_000);
        if kills < 2 {
            kill(&lab, "store");
            let is_again = || lab.said().matches("store is back after").count() == kills + 1;
            wait_until("it is joined again", is_again);
        }
    }
    signal("-INT", child.id());
    let output = finish(child);
    let said = lab.said();
    assert_eq!(output.status.code(), Some(130), "{said}");
    let segments = segments(&lab, "here/near");
    // One segment if no data was under way at that moment.
    assert!(segments.len() <= 3, "{said}");
    assert!(segments.windows(2).all(|pair| pair[0].0 + pair[0].1.len() as u64 / 2 < pair[1].0), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let own = &stage(&report, "near-from-same")["own"];
    assert_eq!(
        (&stage(&report, "store")["own"]["restarts"], &own["away_samples"]),
        (&2.into(), &0.into()),
        "{report}"
    );
    // One that was killed before it had sent anything is not known here.
    let producers = 1 + own["producer_restarts"].as_u64().unwrap();
    assert!(segments.len() as u64 <= producers && producers <= 3, "{report}");
    for (begin, bytes) in segments {
        assert!(is_made(&made, begin, &bytes), "other samples from {begin} on: {said}");
    }
}

#[test]
fn a_host_that_does_not_come_back_is_tried_less_and_less_until_ctrl_c() {
    let lab = Lab::new();
    let child = lab.start_heard(&ENDLESS.replace("HOST", "store"), &["--via", "ssh"]);
    lab.await_data("store/far", 40_000);
    fs::write(lab.path("store/down"), "").unwrap();
    signal("-KILL", lab.id("store"));
    wait_until("it is tried again", || lab.starts("store") >= 4);
    // The others continue meanwhile.
    let before = lab.known_bytes("here/near");
    lab.await_data("here/near", before + 40_000);
    signal("-INT", child.id());
    let output = finish(child);
    let said = lab.said();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("store is not back yet: ssh cannot reach store"), "{said}");
    assert_eq!(said.matches("not back yet").count(), 1, "what is known is not repeated: {said}");
    assert!(said.contains("store has been gone for"), "{said}");
    assert!(!is_alive(lab.id("mast")), "it stayed");
    lab.assert_closed("here/near");
}

#[test]
fn a_stage_that_fails_is_started_again_and_one_that_has_ended_is_not() {
    let lab = Lab::new();
    let graph = r#"
        stage = [
            { id = "silent", kind = "udp_in", host = "mast", params = { uri = "udp://127.0.0.1:0", idle_timeout = "50ms" } },
            { id = "heard", kind = "null" },
            { id = "short", kind = "synth", host = "store", params = { rate = "200k", samples = "20k", free_run = true } },
            { id = "near", kind = "record", params = { file = "near.sigmf-meta" } },
        ]
        edge = [{ from = "silent", to = "heard" }, { from = "short", to = "near" }]
        host = [{ name = "mast", restart = "always" }, { name = "store", restart = "always" }]
    "#;
    let child = lab.start_heard(graph, &["--via", "ssh"]);
    wait_until("it is started again", || lab.starts("mast") >= 4);
    signal("-INT", child.id());
    let output = finish(child);
    let said = lab.said();
    assert!([Some(3), Some(130), Some(1)].contains(&output.status.code()), "{:?}: {said}", output.status);
    assert!(said.contains("mast: silent: "), "{said}");
    assert_eq!(lab.starts("store"), 1, "{said}");
    assert_eq!(lab.data("here/near").len(), 40_000);
}

#[test]
fn an_edge_to_a_failed_host_continues_after_its_restart() {
    let silent = r#"
        { id = "silent", kind = "udp_in", host = "store", params = { uri = "udp://127.0.0.1:0", idle_timeout = "1s" } },
        { id = "heard", kind = "null", host = "store" },
        { id = "far""#;
    let graph = ENDLESS
        .replace("HOST", "store")
        .replace(r#"{ id = "far""#, silent)
        .replace("edge = [", r#"edge = [{ from = "silent", to = "heard" },"#);
    for via in ["ssh", "udp"] {
        let lab = Lab::new();
        let made = made(&lab);
        let child = lab.start_heard(&graph, &["--via", via]);
        let names = ["store/far", "store/far_2", "store/far_3"];
        names.iter().for_each(|name| lab.await_data(name, 2));
        signal("-INT", child.id());
        let output = finish(child);
        let said = lab.said();
        // It may be away just then.
        assert!([Some(3), Some(130)].contains(&output.status.code()), "{:?}: {said}", output.status);
        assert!(said.contains("store: silent: ") && said.contains("store is back after"), "{said}");
        let mut end = 0;
        for name in names {
            for (begin, bytes) in segments(&lab, name) {
                assert!(begin >= end && is_made(&made, begin, &bytes), "{via}: {name}: {begin}, {end}");
                end = begin + bytes.len() as u64 / 2;
            }
        }
    }
}

#[test]
fn host_options_of_a_graph_file_are_checked() {
    let lab = Lab::new();
    let output = lab.run(&ENDLESS.replace("HOST", "mst"), &["--check"]);
    let said = text(&output.stderr);
    assert!(said.contains("no stage runs on 'mst'") && said.contains("did you mean 'mast'?"), "{said}");
    assert_eq!(output.status.code(), Some(2));
}
