//! Tests connections over simulated paths: every byte of both streams in order, within the memory bound, and
//! an end that both ends know. All in virtual time, so that the same seed gives the same result on every
//! machine.

use grebe_connection::Verdict;
use grebe_connection::internals::{Broken, SenderOptions};
use grebe_simulator::{Application, ConnectionReport, Link, Path, Stalls, simulate_connection};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000;
const MEGABYTE: u64 = 1_000_000;

fn link(mbit: f64, rtt_ms: u64, loss: f64) -> Link {
    let queue_bytes = ((mbit * 1e6 / 8.0 * rtt_ms as f64 / 1e3) as u64).max(64_000);
    Link { rate_bits_per_s: mbit * 1e6, delay_us: rtt_ms * 500, queue_bytes, loss, ..Link::default() }
}

/// Writes these amounts at these times.
fn writes(rtt_ms: u64, writes: &[(u64, u64)]) -> Application {
    let options = SenderOptions { rtt_us: Some(rtt_ms * 1_000), ..SenderOptions::default() };
    Application { writes: writes.to_vec(), options, ..Application::default() }
}

fn run(path: &Path, applications: [Application; 2], until_s: u64) -> [ConnectionReport; 2] {
    simulate_connection(path, &applications, 7, until_s * SECOND)
}

/// Both ends have everything that the other one wrote, and know it.
fn assert_whole(ends: &[ConnectionReport; 2], bytes: [u64; 2]) {
    for (end, bytes) in ends.iter().zip([bytes[1], bytes[0]]) {
        assert!(!end.corrupt && end.broken.is_none(), "{end:?}");
        assert_eq!(end.read_bytes, bytes);
        assert!(end.ended_us.is_some() && end.delivered_us.is_some() && end.over_us.is_some(), "{end:?}");
    }
}

fn seconds(us: Option<u64>) -> f64 {
    us.unwrap_or(u64::MAX) as f64 / 1e6
}

#[test]
fn a_stream_one_way_takes_as_long_as_a_transfer() {
    // Time of a file transfer of this length, from the answer of the handshake to the receiver's
    // confirmation, plus 3 %.
    for (mbit, rtt_ms, loss, loss_back, seconds_max) in [
        (100.0, 250, 0.01, 0.0, 5.27),
        (200.0, 50, 0.001, 0.0, 2.37),
        (50.0, 160, 0.02, 0.02, 9.44),
        (100.0, 250, 0.0, 0.0, 4.97),
    ] {
        let forward = link(mbit, rtt_ms, loss);
        let back = Link { loss: loss_back, ..forward.clone() };
        let path = Path { forward, back, changes: Vec::new() };
        let ends = run(&path, [writes(rtt_ms, &[(0, 50 * MEGABYTE)]), writes(rtt_ms, &[(0, 100)])], 60);
        assert_whole(&ends, [50 * MEGABYTE, 100]);
        let took_s = seconds(ends[0].delivered_us);
        assert!(took_s < seconds_max, "{mbit} Mbit/s, {rtt_ms} ms, {loss}: {took_s} s");
        let sent = ends[0].counters.wire_bytes as f64 / 50e6 * (1.0 - loss);
        assert!(sent < 1.06, "{sent}");
    }
}

#[test]
fn both_ways_at_once_take_what_one_way_takes() {
    let path = Path { back: link(100.0, 100, 0.01), forward: link(100.0, 100, 0.01), changes: Vec::new() };
    let bytes = [50 * MEGABYTE; 2];
    let ends = run(&path, [writes(100, &[(0, bytes[0])]), writes(100, &[(0, bytes[1])])], 60);
    assert_whole(&ends, bytes);
    for end in &ends {
        let took_s = seconds(end.ended_us);
        assert!(took_s < 5.5, "{took_s}: the wire alone takes 4.3 s, acknowledgements some 3 %");
    }
}

#[test]
fn eight_megabytes_in_small_pieces_arrive_within_seconds() {
    // Like 2,000 files of 4 KiB: few bytes at first, then the rest at the rate of a disk.
    let mut pieces = vec![(0, 200)];
    pieces.extend((0..2_000).map(|number| (1_000 + number * 20, 4_200)));
    let bytes: u64 = pieces.iter().map(|(_, bytes)| bytes).sum();
    let path = Path::symmetric(link(100.0, 250, 0.01));
    let (mut sum_s, seeds) = (0.0, 10);
    for seed in 0..seeds {
        let applications = [writes(250, &pieces), writes(250, &[(0, 200)])];
        let ends = simulate_connection(&path, &applications, seed, 60 * SECOND);
        assert_whole(&ends, [bytes, 200]);
        sum_s += seconds(ends[0].delivered_us) / seeds as f64;
    }
    // With the handshake's round trip: 1.75 s.
    assert!(sum_s < 1.60, "{sum_s}: the wire alone takes 0.7 s and a round trip");
}

