//! Transfer times alone on lossy links. Yielding to losses by others may cost nothing where the link itself
//! is lossy. All in virtual time; each time is the mean of several seeds.
//!
//!     cargo test --release -p grebe-simulator --test lossy -- --ignored --nocapture

use grebe_connection::Mode;
use grebe_simulator::{Flow, Link, Path, Policer, simulate};

const SECOND: u64 = 1_000_000;

/// A link with a single transfer.
struct Alone {
    name: &'static str,
    mbit: f64,
    rtt_ms: u64,
    loss: f64,
    loss_back: f64,
    burst: u32,
    jitter_ms: u64,
    /// 0: the product of rate and round trip.
    queue_bytes: u64,
    /// 0: no policer. With one, the bottleneck has a gigabit per second.
    bucket_bytes: u64,
    /// Total loss for 40 ms every 2 s.
    has_outages: bool,
    megabytes: f64,
    mode: Mode,
}

impl Alone {
    const fn new(name: &'static str, mbit: f64, rtt_ms: u64, loss: f64) -> Self {
        Self {
            name,
            mbit,
            rtt_ms,
            loss,
            loss_back: 0.0,
            burst: 1,
            jitter_ms: 0,
            queue_bytes: 0,
            bucket_bytes: 0,
            has_outages: false,
            megabytes: 50.0,
            mode: Mode::Fair,
        }
    }

    fn path(&self) -> Path {
        let product_bytes = (self.mbit * 1e6 / 8.0 * self.rtt_ms as f64 / 1e3) as u64;
        let queue_bytes = if self.queue_bytes > 0 { self.queue_bytes } else { product_bytes.max(64_000) };
        let policer = (self.bucket_bytes > 0)
            .then_some(Policer { rate_bits_per_s: self.mbit * 1e6, bucket_bytes: self.bucket_bytes });
        let forward = Link {
            rate_bits_per_s: if policer.is_some() { 1e9 } else { self.mbit * 1e6 },
            queue_bytes: if policer.is_some() { 1 << 22 } else { queue_bytes },
            policer,
            delay_us: self.rtt_ms * 500,
            jitter_us: self.jitter_ms * 1_000,
            loss: self.loss,
            burst: self.burst,
            ..Link::default()
        };
        let back = Link { loss: self.loss_back, policer: None, ..forward.clone() };
        let dark =
            (Link { loss: 1.0, burst: 1, ..forward.clone() }, Link { loss: 1.0, burst: 1, ..back.clone() });
        let changes = if self.has_outages {
            (1..60)
                .flat_map(|at| {
                    [
                        (2 * at * SECOND, dark.0.clone(), dark.1.clone()),
                        (2 * at * SECOND + 40_000, forward.clone(), back.clone()),
                    ]
                })
                .collect()
        } else {
            Vec::new()
        };
        Path { forward, back, changes }
    }

    /// Time of the file with its headers at the link's rate, and of the path to the receiver. Losses happen
    /// before the bottleneck, and take no time there.
    fn wire_s(&self) -> f64 {
        self.megabytes * 8.0 * 1.0453 / self.mbit + self.rtt_ms as f64 / 2e3
    }

    /// Mean seconds until complete confirmation, mean bytes sent per byte of the file, and maximum seconds,
    /// over these seeds.
    fn run(&self, seeds: u64) -> (f64, f64, f64) {
        let (mut sum_s, mut sent, mut max_s) = (0.0, 0.0, 0.0_f64);
        for seed in 1..=seeds {
            let (seconds, ratio) = self.run_once(seed);
            (sum_s, max_s) = (sum_s + seconds, max_s.max(seconds));
            sent += ratio;
        }
        (sum_s / seeds as f64, sent / seeds as f64, max_s)
    }

    /// Seconds until complete confirmation, and bytes sent per byte of the file.
    fn run_once(&self, seed: u64) -> (f64, f64) {
        let mut flow = Flow::of((self.megabytes * 1e6) as u64);
        (flow.options.rtt_us, flow.options.seed) = (Some(self.rtt_ms * 1_000), seed);
        flow.options.mode = self.mode;
        let end = simulate(&self.path(), &[flow], seed, 600 * SECOND).remove(0);
        assert!(end.is_whole(), "{}, seed {seed}", self.name);
        let seconds = end.done_us.unwrap_or(u64::MAX) as f64 / 1e6;
        (seconds, end.counters.wire_bytes as f64 / self.megabytes / 1e6)
    }
}

