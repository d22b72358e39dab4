//! Links that are down for a while, firewalls that drop, and buffers that are full.
#![cfg(target_os = "linux")]

use std::time::Duration;

use serde_json::Value;

use super::hosts::Hosts;
use super::pair::{Ended, Pair, Plan, Running, assert_adds_up, wait_for_samples};
use super::table::{Bridge, Index, Listens, bridges, for_each};
use crate::support::{data, grebe};

/// Tries each bridge between two hosts: what `way` does to the way begins once samples come.
fn between_hosts(
    idle_timeout: &str,
    producer: &[&str],
    way: impl Fn(&Hosts) + Sync,
    judge: impl Fn(&Bridge, &Hosts, &mut Pair<'_>) + Sync,
) {
    for_each(|bridge| {
        if bridge.listens == Listens::Name {
            return;
        }
        let Some(hosts) = Hosts::make() else { return };
        let mut pair = Plan { hosts: Some(&hosts), idle_timeout, ..Plan::of(bridge) }.start(producer);
        pair.wait_for_samples();
        way(&hosts);
        judge(bridge, &hosts, &mut pair);
    });
}

/// Unsent samples are counted, and reported once.
fn assert_told(bridge: &Bridge, producer: &Ended) {
    assert!(producer.count("unsent_datagrams") > 10, "{}: {producer:?}", bridge.sink);
    assert_eq!(
        producer.said.matches("cannot send to 10.77.0.2:").count(),
        1,
        "{}: {producer:?}",
        bridge.sink
    );
}

fn assert_goes_on(bridge: &Bridge, _: &Hosts, pair: &mut Pair<'_>) {
    let (producer, recorder) = pair.finish();
    assert_eq!(producer.status, Some(0), "{}: {producer:?}", bridge.sink);
    recorder.assert_end(bridge);
    if bridge.is_datagram() {
        assert_told(bridge, &producer);
        assert_eq!(producer.said.matches("sending again after ").count(), 1, "{}", bridge.sink);
    }
    // Numbers of datagrams tell how many are missing, and not how long they were.
    if !bridge.is_datagram() || bridge.index != Index::Nothing {
        assert_adds_up(bridge, 400_000, &producer, &recorder);
    }
}

fn down_for_a_second(hosts: &Hosts) {
    hosts.set_link("down");
    std::thread::sleep(Duration::from_millis(1_000));
    hosts.set_link("up");
}

#[test]
fn a_link_that_is_down_for_a_second_ends_no_stream() {
    between_hosts("4s", &["--samples", "400k"], down_for_a_second, assert_goes_on);
}

/// The recording is valid up to the break, and unsent samples are counted, also if the command ends meanwhile. The
/// length of the break does not matter.
#[test]
fn a_link_that_stays_down_ends_the_sender_after_its_timeout_and_counts_unsent() {
    let stays_down = |hosts: &Hosts| hosts.set_link("down");
    between_hosts("500ms", &["--samples", "300k"], stays_down, |bridge, hosts, pair| {
        let recorder = pair.recorder.finish();
        pair.assert_whole(&recorder);
        // A connection is held up until its other end can be asked again.
        if !bridge.is_datagram() {
            hosts.set_link("up");
        }
        let producer = pair.producer.finish();
        producer.assert_in_order(bridge.sink);
        assert_eq!(recorder.status, Some(3), "{}: {recorder:?}", bridge.source);
        assert!(recorder.samples() < 300_000, "{}: {recorder:?}", bridge.source);
        if bridge.is_datagram() {
            assert_eq!((producer.status, producer.samples()), (Some(0), 300_000), "{producer:?}");
            assert_told(bridge, &producer);
        }
    });
}

#[test]
fn a_firewall_that_drops_ends_no_stream() {
    let drops = |hosts: &Hosts| {
        hosts.drop_output("ip daddr 10.77.0.2");
        std::thread::sleep(Duration::from_millis(700));
        hosts.drop_nothing();
    };
    between_hosts("4s", &["--samples", "400k"], drops, assert_goes_on);
}

#[test]
fn a_link_that_is_down_ends_no_recorder_beside_it() {
    let Some(hosts) = Hosts::make() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (graph, file) = (folder.path().join("graph.toml"), folder.path().join("x.sigmf-meta"));
    let stages = format!(
        r#"
        stage = [
            {{ id = "made", kind = "synth", params = {{ rate = "100k", samples = "400k" }} }},
            {{ id = "away", kind = "udp_out", params = {{ uri = "udp://10.77.0.2:5003" }} }},
            {{ id = "kept", kind = "record", params = {{ file = '{}' }} }},
        ]
        edge = [{{ from = "made", to = "away" }}, {{ from = "made", to = "kept" }}]"#,
        file.display()
    );
    std::fs::write(&graph, stages).unwrap();
    let run = hosts.command(1, &grebe(&["run", graph.to_str().unwrap(), "--json"]));
    let (mut graph, _) = Running::start(folder.path(), run, None);
    wait_for_samples(&file, 1);
    down_for_a_second(&hosts);
    let graph = graph.finish();
    assert_eq!(graph.status, Some(0), "{graph:?}");
    assert!(graph.count("unsent_datagrams") > 10, "{graph:?}");
    assert_eq!(data(&file).len(), 800_000);
}

/// Many small datagrams share a system call: a refused one causes no duplicate and no reordering.
#[test]
fn coalesced_datagrams_arrive_once_each_and_in_order() {
    let Some(hosts) = Hosts::make() else { return };
    let bridge = bridges()[0];
    let plan = Plan { hosts: Some(&hosts), rate: "18.75M", idle_timeout: "20s", ..Plan::of(bridge) };
    let mut pair = plan.start(&["--samples", "30M", "--datagram-size", "1400"]);
    pair.wait_for_samples();
    hosts.drop_output("meta l4proto udp");
    std::thread::sleep(Duration::from_millis(300));
    hosts.drop_nothing();
    let (producer, recorder) = pair.finish();
    assert_eq!((producer.status, recorder.status), (Some(0), Some(0)), "{producer:?} {recorder:?}");
    assert_eq!((recorder.count("duplicate_frames"), recorder.count("late_frames")), (0, 0), "{recorder:?}");
    let (unsent, lost) = (producer.count("unsent_datagrams"), recorder.count("network_frames"));
    assert!(unsent > 0 && lost > 0, "{producer:?} {recorder:?}");
    if recorder.count("kernel_drops") == 0 {
        // Descriptions are datagrams, too, and no frames.
        assert!(lost <= unsent && unsent - lost < 20, "{producer:?} {recorder:?}");
    }
    assert_adds_up(bridge, 30_000_000, &producer, &recorder);
    assert!(matches!(recorder.result["losses"]["unseen"], Value::Bool(false)), "{recorder:?}");
}

/// More data than the buffers between two processes hold: the writer waits, or counts drops.
#[test]
fn a_full_buffer_loses_nothing_unsaid() {
    for_each(|bridge| {
        let mut pair = Plan { rate: "2M", ..Plan::of(bridge) }.start(&["--samples", "4M"]);
        pair.wait_for_samples();
        pair.recorder.signal("-STOP");
        std::thread::sleep(Duration::from_millis(1_200));
        pair.recorder.signal("-CONT");
        let (producer, recorder) = pair.finish();
        assert_eq!(producer.status, Some(0), "{}: {producer:?}", bridge.sink);
        recorder.assert_end(bridge);
        if !bridge.is_datagram() || bridge.index != Index::Nothing {
            assert_adds_up(bridge, 4_000_000, &producer, &recorder);
        }
    });
}
