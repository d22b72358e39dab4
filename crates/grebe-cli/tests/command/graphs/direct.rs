//! Edges between two hosts that are both not the one that runs the graph: directly where one reaches the other.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::hosts::{Lab, is_alive};
use super::restart::{is_made, kill, known_segments, made, segments, stage};
use crate::support::{Good, finish, signal, text, wait_until};

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
    lab.run(&one.replace("NAME", "one"), &[]).good();
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
        let ways = &report(&output.stdout)["routes"];
        let between = ways.as_array().unwrap().iter().find(|it| it["other"] == "store").unwrap();
        assert_eq!(between["host"], "mast", "{ways}");
        // A busy machine may take longer to answer over UDP than TCP is waited for.
        assert!(between["route"] == way || more.is_empty() && between["route"] == "tcp", "{ways}");
        let name = between["route"].as_str().unwrap().to_uppercase();
        assert!(said.contains(&format!("mast <-> store: samples go over {name}, directly\n")), "{said}");
        assert!(!is_alive(lab.id("mast")) && !is_alive(lab.id("store")), "{way}: somebody stayed");
    }
}

/// It runs for ever, and none of its data passes through here.
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
fn samples_flow_while_the_coordinator_is_stopped() {
    for via in ["tcp", "udp"] {
        let lab = Lab::new();
        let child = lab.start(ENDLESS, &["--via", via, "--json"]);
        lab.await_data("store/far", 50_000);
        // Each has a port for the process that runs the graph, and one of them has one for the other; unused ports
        // are closed.
        #[cfg(target_os = "linux")]
        wait_until("three doors", || {
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
fn hosts_that_cannot_reach_each_other_send_through_this_one() {
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
    let words = "mast <-> store: samples go through this host, because neither reaches the other\n";
    assert!(said.contains(words), "{said}");
    let made = lab.data("here/three");
    assert_eq!(made.len(), 600_000);
    assert!(made == lab.data("store/there") && made == lab.data("mast/back"), "they differ");
    let ways = report(&output.stdout)["routes"].clone();
    let way = |host: &str, other: Value| {
        ways.as_array().unwrap().iter().find(|it| it["host"] == host && it["other"] == other).unwrap()["route"]
            .clone()
    };
    assert_eq!((way("mast", json!("store")), way("store", Value::Null)), (Value::Null, json!("ssh")));
    assert!(!is_alive(lab.id("mast")) && !is_alive(lab.id("store")), "somebody stayed");
}

/// From one host to another, for ever. The generator waits, and leaves nothing out where the machine is busy.
const ENDLESS_THERE: &str = r#"
    stage = [
        { id = "adc", kind = "synth", host = "mast", params = { rate = "200k", wave = "noise", free_run = true } },
        { id = "pace", kind = "throttle", host = "mast" },
        { id = "far", kind = "record", host = "store", params = { file = "far.sigmf-meta" } },
    ]
    edge = [
        { from = "adc", to = "pace", capacity = 1 },
        { from = "pace", to = "far", policy = "POLICY" },
    ]
"#;

fn restarted(host: &str, policy: &str) -> String {
    ENDLESS_THERE.replace("POLICY", policy)
        + &format!("host = [{{ name = \"{host}\", restart = \"always\" }}]")
}

/// Number of times that the hosts' links joined directly, and through here: a busy machine may answer too late.
fn joined(lab: &Lab) -> [usize; 2] {
    [", directly (after ", "because neither reaches the other (after "]
        .map(|words| lab.said().matches(words).count())
}

/// Number of samples that were made, that left the mast, and that may be lost in flight.
fn sent(report: &Value) -> [u64; 3] {
    let link = stage(report, "mast:pace-to-far");
    let of = |value: &Value| value.as_u64().unwrap();
    let made = &stage(report, "mast:pace")["samples_out"];
    [of(made), of(&link["samples_in"]), of(&link["own"]["unconfirmed_samples"])]
}

/// Checks that the recordings are contiguous and equal to the generator's output; returns their number of samples.
fn recorded(lab: &Lab, names: &[&str], total: u64) -> u64 {
    let made = made(lab);
    let (mut end, mut samples) = (0, 0);
    for name in names {
        for (begin, bytes) in known_segments(lab, name) {
            assert!(begin >= end, "{name} continues at {begin}, after an end at {end}");
            assert!(is_made(&made, begin, &bytes), "{name}: other samples from {begin} on");
            (end, samples) = (begin + bytes.len() as u64 / 2, samples + bytes.len() as u64 / 2);
        }
    }
    assert_eq!(end, total, "the last sample that was made is the last that was recorded");
    samples
}

#[test]
fn a_source_that_is_killed_again_and_again_is_reached_directly_each_time() {
    for via in ["tcp", "udp"] {
        let lab = Lab::new();
        let made = made(&lab);
        let child = lab.start_heard(&restarted("mast", "block"), &["--via", via, "--json"]);
        for kills in 0..4 {
            let before = lab.known_bytes("store/far");
            lab.await_data("store/far", before + 40_000);
            if kills < 3 {
                kill(&lab, "mast");
                wait_until("it is heard again", || lab.goes_on() == kills + 1);
            }
        }
        signal("-INT", child.id());
        let output = finish(child);
        let said = lab.said();
        assert_eq!(output.status.code(), Some(130), "{via}: {said}");
        let [directly, through] = joined(&lab);
        assert!(directly > 0 && directly + through == 3, "{via}: {said}");
        let report = report(&output.stdout);
        let way = &report["routes"].as_array().unwrap().last().unwrap()["route"];
        assert!(*way == via || through > 0, "{report}");
        let segments = segments(&lab, "store/far");
        assert_eq!(segments.len(), 4, "{via}: {said}");
        assert!(segments.iter().all(|(_, bytes)| is_made(&made, 0, bytes)), "{via}: other samples");
        let gaps: Vec<u64> =
            segments.windows(2).map(|pair| pair[1].0 - pair[0].0 - pair[0].1.len() as u64 / 2).collect();
        let own = &stage(&report, "store:far-from-pace")["own"];
        assert!(gaps.iter().all(|&gap| gap > 0), "{gaps:?}");
        assert_eq!(own["away_samples"].as_u64(), Some(gaps.iter().sum()), "{via}: {report}");
        assert_eq!(own["producer_restarts"], 3, "{via}: {report}");
    }
}

#[test]
fn a_recorder_that_is_killed_again_and_again_is_reached_directly_each_time() {
    for (via, policy) in [("tcp", "drop_oldest"), ("udp", "drop_oldest"), ("udp", "block")] {
        let lab = Lab::new();
        let child = lab.start_heard(&restarted("store", policy), &["--via", via, "--json"]);
        let names = ["store/far", "store/far_2", "store/far_3", "store/far_4"];
        for (kills, name) in names.into_iter().enumerate() {
            lab.await_data(name, 40_000);
            if kills < 3 {
                kill(&lab, "store");
            }
        }
        signal("-INT", child.id());
        let output = finish(child);
        let said = lab.said();
        assert_eq!(output.status.code(), Some(130), "{via}: {said}");
        let report = report(&output.stdout);
        assert_eq!(stage(&report, "store")["own"]["restarts"], 3, "{report}");
        let [directly, through] = joined(&lab);
        assert!(directly > 0 && directly + through == 3, "{via}: {said}");
        lab.assert_closed("store/far_4");
        let [made, sent, unconfirmed] = sent(&report);
        let recorded = recorded(&lab, &names, made);
        assert!(recorded <= sent && unconfirmed < sent, "{recorded}: {report}");
        // Its producer has waited.
        assert!(policy != "block" || made == sent, "{report}");
    }
}

#[test]
fn a_stalled_host_is_reported_soon_and_rejoined_with_losses_counted() {
    for via in ["tcp", "udp"] {
        let lab = Lab::new();
        let child = lab.start_heard(&restarted("store", "drop_oldest"), &["--via", via, "--json"]);
        for times in 1..=2 {
            let before = lab.known_bytes("store/far");
            lab.await_data("store/far", before + 40_000);
            signal("-STOP", lab.id("store"));
            let words = "no data between mast and store: mast has received nothing from store for 2.5 s, nor has this host";
            wait_until("it is told", || lab.said().matches(words).count() == times);
            signal("-CONT", lab.id("store"));
            wait_until("it is joined again", || joined(&lab).iter().sum::<usize>() == times);
        }
        let before = lab.known_bytes("store/far");
        lab.await_data("store/far", before + 40_000);
        signal("-INT", child.id());
        let output = finish(child);
        let said = lab.said();
        assert_eq!(output.status.code(), Some(130), "{via}: {said}");
        assert_eq!(lab.starts("store"), 1, "it was there all the time: {said}");
        lab.assert_closed("store/far");
        let [made, sent, unconfirmed] = sent(&report(&output.stdout));
        let recorded = recorded(&lab, &["store/far"], made);
        assert!(
            recorded <= sent && sent <= recorded + unconfirmed,
            "{via}: {recorded} of {sent}, {unconfirmed}"
        );
    }
}

#[test]
fn a_stalled_host_is_reported_and_a_waiting_producer_loses_nothing() {
    for via in ["tcp", "udp"] {
        let lab = Lab::new();
        let child = lab.start_heard(&ENDLESS_THERE.replace("POLICY", "block"), &["--via", via, "--json"]);
        lab.await_data("store/far", 40_000);
        signal("-STOP", lab.id("store"));
        wait_until("it is told", || lab.said().contains("no data between mast and store: mast has received"));
        signal("-CONT", lab.id("store"));
        wait_until("so is that it is heard", || {
            lab.said().contains("mast receives data from store again, after ")
        });
        let before = lab.known_bytes("store/far");
        lab.await_data("store/far", before + 40_000);
        signal("-INT", child.id());
        let output = finish(child);
        let said = lab.said();
        assert_eq!(output.status.code(), Some(130), "{via}: {said}");
        let [made, sent, unconfirmed] = sent(&report(&output.stdout));
        assert_eq!(
            (recorded(&lab, &["store/far"], made), sent, unconfirmed),
            (made, made, 0),
            "{via}: {said}"
        );
    }
}

/// Two hosts with a cable between them, and no network to here. Only root can make them.
#[cfg(target_os = "linux")]
struct Cable([String; 2]);

#[cfg(target_os = "linux")]
impl Cable {
    /// `None` with a note if network namespaces are unavailable.
    fn between(lab: &Lab) -> Option<Self> {
        let cable = Self(["mast", "store"].map(|host| format!("gd{}{host}", std::process::id())));
        let [mast, store] = &cable.0;
        let lay = || {
            for name in &cable.0 {
                ip(&["netns", "add", name])?;
                ip(&["-n", name, "link", "set", "lo", "up"])?;
            }
            ip(&["-n", mast, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", store])?;
            for (name, address) in [(mast, "10.98.1.1/24"), (store, "10.98.1.2/24")] {
                ip(&["-n", name, "addr", "add", address, "dev", "eth0"])?;
            }
            cable.plug(true)
        };
        if let Err(why) = lay() {
            println!("skipped: no network namespaces with a cable between: {why}");
            return None;
        }
        for (host, name) in ["mast", "store"].into_iter().zip(&cable.0) {
            fs::write(lab.path(host).join("netns"), name).unwrap();
        }
        Some(cable)
    }

    /// Takes the cable out, or puts it in again.
    fn plug(&self, is_in: bool) -> Result<(), String> {
        let state = if is_in { "up" } else { "down" };
        self.0.iter().try_for_each(|name| ip(&["-n", name, "link", "set", "eth0", state]))
    }
}

#[cfg(target_os = "linux")]
impl Drop for Cable {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = ip(&["netns", "del", name]);
        }
    }
}

#[cfg(target_os = "linux")]
fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| format!("ip: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(text(&output.stderr)) }
}

#[cfg(target_os = "linux")]
#[test]
fn after_a_cut_cable_samples_pass_through_this_host_until_a_restart() {
    let lab = Lab::new();
    let Some(cable) = Cable::between(&lab) else { return };
    let child = lab.start_heard(&restarted("store", "drop_oldest"), &["--json"]);
    lab.await_data("store/far", 40_000);
    assert!(lab.said().contains(", directly\n"), "{}", lab.said());
    cable.plug(false).unwrap();
    wait_until("it is told", || lab.said().contains("no data between mast and store: "));
    let through = "mast -> store: samples go through this host, because neither reaches the other (after ";
    wait_until("it goes another way", || lab.said().contains(through));
    let before = lab.known_bytes("store/far");
    lab.await_data("store/far", before + 40_000);
    // Where it is started again without a cable, they still do not reach each other.
    kill(&lab, "store");
    lab.await_data("store/far_2", 40_000);
    cable.plug(true).unwrap();
    let mut names = vec!["store/far".to_owned(), "store/far_2".to_owned()];
    while joined(&lab)[0] == 0 {
        assert!(names.len() < 6, "it does not go directly again: {}", lab.said());
        kill(&lab, "store");
        names.push(format!("store/far_{}", names.len() + 1));
        lab.await_data(names.last().unwrap(), 40_000);
    }
    signal("-INT", child.id());
    let output = finish(child);
    let said = lab.said();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(!said.contains("nor has this host"), "it was there all the time: {said}");
    lab.assert_closed(names.last().unwrap());
    let [made, sent, unconfirmed] = sent(&report(&output.stdout));
    let recorded = recorded(&lab, &names.iter().map(String::as_str).collect::<Vec<_>>(), made);
    assert!(recorded <= sent && unconfirmed < sent, "{recorded} of {sent}, {unconfirmed}: {said}");
}
