//! Graphs on several hosts, which are folders of this machine: a script stands in for `ssh`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::support::{Good, MARK, finish, grebe, signal, text, wait_until};

/// Hosts called `mast` and `store`, each with a home.
pub(super) struct Lab(tempfile::TempDir);

impl Lab {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for home in ["mast", "store", "here"] {
            fs::create_dir(folder.path().join(home)).unwrap();
        }
        let script = r#"
            while [ "$1" != -- ]; do
                [ "$1" = -G ] && { echo "hostname 127.0.0.1"; exit; }
                shift
            done
            cd "FOLDER/$2" 2>/dev/null || { echo "ssh: Could not resolve hostname $2" >&2; exit 255; }
            echo started >> starts
            [ -e down ] && { echo "ssh: connect to host $2 port 22: No route to host" >&2; exit 255; }
            # By another name first: who looks for it finds all of it.
            echo $$ > pid.new && mv pid.new pid
            # No network but its own.
            [ -e alone ] && exec unshare -rn $3
            [ -e netns ] && exec ip netns exec "$(cat netns)" $3
            case "$3" in *.sh\ *) exec sh $3 ;; *) exec $3 ;; esac
        "#;
        let script = format!("#!/bin/sh\n{}", script.replace("FOLDER", folder.path().to_str().unwrap()));
        // By another process: one that this one starts meanwhile would have the file open for writing, too.
        let mut write = Command::new("sh")
            .args(["-c", "cat > \"$0\" && chmod +x \"$0\""])
            .arg(folder.path().join("ssh.sh"))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        write.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        assert!(write.wait().unwrap().success());
        Self(folder)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command_with(&self, program: &str, graph: &str, more: &[&str]) -> Command {
        let file = self.path("lab.toml");
        fs::write(&file, graph).unwrap();
        let ssh = self.path("ssh.sh").display().to_string();
        let own = ["run", file.to_str().unwrap(), "--no-config", "--ssh", &ssh, "--remote-path", program];
        let mut command = grebe(&[&own, more].concat());
        command.current_dir(self.path("here")).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(super) fn start(&self, graph: &str, more: &[&str]) -> Child {
        self.command_with(env!("CARGO_BIN_EXE_grebe"), graph, more).spawn().unwrap()
    }

    /// Its messages can be [read](Self::said) while it runs.
    pub(super) fn start_heard(&self, graph: &str, more: &[&str]) -> Child {
        let mut command = self.command_with(env!("CARGO_BIN_EXE_grebe"), graph, more);
        command.stderr(fs::File::create(self.path("said")).unwrap()).spawn().unwrap()
    }

    pub(super) fn said(&self) -> String {
        fs::read_to_string(self.path("said")).unwrap()
    }

    /// Number of reports that a stream continues after a gap.
    pub(super) fn goes_on(&self) -> usize {
        self.said().matches("the stream continues after a gap of").count()
    }

    pub(super) fn run(&self, graph: &str, more: &[&str]) -> Output {
        finish(self.start(graph, more))
    }

    pub(super) fn data(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name).with_extension("sigmf-data")).unwrap_or_default()
    }

    /// How often somebody has logged in at a host, or tried to.
    pub(super) fn starts(&self, host: &str) -> usize {
        fs::read_to_string(self.path(host).join("starts")).unwrap_or_default().lines().count()
    }

    /// The process of a host.
    pub(super) fn id(&self, host: &str) -> u32 {
        fs::read_to_string(self.path(host).join("pid")).unwrap().trim().parse().unwrap()
    }

    /// Length of a recording by its metadata while it is recorded. Its file is longer, because space is preallocated.
    pub(super) fn known_bytes(&self, name: &str) -> usize {
        let meta = fs::read(self.path(name).with_extension("sigmf-meta")).unwrap_or_default();
        let Ok(meta) = serde_json::from_slice::<Value>(&meta) else { return 0 };
        let known = meta["global"]["grebe:known_samples"].as_u64();
        known.map_or_else(|| self.data(name).len(), |samples| 2 * samples as usize)
    }

    /// Waits until a recording has this length.
    pub(super) fn await_data(&self, name: &str, bytes: usize) {
        wait_until(&format!("{name} has {bytes} bytes"), || self.known_bytes(name) >= bytes);
    }

    /// That a recording was closed in order: its metadata are there, and speak of all of its samples.
    pub(super) fn assert_closed(&self, name: &str) {
        let meta = fs::read(self.path(name).with_extension("sigmf-meta")).unwrap();
        let meta: Value = serde_json::from_slice(&meta).unwrap();
        assert!(meta["captures"][0].is_object(), "{meta}");
        super::run(&["info", "--verify", self.path(name).with_extension("sigmf-meta").to_str().unwrap()])
            .good();
    }
}

