//! Our flows beside CUBIC with a queue shorter than a round trip, or a policer. A flow that ignores losses
//! there takes everything. All in virtual time, so that the same seed gives the same result on every machine.
//!
//!     cargo test --release -p grebe-simulator --test short_queues -- --ignored --nocapture

use grebe_connection::Mode;
use grebe_simulator::{
    Congestion, Flow, FlowReport, Link, Path, Policer, TcpFlow, TcpReport, simulate_beside,
};

const SECOND: u64 = 1_000_000;
const RTT_MS: u64 = 40;
/// Both flows are active from here on.
const BOTH_S: u64 = 3;
/// The first flow searches for its rate; another table has that cost.
const FIRST_S: u64 = 5;

/// Limit of the rate.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bottleneck {
    /// Queue of this multiple of the product of rate and round trip.
    Queue(f64),
    /// Token bucket that fills in this many milliseconds, without a queue.
    Policer(u64),
}

impl std::fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Queue(products) => write!(f, "queue {products}"),
            Self::Policer(ms) => write!(f, "policer {ms} ms"),
        }
    }
}

fn path(mbit: f64, bottleneck: Bottleneck) -> Path {
    let link = Link { delay_us: RTT_MS * 500, ..Link::default() };
    let bytes = |ms: f64| (mbit * 1e6 / 8.0 * ms / 1e3) as u64;
    let forward = match bottleneck {
        Bottleneck::Queue(products) => {
            Link { rate_bits_per_s: mbit * 1e6, queue_bytes: bytes(products * RTT_MS as f64), ..link.clone() }
        }
        Bottleneck::Policer(ms) => Link {
            rate_bits_per_s: 1e9,
            policer: Some(Policer { rate_bits_per_s: mbit * 1e6, bucket_bytes: bytes(ms as f64) }),
            ..link.clone()
        },
    };
    Path { forward, back: link, changes: Vec::new() }
}

/// Flows that share the path.
#[derive(Debug, Clone, Copy)]
struct Company {
    ours: usize,
    cubics: usize,
    mode: Mode,
    is_ours_first: bool,
}

/// Share of our first flow in a minute, in percent of all; share of lost packets; total rate.
fn share(mbit: f64, bottleneck: Bottleneck, company: Company, seed: u64) -> (f64, f64, f64) {
    let Company { ours, cubics, mode, is_ours_first } = company;
    let later_us = |index: usize| BOTH_S * SECOND + index as u64 * 10_000;
    let flows: Vec<Flow> = (0..ours)
        .map(|index| {
            let start_us = if index == 0 && is_ours_first { 0 } else { later_us(index) };
            let start_us = if index > 0 && !is_ours_first { 0 } else { start_us };
            let mut flow = Flow { start_us, ..Flow::of(10_000_000_000) };
            flow.options.rtt_us = Some(RTT_MS * 1_000);
            flow.options.seed = seed + 100 * index as u64;
            flow.options.mode = mode;
            flow
        })
        .collect();
    let tcp_flows: Vec<TcpFlow> = (0..cubics)
        .map(|index| {
            let is_later = if ours == 0 { index > 0 } else { is_ours_first };
            let start_us = if is_later { later_us(index) } else { index as u64 * 10_000 };
            TcpFlow { congestion: Congestion::Cubic, start_us }
        })
        .collect();
    let until_us = (BOTH_S + 60) * SECOND;
    let path = path(mbit, bottleneck);
    let begun = simulate_beside(&path, &flows, &tcp_flows, seed, (BOTH_S + FIRST_S) * SECOND);
    let (ours, others) = simulate_beside(&path, &flows, &tcp_flows, seed, until_us);
    let mut rates: Vec<f64> = ours.iter().map(our_mbit).collect();
    rates.extend(others.iter().map(|end| mbit_of(&end.delivered_by_tenth)));
    let sum: f64 = rates.iter().sum();
    (100.0 * rates[0] / sum, loss_percent(&ours, &others, &begun), sum)
}

