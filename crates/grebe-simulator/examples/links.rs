//! Simulated transfers over links of long-distance tools: median seconds over several seeds, phases, packets.
//!
//!     cargo run --release -p grebe-simulator --example links -- [SEEDS] [PART OF A NAME]...

use grebe_connection::Phase;
use grebe_simulator::{Flow, FlowReport, Link, Path, simulate};

/// A link: its rate, round trip and losses there and back; jitter; queue, 0 for a round trip's; and a file.
type Row = (&'static str, f64, u64, f64, f64, u64, u64, f64);

const ROWS: [Row; 37] = [
    ("1 Gbit/s 100 ms 0.1 %", 1_000.0, 100, 0.001, 0.0, 0, 0, 300.0),
    ("500 Mbit/s 150 ms 0.5 %", 500.0, 150, 0.005, 0.0, 0, 0, 100.0),
    ("150 Mbit/s 280 ms jitter 60 ms", 150.0, 280, 0.0, 0.0, 60, 0, 50.0),
    ("80 Mbit/s 60 ms jitter 30 ms", 80.0, 60, 0.0, 0.0, 30, 0, 50.0),
    ("30 Mbit/s 40 ms queue 16 KB", 30.0, 40, 0.0, 0.0, 0, 16_384, 20.0),
    ("10 Mbit/s 600 ms 3 %", 10.0, 600, 0.03, 0.0, 0, 0, 10.0),
    ("100 Mbit/s 250 ms 1 %", 100.0, 250, 0.01, 0.0, 0, 0, 50.0),
    ("100 Mbit/s 250 ms 5 %", 100.0, 250, 0.05, 0.0, 0, 0, 50.0),
    ("100 Mbit/s 250 ms 15 %", 100.0, 250, 0.15, 0.0, 0, 0, 50.0),
    ("20 Mbit/s 300 ms 10 % both", 20.0, 300, 0.1, 0.1, 0, 0, 20.0),
    ("50 Mbit/s 100 ms 20 %", 50.0, 100, 0.2, 0.0, 0, 0, 20.0),
    ("50 Mbit/s 100 ms 22 %", 50.0, 100, 0.22, 0.0, 0, 0, 20.0),
    ("50 Mbit/s 100 ms 25 %", 50.0, 100, 0.25, 0.0, 0, 0, 20.0),
    ("50 Mbit/s 100 ms 30 %", 50.0, 100, 0.3, 0.0, 0, 0, 20.0),
    ("50 Mbit/s 100 ms 35 %", 50.0, 100, 0.35, 0.0, 0, 0, 20.0),
    ("50 Mbit/s 100 ms 45 %", 50.0, 100, 0.45, 0.0, 0, 0, 20.0),
    ("50 Mbit/s 100 ms 60 %", 50.0, 100, 0.6, 0.0, 0, 0, 20.0),
    ("200 Mbit/s 50 ms 0.1 %", 200.0, 50, 0.001, 0.0, 0, 0, 50.0),
    ("50 Mbit/s 160 ms 2 % both", 50.0, 160, 0.02, 0.02, 0, 0, 50.0),
    ("100 Mbit/s 250 ms", 100.0, 250, 0.0, 0.0, 0, 0, 50.0),
    ("20 Mbit/s 400 ms 10 %", 20.0, 400, 0.1, 0.0, 0, 0, 50.0),
    ("500 Mbit/s 10 ms 0.5 %", 500.0, 10, 0.005, 0.0, 0, 0, 50.0),
    ("5 Mbit/s 600 ms 3 % both", 5.0, 600, 0.03, 0.03, 0, 0, 10.0),
    ("1 Gbit/s 300 ms 1 % both", 1_000.0, 300, 0.01, 0.01, 0, 0, 50.0),
    ("300 Mbit/s 380 ms jitter 40 ms", 300.0, 380, 0.0, 0.0, 40, 0, 50.0),
    ("500 Mbit/s 100 ms 0.1 % jitter 10 ms", 500.0, 100, 0.001, 0.0, 10, 0, 100.0),
    ("100 Mbit/s 50 ms jitter 20 ms", 100.0, 50, 0.0, 0.0, 20, 0, 50.0),
    ("100 Mbit/s 20 ms jitter 5 ms", 100.0, 20, 0.0, 0.0, 5, 0, 50.0),
    ("20 Mbit/s 20 ms 0.1 % jitter 20 ms", 20.0, 20, 0.001, 0.0, 20, 0, 20.0),
    ("20 Mbit/s 300 ms jitter 60 ms", 20.0, 300, 0.0, 0.0, 60, 0, 20.0),
    ("30 Mbit/s 100 ms jitter 60 ms", 30.0, 100, 0.0, 0.0, 60, 0, 20.0),
    ("30 Mbit/s 100 ms jitter 60 ms queue 64 KB", 30.0, 100, 0.0, 0.0, 60, 64_000, 20.0),
    ("5 Mbit/s 100 ms jitter 20 ms", 5.0, 100, 0.0, 0.0, 20, 0, 10.0),
    ("2 Mbit/s 200 ms jitter 100 ms", 2.0, 200, 0.0, 0.0, 100, 0, 2.0),
    ("100 Mbit/s 40 ms queue 50 KB", 100.0, 40, 0.0, 0.0, 0, 50_000, 50.0),
    ("20 Mbit/s 40 ms queue 10 KB", 20.0, 40, 0.0, 0.0, 0, 10_000, 20.0),
    ("100 Mbit/s 100 ms 1 % 2 MB", 100.0, 100, 0.01, 0.0, 0, 0, 2.0),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seeds = arguments.first().and_then(|seeds| seeds.parse().ok()).unwrap_or(20);
    let parts = arguments.get(1..).unwrap_or_default();
    println!(
        "Virtual seconds over {seeds} seeds; wire: the file with its headers at the rate, and the delay"
    );
    println!("{:<42} {:>6} {:>6} {:>6} {:>6} {:>5}", "link", "wire", "median", "9 of 10", "/ wire", "sent");
    for row in ROWS.iter().filter(|row| parts.is_empty() || parts.iter().any(|part| row.0.contains(part))) {
        let (name, mbit, rtt_ms, loss, _, _, _, megabytes) = *row;
        let mut ends: Vec<FlowReport> = (1..=seeds).map(|seed| transfer(row, seed)).collect();
        ends.sort_by_key(|end| end.done_us.unwrap_or(u64::MAX));
        let at = |share: f64| &ends[((ends.len() - 1) as f64 * share).round() as usize];
        let seconds = |end: &FlowReport| end.done_us.map_or(f64::NAN, |us| us as f64 / 1e6);
        let wire_s = megabytes * 8.0 * 1.0453 / mbit / (1.0 - loss) + rtt_ms as f64 / 2e3;
        let sent = ends.iter().map(|end| end.counters.wire_bytes as f64).sum::<f64>() / seeds as f64;
        let phases: String = Phase::NAMES
            .iter()
            .zip(&at(0.5).costs)
            .filter(|(_, cost)| cost.entries > 0)
            .map(|(name, cost)| format!("  {name} {} x {:.1} s", cost.entries, cost.time_us as f64 / 1e6))
            .collect();
        println!(
            "{name:<42} {wire_s:>6.2} {:>6.3} {:>6.3} {:>6.3} {:>5.3}{phases}",
            seconds(at(0.5)),
            seconds(at(0.9)),
            seconds(at(0.5)) / wire_s,
            sent / megabytes / 1e6,
        );
    }
}

/// Loss is behind the bottleneck, as on most paths: a lost packet takes its time there. That equals a loss
/// before a bottleneck of the rate that passes.
fn transfer(
    &(_, mbit, rtt_ms, loss, loss_back, jitter_ms, queue_bytes, megabytes): &Row,
    seed: u64,
) -> FlowReport {
    let product_bytes = ((mbit * 1e6 / 8.0 * rtt_ms as f64 / 1e3) as u64).max(64_000);
    let link = |loss| Link {
        rate_bits_per_s: mbit * 1e6 * (1.0 - loss),
        delay_us: rtt_ms * 500,
        jitter_us: jitter_ms * 1_000,
        queue_bytes: product_bytes,
        loss,
        ..Link::default()
    };
    let queue_bytes = if queue_bytes > 0 { queue_bytes } else { product_bytes };
    let forward = Link { queue_bytes, ..link(loss) };
    let path = Path { forward, back: link(loss_back), changes: Vec::new() };
    let mut flow = Flow::of((megabytes * 1e6) as u64);
    flow.options.seed = seed;
    (flow.has_handshake, flow.window_bytes) = (true, 16 << 20);
    simulate(&path, &[flow], seed, 600_000_000).remove(0)
}