pub(super) fn is_alive(id: u32) -> bool {
    // Also a process that has ended and whose parent did not ask yet has a name here.
    fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
        || !Path::new("/proc/self").exists()
            && Command::new("kill")
                .args(["-0", &id.to_string()])
                .status()
                .is_ok_and(|status| status.success())
}

/// From a host over a second one to here, and a look at it on the way.
const THREE: &str = r#"
    stage = [
        { id = "adc", kind = "synth", host = "mast", params = { channels = 2, rate = "1M", wave = "noise", samples = "300k", free_run = true } },
        { id = "louder", kind = "gain", host = "store", params = { gain = [0.5, 2] } },
        { id = "meter", kind = "rate_meter", host = "store" },
        { id = "sum", kind = "select", params = { channels = [2, 1] } },
        { id = "disk", kind = "record", params = { file = "DISK", overwrite = true } },
        { id = "raw", kind = "record", host = "store", params = { file = "RAW", overwrite = true } },
    ]
    edge = [
        { from = "adc", to = "louder", capacity = 16 },
        { from = "adc", to = "raw" },
        { from = "louder", to = "meter", fuse = true },
        { from = "louder", to = "sum" },
        { from = "sum", to = "disk" },
    ]
"#;

/// Without `host = ...`.
fn on_one_host(graph: &str) -> String {
    graph.replace(", host = \"mast\"", "").replace(", host = \"store\"", "")
}

#[test]
fn a_graph_on_three_hosts_equals_the_graph_on_one_to_the_sample() {
    let lab = Lab::new();
    let one = on_one_host(THREE).replace("DISK", "one.sigmf-meta").replace("RAW", "raw.sigmf-meta");
    lab.run(&one, &[]).good();
    let three = THREE.replace("DISK", "three.sigmf-meta").replace("RAW", "raw.sigmf-meta");
    for (via, way) in [("ssh", "ssh"), ("tcp", "TCP"), ("udp", "UDP")] {
        let output = lab.run(&three, &["--json", "--via", via]);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{via}: {said}");
        for channel in ["ch1", "ch2"] {
            let (one, three) = (format!("here/one_{channel}"), format!("here/three_{channel}"));
            assert_eq!(lab.data(&one).len(), 600_000, "{via}");
            assert!(lab.data(&one) == lab.data(&three), "{via}: {channel} differs");
            let (one, three) = (format!("here/raw_{channel}"), format!("store/raw_{channel}"));
            assert!(
                !lab.data(&one).is_empty() && lab.data(&one) == lab.data(&three),
                "{via}: {channel} differs"
            );
        }
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let stages = report["graph"]["stages"].as_array().unwrap();
        let took = |name: &str| {
            let stage = stages.iter().find(|stage| stage["name"] == name);
            stage.unwrap_or_else(|| panic!("no {name}: {report}"))["samples_in"].clone()
        };
        for name in ["disk", "store:louder", "store:raw", "mast:adc-to-louder"] {
            assert_eq!(took(name), 300_000, "{via}: {name}");
        }
        assert_eq!(report["losses"]["queue_frames"], 0);
        assert!(said.contains(&format!("store: samples go over {way}\n")), "{said}");
        // Nothing goes from the mast to here.
        assert_eq!(said.contains(&format!("mast: samples go over {way}\n")), via == "ssh", "{said}");
        let between = match via {
            "ssh" => "through this host, as --via and cp.toml say".to_owned(),
            _ => format!("over {way}, directly"),
        };
        assert!(said.contains(&format!("mast -> store: samples go {between}\n")), "{said}");
        assert!(!is_alive(lab.id("mast")) && !is_alive(lab.id("store")), "{via}: somebody stayed");
    }
}

/// It goes on for ever: here, on both hosts, and from one to the other.
const ENDLESS: &str = r#"
    stage = [
        { id = "adc", kind = "synth", host = "mast", params = { rate = "200k", latency = "20ms" } },
        { id = "far", kind = "record", host = "store", params = { file = "far.sigmf-meta" } },
        { id = "near", kind = "record", params = { file = "near.sigmf-meta" } },
    ]
    edge = [
        { from = "adc", to = "far", policy = "POLICY" },
        { from = "adc", to = "near", policy = "POLICY" },
    ]
"#;