fn our_mbit(end: &FlowReport) -> f64 {
    // Payload is 1435 of 1500 bytes on the wire.
    mbit_of(&end.received_by_tenth) * 1_500.0 / 1_435.0
}

/// Rate in the minute with both flows.
fn mbit_of(by_tenth: &[u64]) -> f64 {
    let at = |tenth: u64| by_tenth.get(tenth as usize).or(by_tenth.last()).copied().unwrap_or(0);
    (at(10 * (BOTH_S + 60)) - at(10 * BOTH_S)) as f64 * 8.0 / 60e6
}

/// Loss of all packets sent after the first seconds, by subtracting an equal run up to then.
fn loss_percent(ours: &[FlowReport], others: &[TcpReport], begun: &(Vec<FlowReport>, Vec<TcpReport>)) -> f64 {
    let sums = |ours: &[FlowReport], others: &[TcpReport]| {
        let lost = ours.iter().map(|end| end.counters.lost).chain(others.iter().map(|end| end.lost));
        let sent = ours.iter().map(|end| end.counters.packets).chain(others.iter().map(|end| end.packets));
        [lost.sum::<u64>() as f64, sent.sum::<u64>() as f64]
    };
    let ([lost, sent], [lost_before, sent_before]) = (sums(ours, others), sums(&begun.0, &begun.1));
    100.0 * (lost - lost_before) / (sent - sent_before)
}

/// Whether CUBIC keeps at least a third of its fair share, and the loss is at most twice that of CUBIC alone,
/// or 0.6 %.
fn is_fair(company: Company, (share, loss, _): (f64, f64, f64), reference_loss: f64) -> bool {
    let cubics = company.cubics as f64;
    let keeps = cubics == 0.0 || 100.0 - share >= 100.0 / 3.0 * cubics / (cubics + 1.0);
    keeps && loss <= (2.0 * reference_loss).max(0.6)
}

#[test]
fn cubic_keeps_its_share_where_no_queue_tells_of_it() {
    use Bottleneck::{Policer, Queue};
    let of = |ours, cubics, is_ours_first| Company { ours, cubics, mode: Mode::Fair, is_ours_first };
    for (mbit, bottleneck) in [
        (20.0, Queue(0.5)),
        (20.0, Queue(0.25)),
        (20.0, Queue(0.1)),
        (20.0, Policer(20)),
        (100.0, Queue(0.25)),
    ] {
        let (_, reference_loss, _) = share(mbit, bottleneck, of(0, 2, false), 1);
        for is_ours_first in [true, false] {
            let company = of(1, 1, is_ours_first);
            let result = share(mbit, bottleneck, company, 1);
            assert!(
                is_fair(company, result, reference_loss),
                "{mbit} Mbit/s, {bottleneck}, {company:?}: {result:?}"
            );
        }
    }
}

#[test]
fn several_cubics_and_our_own_keep_theirs_too() {
    for (ours, cubics) in [(1, 4), (2, 0)] {
        let company = Company { ours, cubics, mode: Mode::Fair, is_ours_first: true };
        let (share, loss) = medians(20.0, Bottleneck::Queue(0.1), company);
        assert!(is_fair(company, (share, loss, 0.0), 0.75), "{company:?}: {share}, {loss}");
    }
}

#[test]
fn two_of_ours_do_not_take_each_others_overload_for_the_paths_loss() {
    let company = Company { ours: 2, cubics: 0, mode: Mode::Fair, is_ours_first: true };
    let (share, loss, _) = share(20.0, Bottleneck::Policer(200), company, 1);
    assert!((25.0..75.0).contains(&share) && loss < 1.0, "{share}, {loss}");
}

