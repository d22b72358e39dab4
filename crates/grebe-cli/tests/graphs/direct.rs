//! Edges between two hosts that are both not the one that runs the graph: directly where one reaches the other.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::hosts::{Lab, is_alive};
use crate::support::{finish, signal, text};

/// There and back between two hosts, and from both to here.
const BOTH_WAYS: &str = r#"
    stage = [
        { id = "adc", kind = "synth", host = "mast", params = { rate = "1M", wave = "noise", samples = "300k", free_run = true } },
        { id = "louder", kind = "gain", host = "store", params = { gain = [2] } },
        { id = "back", kind = "record", host = "mast", params = { file = "back.sigmf-meta", overwrite = true } },
        { id = "there", kind = "record", host = "store", params = { file = "there.sigmf-meta", overwrite = true } },
        { id = "disk", kind = "record", params = { file = "NAME.sigmf-meta", overwrite = true } },
    ]
    edge = [
        { from = "adc", to = "louder", capacity = 16 },
        { from = "louder", to = "back", capacity = 8 },
        { from = "louder", to = "there" },
        { from = "louder", to = "disk" },
    ]
"#;

fn report(stdout: &[u8]) -> Value {
    serde_json::from_slice(stdout).unwrap()
}

#[test]
fn edges_in_both_directions_share_a_direct_way_and_carry_what_one_host_makes() {
    let lab = Lab::new();
    let one = BOTH_WAYS.replace(", host = \"mast\"", "").replace(", host = \"store\"", "");
    let output = lab.run(&one.replace("NAME", "one"), &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let made = lab.data("here/one");
    assert_eq!(made.len(), 600_000);
    for (more, way) in [(&["--via", "tcp"][..], "tcp"), (&["--via", "udp"], "udp"), (&[], "udp")] {
        let output = lab.run(&BOTH_WAYS.replace("NAME", "three"), &[&["--json"], more].concat());
        let said = text(&output.stderr);
        assert!(output.status.success(), "{way}: {said}");
        for name in ["mast/back", "store/there", "here/three"] {
            assert!(lab.data(name) == made, "{way}: {name} differs");
            lab.assert_closed(name);
        }
        let ways = &report(&output.stdout)["ways"];
        let between = ways.as_array().unwrap().iter().find(|it| it["other"] == "store").unwrap();
        assert_eq!(between["host"], "mast", "{ways}");
        // A busy machine may take longer to answer over UDP than TCP is waited for.
        assert!(between["way"] == way || more.is_empty() && between["way"] == "tcp", "{ways}");
        let name = between["way"].as_str().unwrap().to_uppercase();
        assert!(said.contains(&format!("mast <-> store: samples go over {name}, directly\n")), "{said}");
        assert!(!is_alive(lab.id("mast")) && !is_alive(lab.id("store")), "{way}: somebody stayed");
    }
}

/// It goes on for ever, and nothing of it comes here.
const ENDLESS: &str = r#"
    stage = [
        { id = "adc", kind = "synth", host = "mast", params = { rate = "200k", latency = "20ms" } },
        { id = "far", kind = "record", host = "store", params = { file = "far.sigmf-meta", overwrite = true } },
    ]
    edge = [{ from = "adc", to = "far" }]
"#;

/// At how many ports a process waits for TCP.
#[cfg(target_os = "linux")]
fn doors(id: u32) -> usize {
    let Ok(open) = fs::read_dir(format!("/proc/{id}/fd")) else { return 0 };
    let open: Vec<_> = open.filter_map(|it| fs::read_link(it.ok()?.path()).ok()).collect();
    let is_open = |inode: &str| open.iter().any(|it| it.as_os_str() == format!("socket:[{inode}]").as_str());
    let tables =
        ["tcp", "tcp6"].map(|name| fs::read_to_string(format!("/proc/{id}/net/{name}")).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines());
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|of| of.get(3) == Some(&"0A") && is_open(of[9]))
        .count()
}

#[test]
fn samples_pass_while_the_process_that_runs_the_graph_stands_still() {
    for via in ["tcp", "udp"] {
        let lab = Lab::new();
        let child = lab.start(ENDLESS, &["--via", via, "--json"]);
        lab.await_data("store/far", 50_000);
        // Each has a door for the process that runs the graph, and one of them has one for the other: those that were of no use are closed.
        #[cfg(target_os = "linux")]
        crate::hosts::eventually("three doors", || {
            ["mast", "store"].map(|host| doors(lab.id(host))).iter().sum::<usize>() == 3
        });
        signal("-STOP", child.id());
        // Two seconds of them: more than is on any way, and less than it takes until it is thought to be gone.
        let before = lab.known_bytes("store/far");
        lab.await_data("store/far", before + 800_000);
        signal("-CONT", child.id());
        signal("-INT", child.id());
        let output = finish(child);
        assert_eq!(output.status.code(), Some(130), "{via}: {}", text(&output.stderr));
        lab.assert_closed("store/far");
        let report = report(&output.stdout);
        let stages = report["graph"]["stages"].as_array().unwrap();
        let samples = |name: &str, which: &str| {
            stages.iter().find(|stage| stage["name"] == name).unwrap()[which].clone()
        };
        assert_eq!(samples("store:far", "samples_in"), samples("mast:adc", "samples_out"), "{report}");
    }
}

#[test]
fn where_neither_reaches_the_other_samples_go_through_here() {
    let alone = Command::new("unshare").args(["-rn", "true"]).stderr(Stdio::null()).status();
    if !alone.is_ok_and(|status| status.success()) {
        println!("skipped: a host without a network needs `unshare -rn`");
        return;
    }
    let lab = Lab::new();
    fs::write(lab.path("store/alone"), "").unwrap();
    let output = lab.run(&BOTH_WAYS.replace("NAME", "three"), &["--json"]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let words = "mast <-> store: samples go through this host, since neither reaches the other\n";
    assert!(said.contains(words), "{said}");
    let made = lab.data("here/three");
    assert_eq!(made.len(), 600_000);
    assert!(made == lab.data("store/there") && made == lab.data("mast/back"), "they differ");
    let ways = report(&output.stdout)["ways"].clone();
    let way = |host: &str, other: Value| {
        ways.as_array().unwrap().iter().find(|it| it["host"] == host && it["other"] == other).unwrap()["way"]
            .clone()
    };
    assert_eq!((way("mast", json!("store")), way("store", Value::Null)), (Value::Null, json!("ssh")));
    assert!(!is_alive(lab.id("mast")) && !is_alive(lab.id("store")), "somebody stayed");
}

#[test]
fn a_host_that_is_started_again_is_reached_through_here() {
    let lab = Lab::new();
    let again = r#"host = [{ name = "store", restart = "always" }]"#;
    let output = lab.run(&format!("{}{again}", BOTH_WAYS.replace("NAME", "three")), &["--via", "tcp"]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let words = "samples go through this host, since one of them is started again where it goes away\n";
    assert!(said.contains(words), "{said}");
    assert_eq!(lab.data("mast/back").len(), 600_000);
}