fn links() -> Vec<Alone> {
    let new = Alone::new;
    let mut links = vec![
        new("A", 100.0, 250, 0.01),
        new("B", 200.0, 50, 0.001),
        Alone { loss_back: 0.02, ..new("C", 50.0, 160, 0.02) },
        new("D", 100.0, 250, 0.0),
        new("E", 20.0, 400, 0.1),
        new("F", 500.0, 10, 0.005),
        new("G", 5.0, 600, 0.03),
        new("H", 1_000.0, 300, 0.01),
        Alone { megabytes: 200.0, ..new("0.01 %", 100.0, 40, 0.000_1) },
        Alone { megabytes: 200.0, ..new("0.1 %", 100.0, 40, 0.001) },
        Alone { megabytes: 200.0, burst: 10, ..new("0.1 %, runs of 10", 100.0, 40, 0.001) },
        Alone { megabytes: 200.0, ..new("0.5 %", 100.0, 40, 0.005) },
        Alone { megabytes: 200.0, ..new("1 %", 100.0, 40, 0.01) },
        Alone { megabytes: 200.0, burst: 10, ..new("1 %, runs of 10", 100.0, 40, 0.01) },
        Alone { megabytes: 200.0, ..new("3 %", 100.0, 40, 0.03) },
        Alone { megabytes: 200.0, ..new("10 %", 100.0, 40, 0.1) },
        Alone { megabytes: 200.0, burst: 10, ..new("10 %, runs of 10", 100.0, 40, 0.1) },
        Alone { megabytes: 200.0, jitter_ms: 10, ..new("1 %, jitter 10 ms", 100.0, 40, 0.01) },
        Alone { megabytes: 200.0, jitter_ms: 20, ..new("jitter 20 ms", 100.0, 50, 0.0) },
        Alone { has_outages: true, ..new("outages", 100.0, 50, 0.0) },
        Alone { has_outages: true, megabytes: 200.0, ..new("1 %, outages", 100.0, 50, 0.01) },
        Alone { jitter_ms: 20, megabytes: 20.0, ..new("20 Mbit/s, 20 ms, jitter 20 ms", 20.0, 20, 0.001) },
        Alone { jitter_ms: 5, megabytes: 20.0, ..new("20 Mbit/s, 20 ms, jitter 5 ms", 20.0, 20, 0.001) },
        Alone { jitter_ms: 20, ..new("C, jitter 20 ms", 50.0, 160, 0.02) },
        Alone { jitter_ms: 20, ..new("F, jitter 20 ms", 500.0, 10, 0.005) },
        Alone { burst: 10, ..new("C, runs of 10", 50.0, 160, 0.02) },
        Alone { burst: 10, ..new("E, runs of 10", 20.0, 400, 0.1) },
        Alone { jitter_ms: 20, ..new("E, jitter 20 ms", 20.0, 400, 0.1) },
        new("500 Mbit/s, 150 ms, 0.5 %", 500.0, 150, 0.005),
        Alone { megabytes: 10.0, ..new("10 Mbit/s, 600 ms, 3 %", 10.0, 600, 0.03) },
        Alone { jitter_ms: 60, ..new("150 Mbit/s, 280 ms, jitter 60 ms", 150.0, 280, 0.0) },
        Alone { queue_bytes: 16_000, megabytes: 20.0, ..new("30 Mbit/s, 40 ms, queue 16 KB", 30.0, 40, 0.0) },
        new("38 Mbit/s, 11 ms, 0.7 %", 38.0, 11, 0.007),
        new("154 Mbit/s, 17 ms, 3.3 %", 154.0, 17, 0.033),
        new("51 Mbit/s, 8 ms, 8 %", 51.0, 8, 0.08),
        new("203 Mbit/s, 87 ms, 7.2 %", 203.0, 87, 0.072),
        Alone { burst: 10, megabytes: 15.0, ..new("12 Mbit/s, 184 ms, 9.8 %", 12.0, 184, 0.098) },
    ];
    for (name, mbit, rtt_ms, bucket_bytes, megabytes) in [
        ("50 Mbit/s, bucket 100 KB", 50.0, 40, 100_000, 50.0),
        ("50 Mbit/s, bucket 1 MB", 50.0, 40, 1_000_000, 50.0),
        ("300 Mbit/s, 1 ms, bucket 1 MB", 300.0, 1, 1_000_000, 200.0),
        ("50 Mbit/s, bucket 100 KB, 200 MB", 50.0, 40, 100_000, 200.0),
        ("50 Mbit/s, bucket 1 MB, 200 MB", 50.0, 40, 1_000_000, 200.0),
    ] {
        links.push(Alone { bucket_bytes, megabytes, ..new(name, mbit, rtt_ms, 0.0) });
    }
    for (name, mbit, rtt_ms, queue, megabytes) in [
        ("20 Mbit/s, queue 0.5", 20.0, 40, 0.5, 50.0),
        ("20 Mbit/s, queue 0.1", 20.0, 40, 0.1, 50.0),
        ("100 Mbit/s, queue 0.25", 100.0, 40, 0.25, 200.0),
        ("100 Mbit/s, queue 0.1", 100.0, 40, 0.1, 200.0),
        ("300 Mbit/s, queue 0.1", 300.0, 40, 0.1, 200.0),
    ] {
        let queue_bytes = (mbit * 1e3 / 8.0 * rtt_ms as f64 * queue) as u64;
        links.push(Alone { queue_bytes, megabytes, ..new(name, mbit, rtt_ms, 0.0) });
    }
    links
}

