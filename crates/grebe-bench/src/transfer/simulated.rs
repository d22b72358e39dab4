//! Links in the simulator: the protocol's own core, and TCP flows as models, over the same path in virtual time.

use std::thread;

use grebe_simulator::{Congestion, Flow, Path, TcpFlow, simulate, simulate_beside};

use super::link::Link;
use super::options::Options;
use super::row::{LinkRuns, PhaseRow, Sent, TcpRun};
use crate::error::{Error, Result};
use crate::row::{Progress, Tell};

/// A row per link; its repeats run beside each other, as their time is virtual.
pub(super) fn run(options: &Options, links: &[Link], tell: Tell) -> Result<()> {
    for link in links {
        options.check_cancel()?;
        tell(Progress::Doing(&format!("link {}, {}, in the simulator", link.name, link.words())));
        let path = path_of(link);
        let seeds: Vec<u64> =
            (0..u64::from(options.repeats)).map(|at| options.seed.wrapping_add(at)).collect();
        let tcp = |congestion| beside_each_other(&seeds, |&seed| tcp(link, &path, congestion, seed));
        let (ours, cubic, bbr) = thread::scope(|scope| {
            let cubic = scope.spawn(|| tcp(Congestion::Cubic));
            let bbr = scope.spawn(|| tcp(Congestion::Bbr));
            let ours = beside_each_other(&seeds, |&seed| ours(link, &path, seed));
            (ours, cubic.join(), bbr.join())
        });
        let panicked = |_| Error::wrong("transfer", "a simulation panicked");
        let tcp = [("TCP CUBIC", cubic.map_err(panicked)??), ("TCP BBR", bbr.map_err(panicked)??)];
        let sent = ours?.into_iter().collect::<Result<_>>()?;
        let runs = LinkRuns { link, over: "simulator", sent, tcp, patience_s: PATIENCE_S, machine: None };
        tell(Progress::Row(&runs.row()));
    }
    Ok(())
}

/// Results of all jobs, on a thread each.
pub(super) fn beside_each_other<J: Sync, T: Send>(
    jobs: &[J],
    work: impl Fn(&J) -> T + Sync,
) -> Result<Vec<T>> {
    thread::scope(|scope| {
        let threads: Vec<_> = jobs.iter().map(|job| scope.spawn(|| work(job))).collect();
        let results = threads.into_iter().map(|thread| thread.join());
        results.collect::<std::result::Result<_, _>>()
    })
    .map_err(|_| Error::wrong("transfer", "a simulation panicked"))
}

fn ours(link: &Link, path: &Path, seed: u64) -> Result<Sent> {
    let mut flow = Flow::of(link.file_bytes);
    (flow.options.rtt_us, flow.options.seed) = (Some((link.rtt_ms * 1e3) as u64), seed);
    let ends = simulate(path, &[flow], seed, OURS_US_MAX);
    let end = ends.first().filter(|end| end.is_whole());
    let (Some(end), Some(done_us)) = (end, end.and_then(|end| end.done_us)) else {
        let what = format!("{} with seed {seed}: the file did not come whole", link.words());
        return Err(Error::wrong("transfer", what));
    };
    Ok(Sent {
        seconds: done_us as f64 / 1e6 + handshake_s(link),
        wire_bytes: end.counters.wire_bytes,
        lost: end.counters.lost as f64 / end.counters.packets.max(1) as f64,
        phases: PhaseRow::of(&end.costs),
    })
}

/// A TCP flow alone. The model never ends, so that it runs for a while, and for twice as long if that was not enough.
fn tcp(link: &Link, path: &Path, congestion: Congestion, seed: u64) -> TcpRun {
    let neighbour = TcpFlow { congestion, start_us: 0 };
    let mut until_s = 1.25 * link.wire_s() + 10.0 * handshake_s(link);
    loop {
        until_s = until_s.min(PATIENCE_S);
        let (_, ends) = simulate_beside(path, &[], &[neighbour], seed, (until_s * 1e6) as u64);
        let by_tenth = ends.first().map_or(&[][..], |end| &end.delivered_by_tenth);
        let bytes = link.file_bytes as f64 * SEGMENT_BYTES / SEGMENT_PAYLOAD_BYTES;
        if let Some(seconds) = delivered_after_s(by_tenth, bytes) {
            return TcpRun::Seconds(seconds + handshake_s(link));
        }
        if until_s >= PATIENCE_S {
            return TcpRun::GivenUp(by_tenth.last().copied().unwrap_or(0) as f64 / bytes);
        }
        until_s *= 2.0;
    }
}

/// Time until `bytes` were delivered, interpolated to a tenth of a second.
fn delivered_after_s(by_tenth: &[u64], bytes: f64) -> Option<f64> {
    let tenth = by_tenth.iter().position(|&so_far| so_far as f64 >= bytes)?;
    let before = tenth.checked_sub(1).map_or(0.0, |before| by_tenth[before] as f64);
    Some((tenth as f64 + (bytes - before) / (by_tenth[tenth] as f64 - before)) / 10.0)
}

