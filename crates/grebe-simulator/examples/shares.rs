//! Simulated transfers beside TCP and beside each other: shares and losses of the last 40 of 60 s. Each pair
//! starts in several ways, so that one lucky run cannot mislead.
//!
//!     cargo run --release -p grebe-simulator --example shares [part of a pair's name]

use grebe_simulator::{Congestion, Flow, Link, Path, TcpFlow, simulate_beside};

const SECOND: u64 = 1_000_000;

/// Start times of both flows, and the seed of ours.
const BEGINNINGS: [(u64, u64, u64); 5] = [
    (0, SECOND / 3, 1),
    (0, 3 * SECOND, 2),
    (SECOND / 2, 0, 3),
    (4 * SECOND, 0, 4),
    (SECOND / 10, SECOND / 7, 5),
];

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for (mbit, rtt_ms, queue) in [
        (100.0, 50, 1.0),
        (100.0, 50, 0.5),
        (100.0, 50, 2.0),
        (50.0, 20, 1.0),
        (200.0, 100, 1.0),
        (20.0, 150, 1.0),
        (200.0, 20, 1.0),
    ] {
        println!("{mbit} Mbit/s, {rtt_ms} ms, a queue of {queue} times their product");
        let queue_bytes = (mbit * 1e6 / 8.0 * rtt_ms as f64 / 1e3 * queue) as u64;
        let rate_bits_per_s = mbit * 1e6;
        let path =
            Path::symmetric(Link { rate_bits_per_s, delay_us: rtt_ms * 500, queue_bytes, ..Link::default() });
        use Congestion::{Bbr, Cubic};
        for (name, ours, theirs) in [
            ("CUBIC, CUBIC", 0, &[Cubic, Cubic][..]),
            ("CUBIC, BBR", 0, &[Cubic, Bbr]),
            ("BBR, BBR", 0, &[Bbr, Bbr]),
            ("grebe, grebe", 2, &[]),
            ("grebe, CUBIC", 1, &[Cubic]),
            ("grebe, BBR", 1, &[Bbr]),
            ("3 grebe, BBR", 3, &[Bbr]),
            ("3 grebe, CUBIC", 3, &[Cubic]),
        ] {
            if !name.contains(&wanted) {
                continue;
            }
            let runs = BEGINNINGS.map(|beginning| shares(&path, rtt_ms, ours, theirs, beginning));
            let mut line = format!("  {name:<14}");
            for (rates, _) in &runs {
                // With several flows, the rate of the last one.
                let at = if rates.len() > 2 { rates.len() - 1 } else { 0 };
                line += &format!(" {:>3.0}", 100.0 * rates[at] / rates.iter().sum::<f64>());
            }
            line += " %;";
            for (rates, _) in &runs {
                line += &format!(" {:>5.1}", rates.iter().sum::<f64>());
            }
            line += " Mbit/s; lost";
            for (_, loss) in &runs {
                line += &format!(" {:.3}", 100.0 * loss);
            }
            println!("{line} %");
        }
    }
}

/// Rates of both flows on the wire in Mbit/s, and their total loss.
fn shares(
    path: &Path,
    rtt_ms: u64,
    ours: usize,
    theirs: &[Congestion],
    (first_us, second_us, seed): (u64, u64, u64),
) -> (Vec<f64>, f64) {
    let start_us = |index: usize| if index == 0 { first_us } else { second_us + (index as u64 - 1) * SECOND };
    let flows: Vec<Flow> = (0..ours)
        .map(|index| {
            let mut flow = Flow { start_us: start_us(index), ..Flow::of(3_000_000_000) };
            (flow.options.rtt_us, flow.options.seed) = (Some(rtt_ms * 1_000), seed + 100 * index as u64);
            flow
        })
        .collect();
    let tcp_flows: Vec<TcpFlow> = theirs
        .iter()
        .enumerate()
        .map(|(index, congestion)| TcpFlow { congestion: *congestion, start_us: start_us(ours + index) })
        .collect();
    let (ours, others) = simulate_beside(path, &flows, &tcp_flows, seed, 60 * SECOND);
    // Payload is 1435 of 1500 bytes on the wire.
    let mut rates: Vec<f64> =
        ours.iter().map(|end| mbit(&end.received_by_tenth) * 1_500.0 / 1_435.0).collect();
    rates.extend(others.iter().map(|end| mbit(&end.delivered_by_tenth)));
    let sent = ours.iter().map(|end| end.counters.packets).chain(others.iter().map(|end| end.packets));
    let lost = ours.iter().map(|end| end.counters.lost).chain(others.iter().map(|end| end.lost));
    (rates, lost.sum::<u64>() as f64 / sent.sum::<u64>() as f64)
}

fn mbit(by_tenth: &[u64]) -> f64 {
    let at = |tenth: usize| by_tenth.get(tenth).or(by_tenth.last()).copied().unwrap_or(0);
    (at(599) - at(200)) as f64 * 8.0 / 40e6
}