#[test]
fn a_connection_with_little_traffic_ramps_up_like_a_new_one() {
    let path = Path::symmetric(link(100.0, 50, 0.002));
    // A few bytes each way, a hundred times per second, for half a minute; then a burst.
    let talk: Vec<_> = (0..3_000).map(|number| (number * 10_000, 300)).collect();
    let mut burst = talk.clone();
    burst.push((30 * SECOND, 20 * MEGABYTE));
    let talked = run(&path, [writes(50, &burst), writes(50, &talk)], 120);
    assert_whole(&talked, [900_000 + 20 * MEGABYTE, 900_000]);
    let fresh = run(&path, [writes(50, &[(0, 20 * MEGABYTE)]), writes(50, &[(0, 300)])], 120);
    let (talked_s, fresh_s) = (seconds(talked[0].delivered_us) - 30.0, seconds(fresh[0].delivered_us));
    assert!(talked_s < 1.15 * fresh_s, "{talked_s} s, {fresh_s} s at the beginning");
}

#[test]
fn talk_across_a_path_that_is_late_does_not_make_what_follows_slow() {
    let path = Path::symmetric(Link { jitter_us: 60_000, ..link(100.0, 50, 0.01) });
    let mut burst: Vec<_> = vec![(0, 5 * MEGABYTE)];
    burst.extend((0..1_000).map(|number| (5 * SECOND + number * 20_000, 300)));
    burst.push((25 * SECOND, 20 * MEGABYTE));
    let talked = run(&path, [writes(50, &burst), writes(50, &[])], 120);
    assert_whole(&talked, [25 * MEGABYTE + 300_000, 0]);
    let took_s = seconds(talked[0].delivered_us) - 25.0;
    assert!(took_s < 3.0, "{took_s}: the wire alone takes 1.7 s");
}

/// Maximum seconds of five runs for eight seconds of data. Both ends, the path, or all of them stall for
/// `for_ms` every `every_ms`.
fn seconds_with_stalls(mbit: f64, rtt_ms: u64, loss: f64, (for_ms, every_ms): (u64, u64), who: &str) -> f64 {
    let bytes = (mbit * 1e6) as u64;
    let stalls = |seed| Some(Stalls { every_us: every_ms * 1_000, for_us: for_ms * 1_000, seed });
    let path_stalls = stalls(0).filter(|_| who != "ends");
    let path = Path::symmetric(Link { stalls: path_stalls, ..link(mbit, rtt_ms, loss) });
    let took_s = |seed: u64| {
        let end_stalls = |end: u64| stalls(100 * end + 7 * seed).filter(|_| who != "path");
        let one = Application { stalls: end_stalls(1), ..writes(rtt_ms, &[(0, bytes)]) };
        let other = Application { stalls: end_stalls(2), ..writes(rtt_ms, &[(0, 100)]) };
        let ends = simulate_connection(&path, &[one, other], seed, 200 * SECOND);
        assert_whole(&ends, [bytes, 100]);
        seconds(ends[0].delivered_us)
    };
    (0..5).map(took_s).fold(0.0, f64::max)
}

#[test]
fn ends_that_are_stopped_now_and_then_lose_little_more_than_their_time() {
    // Beside other load. A stall is not the path's rate; otherwise the rate would fall by the unsent data
    // again and again.
    for (mbit, rtt_ms, loss, stalls, seconds_max) in [
        (100.0, 100, 0.0, (20, 50), 11.0),
        (100.0, 250, 0.01, (20, 50), 12.5),
        (20.0, 60, 0.001, (20, 50), 11.0),
        (100.0, 100, 0.0, (60, 300), 11.0),
        (100.0, 100, 0.0, (300, 1_000), 15.5),
    ] {
        let took_s = seconds_with_stalls(mbit, rtt_ms, loss, stalls, "ends");
        assert!(took_s < seconds_max, "{mbit} Mbit/s, {rtt_ms} ms, {stalls:?}: {took_s} s");
    }
}

#[test]
fn a_path_that_stalls_now_and_then_is_not_taken_for_slow() {
    for (mbit, rtt_ms, loss, stalls, who, seconds_max) in [
        (100.0, 100, 0.0, (300, 1_000), "path", 14.5),
        (100.0, 250, 0.01, (300, 1_000), "path", 15.0),
        (20.0, 60, 0.001, (300, 1_000), "path", 14.0),
        (100.0, 250, 0.01, (300, 1_000), "all", 22.5),
        // The first train arrives at once when the path resumes.
        (100.0, 250, 0.01, (20, 50), "path", 11.0),
        (100.0, 250, 0.01, (20, 50), "all", 12.5),
    ] {
        let took_s = seconds_with_stalls(mbit, rtt_ms, loss, stalls, who);
        assert!(took_s < seconds_max, "{mbit} Mbit/s, {rtt_ms} ms, {stalls:?}, {who}: {took_s} s");
    }
}