#[test]
fn one_ctrl_c_ends_all_hosts_in_order_without_loss() {
    for via in ["ssh", "tcp", "udp"] {
        let lab = Lab::new();
        let child = lab.start(&ENDLESS.replace("POLICY", "block"), &["--via", via, "--json"]);
        lab.await_data("store/far", 50_000);
        lab.await_data("here/near", 50_000);
        let ids = [lab.id("mast"), lab.id("store")];
        signal("-INT", child.id());
        let output = finish(child);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{via}: {said}");
        assert!(ids.iter().all(|&id| !is_alive(id)), "{via}: somebody stayed");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let stages = report["graph"]["stages"].as_array().unwrap();
        let samples = |name: &str, which: &str| {
            stages.iter().find(|stage| stage["name"] == name).unwrap()[which].as_u64().unwrap()
        };
        let made = samples("mast:adc", "samples_out");
        let recorded = (samples("store:far", "samples_in"), samples("near", "samples_in"));
        assert_eq!(recorded, (made, made), "{via}: {report}");
        for name in ["store/far", "here/near"] {
            assert_eq!(lab.data(name).len() as u64, 2 * made, "{via}: {name}");
            lab.assert_closed(name);
        }
    }
}

#[test]
fn a_host_that_is_killed_ends_a_graph_that_waits_for_it_and_recordings_are_good() {
    for (via, host, other) in [
        ("ssh", "mast", "store"),
        ("tcp", "mast", "store"),
        ("udp", "mast", "store"),
        ("tcp", "store", "mast"),
        ("udp", "store", "mast"),
    ] {
        let lab = Lab::new();
        let child = lab.start(&ENDLESS.replace("POLICY", "block"), &["--via", via]);
        lab.await_data("store/far", 50_000);
        lab.await_data("here/near", 50_000);
        signal("-KILL", lab.id(host));
        let output = finish(child);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{via}: {said}");
        assert!(said.contains(&format!("{host} is gone")), "{via}: {said}");
        assert!(!is_alive(lab.id(other)), "{via}: it stayed");
        lab.assert_closed("here/near");
        if host == "mast" {
            lab.assert_closed("store/far");
        }
    }
}

#[test]
fn a_graph_continues_without_a_lost_host_if_it_need_not_wait() {
    for via in ["ssh", "tcp", "udp"] {
        let lab = Lab::new();
        let child = lab.start(&ENDLESS.replace("POLICY", "drop_oldest"), &["--via", via, "--json"]);
        lab.await_data("store/far", 50_000);
        lab.await_data("here/near", 50_000);
        let goes_on = || {
            let before = lab.known_bytes("here/near");
            lab.await_data("here/near", before + 400_000);
        };
        // So that something is on the way to it.
        signal("-STOP", lab.id("store"));
        goes_on();
        signal("-KILL", lab.id("store"));
        wait_until("it is gone", || !is_alive(lab.id("store")));
        goes_on();
        signal("-INT", child.id());
        let output = finish(child);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{via}: {said}");
        assert!(said.contains("the rest of the graph continues without store"), "{via}: {said}");
        lab.assert_closed("here/near");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let stages = report["graph"]["stages"].as_array().unwrap();
        let link = stages.iter().find(|stage| stage["name"] == "mast:adc-to-far").unwrap();
        assert!(link["own"]["unconfirmed_samples"].as_u64().unwrap() > 0, "{via}: {report}");
    }
}

#[test]
fn killing_the_coordinator_ends_all_parts_of_its_graph() {
    for via in ["ssh", "tcp", "udp"] {
        let lab = Lab::new();
        let mut child = lab.start(&ENDLESS.replace("POLICY", "block"), &["--via", via]);
        lab.await_data("store/far", 50_000);
        let ids = [lab.id("mast"), lab.id("store")];
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until("all have ended", || ids.iter().all(|&id| !is_alive(id)));
        lab.assert_closed("store/far");
    }
}

#[test]
fn a_slow_consumer_loses_by_its_policy_and_the_loss_is_exact() {
    let lab = Lab::new();
    let graph = r#"
        stage = [
            { id = "adc", kind = "synth", host = "mast", params = { rate = "1M", samples = "6M", free_run = true } },
            { id = "slow", kind = "throttle", params = { rate = "3M" } },
            { id = "disk", kind = "record", params = { file = "slow.sigmf-meta", overwrite = true } },
        ]
        edge = [
            { from = "adc", to = "slow", capacity = 4, policy = "drop_oldest" },
            { from = "slow", to = "disk", capacity = 2 },
        ]
    "#;
    let output = lab.run(graph, &["--via", "ssh", "--json"]).good();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let queues = report["graph"]["queues"].as_array().unwrap();
    let queue = queues.iter().find(|queue| queue["from"] == "mast:adc").unwrap();
    let dropped = queue["dropped_samples"].as_u64().unwrap();
    assert!(dropped > 0, "{report}");
    assert_eq!(lab.data("here/slow").len() as u64 / 2 + dropped, 6_000_000, "{report}");
    let meta: Value = serde_json::from_slice(&fs::read(lab.path("here/slow.sigmf-meta")).unwrap()).unwrap();
    // Each gap stands in the recording, also that of a consumer for which nothing is left but the end.
    let field = |capture: &Value, name: &str| capture[name].as_u64().unwrap_or_default();
    let captures = meta["captures"].as_array().unwrap();
    let ends = captures[1..].iter().map(|next| field(next, "core:sample_start"));
    let (mut told, mut index) = (0, 0);
    for (capture, end) in captures.iter().zip(ends.chain([6_000_000 - dropped])) {
        told += field(capture, "core:global_index") - index;
        index = field(capture, "core:global_index") + end - field(capture, "core:sample_start");
    }
    assert_eq!((told, index), (dropped, 6_000_000), "{meta}");

    // A waiting producer loses nothing.
    lab.run(&graph.replace("drop_oldest", "block").replace("6M", "2M"), &["--via", "ssh"]).good();
    assert_eq!(lab.data("here/slow").len(), 4_000_000);
}