/// The simulator loses packets before its bottleneck. The emulator, like most real links, loses them after it, when
/// they have cost time already. A bottleneck slower by the loss makes both equal.
fn path_of(link: &Link) -> Path {
    let rate_bits_per_s = link.rate_mbit * 1e6 * (1.0 - link.loss);
    let forward = grebe_simulator::Link {
        rate_bits_per_s,
        delay_us: (link.rtt_ms * 500.0) as u64,
        jitter_us: (link.jitter_ms * 1e3) as u64,
        queue_bytes: ((rate_bits_per_s / 8.0 * link.rtt_ms / 1e3) as u64).max(QUEUE_BYTES_MIN),
        loss: link.loss,
        burst: link.burst,
        ..grebe_simulator::Link::default()
    };
    let back = grebe_simulator::Link { loss: link.loss_back, ..forward.clone() };
    Path { forward, back, changes: Vec::new() }
}

/// The simulator begins behind the handshake, which is one round trip, as TCP's is.
fn handshake_s(link: &Link) -> f64 {
    link.rtt_ms / 1e3
}

/// A TCP model that takes longer is given up.
const PATIENCE_S: f64 = 150.0;

/// One of ours that takes longer hangs.
const OURS_US_MAX: u64 = 600_000_000;

const QUEUE_BYTES_MIN: u64 = 64 << 10;

/// Bytes of a full TCP segment on the wire, and of its payload.
const SEGMENT_BYTES: f64 = 1_500.0;
const SEGMENT_PAYLOAD_BYTES: f64 = 1_448.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::link;

    fn short(rate_mbit: f64, rtt_ms: f64, loss: f64, file_bytes: u64) -> Link {
        Link { rate_mbit, rtt_ms, loss, file_bytes, goal_s: 60.0, ..link::chosen(&[]).unwrap().remove(0) }
    }

    #[test]
    fn a_row_has_runs_phases_and_tcp_beside_it_and_repeats_to_the_digit() {
        let links = [short(20.0, 20.0, 0.0, 2_000_000), short(50.0, 100.0, 0.02, 2_000_000)];
        let options = Options { seed: 1, repeats: 3, ..Options::default() };
        let measured = || {
            let mut rows = Vec::new();
            run(&options, &links, &mut |progress| {
                if let Progress::Row(row) = progress {
                    rows.push(serde_json::to_value(row).unwrap());
                }
            })
            .unwrap();
            rows
        };
        let rows = measured();
        assert_eq!(rows, measured());
        assert_eq!(rows.len(), 2);
        for (row, link) in rows.iter().zip(&links) {
            let number = |path: &str| row.pointer(path).and_then(|value| value.as_f64()).unwrap();
            let list = |field: &str| row[field].as_array().unwrap().clone();
            assert_eq!(
                (number("/runs"), list("phases").len(), list("baselines").len()),
                (3.0, grebe_connection::Phase::COUNT, 2)
            );
            assert!(row["is_met"] == true && number("/wire_bytes_ratio/low") > 1.0, "{row}");
            assert!(number("/seconds/median") > link.wire_s() + link.rtt_ms / 1e3, "{row}");
            let in_phases: f64 = list("phases").iter().map(|phase| phase["seconds"].as_f64().unwrap()).sum();
            let without_handshake_s = number("/seconds/median") - handshake_s(link);
            assert!((in_phases - without_handshake_s).abs() < 0.1, "{in_phases} s, {row}");
            for at in 0..2 {
                assert!(number(&format!("/baselines/{at}/seconds/median")) > link.wire_s(), "{row}");
                assert!(number(&format!("/baselines/{at}/ratio")) > 0.0, "{row}");
            }
        }
        assert_ne!(rows[1]["seconds"]["low"], rows[1]["seconds"]["high"], "losses differ from seed to seed");
    }

    #[test]
    fn an_end_that_stops_or_panics_is_reported() {
        let options = Options::default();
        options.cancel.cancel();
        let ended = run(&options, &[short(20.0, 20.0, 0.0, 1)], &mut |_| {});
        assert!(matches!(ended, Err(Error::Cancelled)));
        let ended = beside_each_other(&[1, 2], |&number| assert_eq!(number, 1, "on purpose"));
        assert!(ended.unwrap_err().to_string().contains("panicked"));
    }

    #[test]
    fn lost_packets_take_time_on_the_wire() {
        // Losses that cost nothing would make it 0.8 times the wire, losses that cost twice 1.25.
        let link = short(50.0, 20.0, 0.2, 20_000_000);
        let ours = ours(&link, &path_of(&link), 1).unwrap();
        assert!(
            (0.98..1.15).contains(&(ours.seconds / link.wire_s())),
            "{} of {} s",
            ours.seconds,
            link.wire_s()
        );
    }

    #[test]
    fn tcp_that_gets_nowhere_is_given_up_with_its_share() {
        let link = short(100.0, 250.0, 0.05, 50_000_000);
        let TcpRun::GivenUp(share) = tcp(&link, &path_of(&link), Congestion::Cubic, 1) else {
            panic!("CUBIC cannot do this");
        };
        assert!(share > 0.0 && share < 0.5, "{share}");
    }

    #[test]
    fn within_a_tenth_of_a_second_time_goes_in_proportion() {
        assert_eq!(delivered_after_s(&[0, 100, 300], 100.0), Some(0.2));
        assert!((delivered_after_s(&[0, 100, 300], 200.0).unwrap() - 0.25).abs() < 1e-9);
        assert_eq!(delivered_after_s(&[0, 100, 300], 301.0), None);
    }
}
