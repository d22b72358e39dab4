//! Peers that go and return, and others that come beside them.

use std::time::Duration;

use grebe::recording::SampleFile;

use super::hosts::Hosts;
use super::pair::{Plan, assert_adds_up, wait_for_samples};
use super::table::{Bridge, Index, Listens, for_each};

fn returning(bridge: &Bridge) -> Option<Plan<'_>> {
    let can = bridge.reconnects || bridge.is_datagram();
    can.then_some(Plan { reconnects: true, idle_timeout: "1500ms", ..Plan::of(bridge) })
}

#[test]
fn a_killed_producer_that_returns_continues_the_same_recording() {
    for_each(|bridge| {
        let Some(plan) = returning(bridge) else { return };
        let mut pair = plan.start(&[]);
        pair.wait_for_samples();
        pair.producer.signal("-KILL");
        let before = SampleFile::open(pair.file()).unwrap().len_samples();
        let mut producer = pair.another_producer(&["--samples", "80k"]);
        let (producer, recorder) = (producer.finish(), pair.recorder.finish());
        assert_eq!(producer.status, Some(0), "{}: {producer:?}", bridge.sink);
        // With reconnect, the end of a stream is not visible.
        let ends = bridge.is_datagram();
        assert_eq!(recorder.status, Some(if ends { 0 } else { 3 }), "{}: {recorder:?}", bridge.source);
        pair.assert_whole(&recorder);
        assert!(recorder.samples() > before, "{}: {before} {recorder:?}", bridge.source);
    });
}

#[test]
fn a_killed_recorder_that_returns_gets_the_current_samples() {
    for_each(|bridge| {
        let Some(plan) = returning(bridge) else { return };
        let mut pair = plan.start(&["--samples", "300k"]);
        pair.wait_for_samples();
        pair.recorder.signal("-KILL");
        pair.recorder.finish();
        std::thread::sleep(Duration::from_millis(300));
        let (mut recorder, file) = pair.another_recorder();
        let (producer, recorder) = (pair.producer.finish(), recorder.finish());
        assert_eq!(producer.status, Some(0), "{}: {producer:?}", bridge.sink);
        recorder.assert_in_order(bridge.source);
        let samples =
            SampleFile::open(&file).unwrap_or_else(|error| panic!("{error}: {recorder:?}")).len_samples();
        assert_eq!(samples, recorder.samples(), "{}", bridge.source);
        assert!(samples > 0 && samples < 300_000, "{}: {recorder:?} {producer:?}", bridge.source);
    });
}

#[test]
fn a_broker_that_was_killed_and_returns_is_found_again_by_both() {
    for_each(|bridge| {
        if bridge.listens != Listens::Broker {
            return;
        }
        let mut pair = Plan { reconnects: true, ..Plan::of(bridge) }.start(&["--samples", "300k"]);
        pair.wait_for_samples();
        let mut broker = pair.broker.take().unwrap();
        broker.signal("-KILL");
        broker.finish();
        std::thread::sleep(Duration::from_millis(300));
        let _broker = pair.another_broker();
        let (producer, recorder) = pair.finish();
        assert_eq!(producer.status, Some(0), "{producer:?}");
        for side in [&producer, &recorder] {
            assert_eq!(side.said.matches(" has gone").count(), 1, "{side:?}");
            assert_eq!(side.said.matches(" is there again").count(), 1, "{side:?}");
        }
        assert!(producer.lost_samples() > 0 && recorder.lost_samples() > 0, "{producer:?} {recorder:?}");
        assert!(recorder.samples() <= 300_000 - producer.lost_samples(), "{producer:?} {recorder:?}");
    });
}

#[test]
fn a_second_peer_changes_nothing_for_the_first() {
    for_each(|bridge| {
        // Ports of one host may be one sender's.
        let hosts = if bridge.is_datagram() { Hosts::make() } else { None };
        if bridge.is_datagram() && hosts.is_none() {
            return;
        }
        let mut pair = Plan { hosts: hosts.as_ref(), ..Plan::of(bridge) }.start(&["--samples", "150k"]);
        pair.wait_for_samples();
        let second = match bridge.listens {
            Listens::Datagrams | Listens::Source => pair.producer_beside(&["--samples", "20k"]),
            Listens::Sink | Listens::Broker | Listens::Name => pair.another_recorder().0,
        };
        let (producer, recorder) = pair.finish();
        drop(second);
        assert_eq!(producer.status, Some(0), "{}: {producer:?}", bridge.sink);
        recorder.assert_end(bridge);
        // A new stream of grebe frames counts as the returned sender, until it ends.
        if bridge.is_datagram() && bridge.index == Index::ToTheEnd {
            assert!(recorder.samples() + recorder.lost_samples() >= 150_000, "{producer:?} {recorder:?}");
            assert!(recorder.count("foreign_datagrams") > 0, "{recorder:?}");
        } else {
            assert_adds_up(bridge, 150_000, &producer, &recorder);
        }
    });
}

/// Two readers of a stream that others can read get the same.
#[test]
fn a_second_recorder_of_a_shared_stream_gets_all_of_it() {
    for_each(|bridge| {
        let is_shared = matches!(bridge.listens, Listens::Broker | Listens::Name)
            || matches!(bridge.scheme, "zmq:" | "rtl_tcp:") && bridge.listens == Listens::Sink;
        if !is_shared {
            return;
        }
        let mut pair = Plan::of(bridge).start(&["--samples", "150k"]);
        pair.wait_for_samples();
        let (mut second, file) = pair.another_recorder();
        wait_for_samples(&file, 1);
        let (_, first) = pair.finish();
        let second = second.finish();
        second.assert_end(bridge);
        assert!(second.samples() > 0 && second.samples() <= first.samples(), "{first:?} {second:?}");
    });
}