#[test]
fn a_host_that_cannot_join_is_an_error_and_nothing_is_opened() {
    let lab = Lab::new();
    let graph = ENDLESS.replace("POLICY", "block");
    let of_old = lab.path("old.sh");
    fs::write(&of_old, "echo \"error: unexpected argument '--serve' found\" >&2; exit 2").unwrap();
    let of_later = lab.path("later.sh");
    let ready = r#"{"grebe-cp":{"protocol":7,"version":"9.9.9","ticket":null,"reached_at":null,"way":null}}"#;
    fs::write(&of_later, format!("echo {MARK}; read line; echo '{ready}'")).unwrap();
    let failing = graph.replace("far.sigmf-meta", "no/such/far.sigmf-meta");
    let grebe = env!("CARGO_BIN_EXE_grebe").to_owned();
    let sh = |script: &Path| script.display().to_string();
    for (program, graph, words, status) in [
        ("/no/such/grebe".to_owned(), &graph, "`/no/such/grebe` is not installed on", 1),
        (sh(&of_old), &graph, "is too old to be started from here", 1),
        (sh(&of_later), &graph, "has grebe 9.9.9, which joins graphs in another way", 1),
        (grebe.clone(), &graph.replace("\"mast\"", "\"nowhere\""), "ssh cannot reach nowhere", 1),
        (grebe.clone(), &failing, "store: far: cannot create", 1),
        (grebe.clone(), &graph.replace("record\", host", "gian\", host"), "did you mean 'gain'?", 2),
        (
            grebe,
            &graph.replace(
                "record\", host = \"store\", params = { file = \"far.sigmf-meta\" }",
                "pipe_out\", host = \"store\"",
            ),
            "has no standard output",
            2,
        ),
    ] {
        let output = finish(lab.command_with(&program, graph, &["--via", "ssh"]).spawn().unwrap());
        let said = text(&output.stderr);
        assert!(said.contains(words), "no '{words}' in: {said}");
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(lab.data("here/near").is_empty(), "something has run");
    }
}

#[test]
fn a_check_of_hosts_tests_clocks_and_routes_and_starts_nothing() {
    let lab = Lab::new();
    let graph = ENDLESS.replace("POLICY", "block");
    for via in ["ssh", "udp"] {
        let output = lab.run(&graph, &["--via", via, "--check=hosts"]);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        for host in ["mast", "store"] {
            // One host has one clock.
            let line = said.lines().find(|line| line.starts_with(&format!("{host}: round trip"))).unwrap();
            assert!(line.contains("this host's (±"), "{line}");
        }
        let ways: &[&str] = match via {
            "ssh" => &[
                "mast: edge adc -> far, adc -> near needs 6.4 Mbit/s; the route from mast carries at least",
                "store: edge adc -> far needs 3.2 Mbit/s; the route to store carries at least",
            ],
            _ => &[
                "mast -> store: samples go over UDP, directly\n",
                "mast: edge adc -> near needs 3.2 Mbit/s; the route from mast carries at least",
                "mast -> store: edge adc -> far needs 3.2 Mbit/s; the route from mast to store carries at least",
            ],
        };
        assert!(ways.iter().all(|way| said.contains(way)), "{said}");
        assert!(!said.contains("its producer will wait") && !said.contains("the clock of"), "{said}");
        assert!(!is_alive(lab.id("mast")) && !is_alive(lab.id("store")), "somebody stayed");
        assert!(lab.data("store/far").is_empty() && lab.data("here/near").is_empty(), "something has run");
    }
    // A way that carries less, whatever the machine does meanwhile.
    let output = lab.run(&graph, &["--via", "ssh", "--bwlimit", "1M", "--check=hosts"]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("edge adc -> far, adc -> near needs 6.4 Mbit/s; the route from mast carries about "),
        "{said}"
    );
    assert!(said.contains("set policy = \"drop_oldest\""), "{said}");
    let output = lab.run(&graph.replace("store", "nowhere"), &["--via", "ssh", "--check=hosts"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}