#[test]
fn an_idle_connection_stays_and_costs_little() {
    let path = Path::symmetric(link(100.0, 50, 0.01));
    let bytes = 20 * MEGABYTE;
    let ends =
        run(&path, [writes(50, &[(0, 1_000), (300 * SECOND, bytes)]), writes(50, &[(299 * SECOND, 1)])], 400);
    assert_whole(&ends, [bytes + 1_000, 1]);
    let took_s = seconds(ends[0].delivered_us) - 300.0;
    assert!(took_s < 2.6, "{took_s}: the wire alone takes 1.7 s");
    // Five minutes of silence: a packet per second in each direction, and its reports.
    assert!(ends[1].counters.packets < 700, "{:?}", ends[1].counters);
    assert!(ends[0].replies < 2_400, "{} reports", ends[0].replies);
}

#[test]
fn a_question_is_answered_in_a_round_trip_although_packets_are_lost() {
    // Of a hundred questions, a tenth is lost, and so are answers.
    let path = Path { back: link(20.0, 100, 0.1), forward: link(20.0, 100, 0.1), changes: Vec::new() };
    let questions: Vec<_> = (0..100).map(|number| (number * SECOND, 300)).collect();
    let ends = run(&path, [writes(100, &questions), writes(100, &[(99 * SECOND, 300)])], 200);
    assert_whole(&ends, [30_000, 300]);
    let last_s = seconds(ends[1].ended_us) - 99.0;
    assert!(last_s < 0.4, "{last_s}");
}

#[test]
fn a_reader_that_stops_holds_the_writer_back_and_nothing_is_lost() {
    let path = Path::symmetric(link(200.0, 40, 0.005));
    let bytes = 60 * MEGABYTE;
    let reader = Application { pauses_us: Some((SECOND / 2, 20 * SECOND)), ..writes(40, &[(0, 10)]) };
    let ends = run(&path, [writes(40, &[(0, bytes)]), reader], 60);
    assert_whole(&ends, [bytes, 10]);
    let waiting_bytes = ends[1].waiting_bytes_max;
    assert!((2 * MEGABYTE..12 * MEGABYTE).contains(&waiting_bytes), "{waiting_bytes}");
    assert!(ends[0].counters.packets < 56_000, "{:?}: what is not taken is not sent", ends[0].counters);
    let took_s = seconds(ends[0].delivered_us) - 20.0;
    assert!(took_s < 3.2, "{took_s}: what is left takes 2.2 s");
}

#[test]
fn a_slow_reader_sets_the_pace() {
    let path = Path::symmetric(link(200.0, 40, 0.0));
    let reader = Application { reads_bytes_per_s: Some(2e6), ..writes(40, &[(0, 10)]) };
    let ends = run(&path, [writes(40, &[(0, 20 * MEGABYTE)]), reader], 60);
    assert_whole(&ends, [20 * MEGABYTE, 10]);
    let took_s = seconds(ends[1].ended_us);
    assert!((9.9..11.0).contains(&took_s), "{took_s}: 20 MB at 2 MB/s");
}

#[test]
fn an_end_that_stops_tells_its_peer() {
    let path = Path::symmetric(link(50.0, 80, 0.05));
    for stops in [0, 1] {
        let mut applications = [writes(80, &[(0, 50 * MEGABYTE)]), writes(80, &[(0, 10)])];
        applications[stops].stops_us = Some(2 * SECOND);
        let ends = run(&path, applications, 60);
        assert_eq!(ends[stops].broken, Some(Broken::Stopped));
        assert_eq!(ends[1 - stops].broken, Some(Broken::ByPeer(Verdict::Cancelled)));
        for end in &ends {
            assert!(!end.corrupt && seconds(end.over_us) < 3.5, "{end:?}");
        }
    }
}

#[test]
fn an_idle_end_that_stops_tells_its_peer() {
    let path = Path::symmetric(link(50.0, 80, 0.0));
    for stops in [0, 1] {
        let mut applications = [writes(80, &[(50 * SECOND, 10)]), writes(80, &[(0, 10)])];
        applications[stops].stops_us = Some(2 * SECOND);
        let ends = run(&path, applications, 60);
        assert_eq!(ends[1 - stops].broken, Some(Broken::ByPeer(Verdict::Cancelled)));
        assert!(seconds(ends[1 - stops].over_us) < 3.0);
    }
}