/// Median share and loss of five starts, in percent.
fn medians(mbit: f64, bottleneck: Bottleneck, company: Company) -> (f64, f64) {
    let results: Vec<_> = (1..=5).map(|seed| share(mbit, bottleneck, company, seed)).collect();
    let median = |of: fn(&(f64, f64, f64)) -> f64| {
        let mut values: Vec<f64> = results.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[2]
    };
    (median(|result| result.0), median(|result| result.1))
}

/// Three of ours lost 48 % after this policer, and beside one of ours four CUBICs kept 2 %.
#[test]
fn several_flows_do_not_overload_a_policer_for_ever() {
    for (ours, cubics, share_max) in [(3, 0, 60.0), (1, 4, 60.0)] {
        let company = Company { ours, cubics, mode: Mode::Fair, is_ours_first: true };
        let (share, loss) = medians(20.0, Bottleneck::Policer(20), company);
        assert!(share < share_max && loss < 4.0, "{company:?}: {share}, {loss}");
    }
}

#[test]
fn background_mode_yields_where_no_queue_tells_of_others() {
    for is_ours_first in [true, false] {
        let company = Company { ours: 1, cubics: 1, mode: Mode::Background, is_ours_first };
        for (bottleneck, share_max) in [(Bottleneck::Queue(0.25), 15.0), (Bottleneck::Policer(200), 25.0)] {
            let (share, loss) = medians(20.0, bottleneck, company);
            assert!(share < share_max && loss < 0.7, "{bottleneck}: {share}, {loss}");
        }
    }
}

#[test]
fn background_mode_does_not_take_cubics_losses_for_the_paths() {
    for cubics in [1, 4] {
        let company = Company { ours: 1, cubics, mode: Mode::Background, is_ours_first: true };
        let (share, loss, _) = share(100.0, Bottleneck::Policer(200), company, 1);
        assert!(share < 40.0 && loss < 0.7, "{cubics}: {share}, {loss}");
    }
}

/// `ONLY` selects cells by parts of their names, separated by `;`. `WHO` selects a company, `MODE` our mode,
/// `SEED` another start.
#[test]
#[ignore = "minutes: prints the table"]
fn whole_matrix() {
    use Bottleneck::{Policer, Queue};
    let wanted = std::env::var("ONLY").unwrap_or_default();
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mode = match std::env::var("MODE").as_deref() {
        Ok("background") => Mode::Background,
        Ok("greedy") => Mode::Greedy,
        _ => Mode::Fair,
    };
    for mbit in [20.0, 100.0, 300.0] {
        for bottleneck in
            [Queue(2.0), Queue(1.0), Queue(0.5), Queue(0.25), Queue(0.1), Policer(20), Policer(200)]
        {
            let name = format!("{mbit} Mbit/s, {bottleneck}");
            if !wanted.is_empty() && !wanted.split(';').any(|part| name.contains(part)) {
                continue;
            }
            let mut line = format!("{name:<28}");
            for (who, ours, cubics) in [("cubic", 1, 1), ("4 cubic", 1, 4), ("ours", 2, 0), ("alone", 1, 0)] {
                if !std::env::var("WHO").map_or(true, |only| only == who) {
                    continue;
                }
                line += &format!(" | {who}");
                let reference =
                    Company { ours: 0, cubics: (ours + cubics).max(2), mode, is_ours_first: false };
                let (_, reference_loss, reference_sum) = share(mbit, bottleneck, reference, seed);
                for is_ours_first in [true, false] {
                    let company = Company { ours, cubics, mode, is_ours_first };
                    let result = share(mbit, bottleneck, company, seed);
                    let is_bad = !is_fair(company, result, reference_loss);
                    let (share, loss, sum) = result;
                    line += &format!(
                        " {share:>5.1} ({loss:.2}, {:.0}{})",
                        100.0 * sum / mbit,
                        if is_bad { " !" } else { "" }
                    );
                }
                line += &format!(" [{reference_loss:.2}, {:.0}]", 100.0 * reference_sum / mbit);
            }
            println!("{line}");
        }
    }
}
