//! Simulated transfers over the standard links of long-distance tools: seconds, phases, packets.
//!
//!     cargo run --release -p grebe-simulator --example links

use grebe_simulator::{Flow, Link, Path, simulate};

const FILE_BYTES: u64 = 50_000_000;

fn main() {
    println!("50 MB, seconds of virtual time; the wire alone: file / rate + one-way delay");
    println!(
        "{:<34} {:>6} {:>6} {:>6}  {:>5} {:>5} {:>5}",
        "link", "wire", "whole", "done", "sent", "lost", "late"
    );
    for (name, mbit, rtt_ms, loss, loss_back) in [
        ("A 100 Mbit/s 250 ms 1 %", 100.0, 250, 0.01, 0.0),
        ("B 200 Mbit/s 50 ms 0.1 %", 200.0, 50, 0.001, 0.0),
        ("C 50 Mbit/s 160 ms 2 % both", 50.0, 160, 0.02, 0.02),
        ("D 100 Mbit/s 250 ms", 100.0, 250, 0.0, 0.0),
        ("E 20 Mbit/s 400 ms 10 %", 20.0, 400, 0.10, 0.0),
        ("F 500 Mbit/s 10 ms 0.5 %", 500.0, 10, 0.005, 0.0),
        ("G 5 Mbit/s 600 ms 3 %", 5.0, 600, 0.03, 0.03),
        ("H 1 Gbit/s 300 ms 1 %", 1000.0, 300, 0.01, 0.01),
    ] {
        let rate_bits_per_s = mbit * 1e6;
        let queue_bytes = ((rate_bits_per_s / 8.0 * rtt_ms as f64 / 1e3) as u64).max(64_000);
        let delay_us = rtt_ms * 500;
        let forward = Link { rate_bits_per_s, delay_us, queue_bytes, loss, ..Link::default() };
        let back = Link { loss: loss_back, ..forward.clone() };
        for (kind, burst, jitter_us) in [("", 1, 0), (" runs of 10", 10, 0), (" jitter 20 ms", 1, 20_000)] {
            let path = Path {
                forward: Link { burst, jitter_us, ..forward.clone() },
                back: Link { burst, jitter_us, ..back.clone() },
                changes: Vec::new(),
            };
            let mut flow = Flow::of(FILE_BYTES);
            flow.options.rtt_us = Some(rtt_ms * 1_000);
            let end = &simulate(&path, &[flow], 1, 600_000_000)[0];
            let wire = FILE_BYTES as f64 * 8.0 / rate_bits_per_s + delay_us as f64 / 1e6;
            let seconds = |us: Option<u64>| us.map_or(f64::NAN, |us| us as f64 / 1e6);
            println!(
                "{:<34} {wire:>6.2} {:>6.2} {:>6.2}  {:>5.3} {:>5.3} {:>5}  {}",
                format!("{name}{kind}"),
                seconds(end.whole_us),
                seconds(end.done_us),
                end.counters.wire_bytes as f64 / FILE_BYTES as f64,
                end.counters.lost as f64 / end.counters.packets as f64,
                end.counters.late,
                end.costs
                    .iter()
                    .map(|c| format!("{}x/{}r/{:.1}s ", c.entries, c.rounds, c.time_us as f64 / 1e6))
                    .collect::<String>(),
            );
        }
    }
}