#[test]
fn a_vanished_peer_is_noticed_and_not_taken_for_an_end_of_stream() {
    let path = Path::symmetric(link(50.0, 80, 0.0));
    for dies in [0, 1] {
        let mut applications = [writes(80, &[(0, 50 * MEGABYTE)]), writes(80, &[(0, 10), (90 * SECOND, 10)])];
        applications[dies].dies_us = Some(2 * SECOND);
        applications[1 - dies].options.silence_us_max = 10 * SECOND;
        let ends = run(&path, applications, 60);
        let left = &ends[1 - dies];
        assert_eq!((left.broken, left.ended_us), (Some(Broken::Silent), None));
        assert!((11.9..12.5).contains(&seconds(left.over_us)), "{left:?}");
    }
}

fn any_link() -> impl Strategy<Value = Link> {
    let base = (0.3..500.0_f64, 0..300_u64, 0..40_u64, 0.2..3.0_f64, 0.0..0.2_f64);
    let more =
        (1..10_u32, prop_oneof![Just(0.0), 0.0..0.1], prop_oneof![Just(1_472_usize), 1_200..1_472_usize]);
    let stalls = prop::option::of((20_000..2_000_000_u64, 0.0..0.5_f64, 0..1_000_u64));
    (base, more, stalls).prop_map(
        |((mbit, delay_ms, jitter_ms, queue, loss), (burst, duplicates, datagram_bytes_max), stalls)| Link {
            rate_bits_per_s: mbit * 1e6,
            delay_us: delay_ms * 1_000,
            jitter_us: jitter_ms * 1_000,
            queue_bytes: ((mbit * 1e6 / 8.0 * delay_ms as f64 / 500.0 * queue) as u64).max(30_000),
            policer: None,
            loss,
            burst,
            duplicates,
            datagram_bytes_max,
            stalls: stalls.map(|(every_us, share, seed)| Stalls {
                every_us,
                for_us: (every_us as f64 * share) as u64,
                seed,
            }),
        },
    )
}

fn any_application() -> impl Strategy<Value = Application> {
    let writes = prop::collection::vec((0..3_000_000_u64, prop_oneof![1..200_u64, 1..300_000_u64]), 0..12);
    let reads = prop::option::of(20_000.0..5e6_f64);
    let pauses = prop::option::of((0..3_000_000_u64, 0..3_000_000_u64));
    (writes, reads, pauses, any::<u64>()).prop_map(|(mut writes, reads_bytes_per_s, pauses, seed)| {
        writes.sort_unstable();
        let options = SenderOptions { seed, ..SenderOptions::default() };
        let pauses_us = pauses.map(|(from_us, for_us)| (from_us, from_us + for_us));
        Application { writes, reads_bytes_per_s, pauses_us, options, ..Application::default() }
    })
}

/// Number of random connections; `GREBE_TRANSFERS=10000` is the long form, which takes minutes.
fn connections() -> u32 {
    std::env::var("GREBE_TRANSFERS").ok().and_then(|count| count.parse().ok()).unwrap_or(200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: connections(), ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_in_order_both_ways_whatever_the_path_does(
        forward in any_link(), back in any_link(), one in any_application(), other in any_application(), seed: u64,
        dark in prop::option::of((0..4_u64, 1..4_u64)),
    ) {
        let mut changes = Vec::new();
        if let Some((from_s, for_s)) = dark {
            let lost = |link: &Link| Link { loss: 1.0, ..link.clone() };
            changes.push((from_s * SECOND, lost(&forward), lost(&back)));
            changes.push(((from_s + for_s) * SECOND, forward.clone(), back.clone()));
        }
        let bytes = [&one, &other].map(|application| application.writes.iter().map(|(_, bytes)| bytes).sum::<u64>());
        let path = Path { forward, back, changes };
        let ends = simulate_connection(&path, &[one, other], seed, 1_200 * SECOND);
        for (end, bytes) in ends.iter().zip([bytes[1], bytes[0]]) {
            prop_assert!(!end.corrupt);
            prop_assert_eq!(end.read_bytes, bytes);
            prop_assert!(end.ended_us.is_some(), "{:?}", end);
            prop_assert!(end.memory_bytes_max < 2 << 20, "{} bytes of state", end.memory_bytes_max);
        }
        // The last word may be lost with the path. Then one end does not know that the other one has
        // everything.
        prop_assert!(ends.iter().any(|end| end.broken.is_none() && end.delivered_us.is_some()), "{:?}", ends);
    }
}