/// Times before the test whether losses depend on the rate, plus 2 %.
#[test]
fn the_paths_own_loss_stays_free() {
    let links = links();
    for (name, seconds_max) in [
        ("A", 5.12),
        ("B", 2.30),
        ("C", 9.17),
        ("D", 4.83),
        ("E", 23.09),
        ("F", 0.89),
        ("outages", 4.55),
        ("F, jitter 20 ms", 1.2),
    ] {
        let link = links.iter().find(|link| link.name == name).unwrap();
        let (mean_s, ..) = link.run(2);
        assert!(mean_s < seconds_max, "{name}: {mean_s} s");
    }
}

/// A quarter once counted as more than any path loses, and transfers crawled from there on. The loss is
/// behind the bottleneck, as on most paths: what is lost takes its time there.
#[test]
fn heavy_loss_that_does_not_answer_to_the_rate_costs_little_more_than_itself() {
    for (mode, mbit, rtt_ms, times_max) in [
        (Mode::Fair, 50.0, 100, 1.3),
        (Mode::Fair, 4.0, 60, 1.3),
        // It waits for others in between.
        (Mode::Background, 50.0, 100, 1.6),
    ] {
        for loss in [0.22, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6] {
            let passing_mbit = mbit * (1.0 - loss);
            let link =
                Alone { megabytes: 0.4 * mbit, mode, ..Alone::new("heavy", passing_mbit, rtt_ms, loss) };
            let mut times: Vec<f64> = (1..=9).map(|seed| link.run_once(seed).0 / link.wire_s()).collect();
            times.sort_by(f64::total_cmp);
            let what = || format!("{mode:?}, {mbit} Mbit/s, {loss}: {times:.2?} of the wire");
            assert!(times[4] < times_max && times[8] < 2.0 * times_max, "{}", what());
        }
    }
}

#[test]
fn alone_behind_a_policer_the_wire_is_used_and_little_is_wasted() {
    for (mbit, bucket_bytes, sent_max) in [(50.0, 100_000, 1.08), (50.0, 1_000_000, 1.09)] {
        let link = Alone { bucket_bytes, megabytes: 200.0, ..Alone::new("policer", mbit, 40, 0.0) };
        let (mean_s, sent, _) = link.run(1);
        assert!(mean_s < 1.05 * link.wire_s(), "{bucket_bytes}: {mean_s} s");
        assert!(sent < sent_max, "{bucket_bytes}: {sent} times the file");
    }
}

/// The loss of the first train once counted as the path's own as long as the window ruled: 13 and 21 times
/// the time on the wire.
#[test]
fn a_policer_on_a_path_that_loses_packets_itself_is_not_crawled_through() {
    for loss in [0.01, 0.02] {
        let link = Alone { bucket_bytes: 100_000, ..Alone::new("both", 50.0, 40, loss) };
        let (mean_s, sent, _) = link.run(3);
        assert!(mean_s < 1.3 * link.wire_s(), "{loss}: {mean_s} s of {}", link.wire_s());
        assert!(sent < 1.3, "{loss}: {sent} times the file");
    }
}

#[test]
fn background_mode_takes_what_nobody_else_wants() {
    let new = |name, loss| Alone { mode: Mode::Background, ..Alone::new(name, 100.0, 40, loss) };
    for (link, times_max) in [
        (new("1 %", 0.01), 1.2),
        (Alone { burst: 10, ..new("3 %, runs of 10", 0.03) }, 1.3),
        (Alone { jitter_ms: 10, ..new("1 %, jitter", 0.01) }, 1.3),
        (Alone { queue_bytes: 50_000, megabytes: 200.0, ..new("short queue", 0.0) }, 1.5),
        (Alone { bucket_bytes: 250_000, megabytes: 200.0, ..new("policer", 0.0) }, 2.0),
    ] {
        let (mean_s, ..) = link.run(3);
        assert!(mean_s < times_max * link.wire_s(), "{}: {mean_s} of {}", link.name, link.wire_s());
    }
}

#[test]
#[ignore = "minutes: prints the table"]
fn all_links() {
    let wanted = std::env::var("ONLY").unwrap_or_default();
    println!("{:<36} {:>6} {:>7} {:>7} {:>6} {:>6}", "", "wire", "mean", "max", "/ wire", "sent");
    for link in links() {
        if !wanted.is_empty() && !wanted.split(';').any(|part| link.name.contains(part)) {
            continue;
        }
        let (mean_s, sent, max_s) = link.run(10);
        let wire_s = link.wire_s();
        println!(
            "{:<36} {wire_s:>6.2} {mean_s:>7.3} {max_s:>7.3} {:>6.3} {sent:>6.3}",
            link.name,
            mean_s / wire_s
        );
    }
}
