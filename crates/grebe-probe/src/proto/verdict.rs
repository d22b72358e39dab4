//! Findings in sentences: the bottleneck, recommended settings, and transfer times.

use crate::proto::estimate::Estimate;
use crate::proto::report::{Advice, Direction, LimitedBy, Report, TransferTime};

/// Throughput of TCP with CUBIC on a path with random loss, in bits of payload per second (RFC 9438, section
/// 5). If the formula of Mathis et al. gives more, that counts, as in CUBIC itself.
pub(crate) fn tcp_cubic_bps(segment_bytes: f64, rtt_s: f64, loss: f64) -> f64 {
    if loss <= 0.0 || rtt_s <= 0.0 {
        return f64::INFINITY;
    }
    let cubic = 1.054 * rtt_s.powf(0.75) / loss.powf(0.75);
    let mathis = 1.225 / loss.sqrt();
    segment_bytes * 8.0 / rtt_s * cubic.max(mathis)
}

/// Fills in findings and advice of the report.
pub(crate) fn conclude(report: &mut Report, sizes: &[u64]) {
    let rtt_s = report.rtt.p50_ms.value / 1e3;
    report.advice = advise(report, rtt_s, sizes);
    let mut said = Vec::new();
    for (name, is_down) in [("up", false), ("down", true)] {
        let direction = if is_down { &report.down } else { &report.up };
        said.extend(limit(name, direction));
        said.extend(lossy(name, direction, rtt_s));
        said.extend(slow_tcp(name, direction, rtt_s));
    }
    let bloat_ms = |direction: &Direction| direction.bufferbloat_ms.map_or(0.0, |bloat| bloat.value);
    let worst = if bloat_ms(&report.down) > bloat_ms(&report.up) { &report.down } else { &report.up };
    if bloat_ms(worst) > 20.0_f64.max(rtt_s * 500.0) {
        let least = if worst.queue_filled { "" } else { "at least " };
        said.push(format!(
            "full queues add {least}{:.0} ms to the round trip: keep below the knee where latency matters",
            bloat_ms(worst)
        ));
    }
    report.verdict = said;
}

fn limit(name: &str, direction: &Direction) -> Option<String> {
    let limit = direction.limit?;
    let Some(knee) = direction.knee_bps else {
        let said =
            format!("{name}: too little time or data to find the highest rate (--duration, --max-bytes)");
        return (limit == LimitedBy::Unfinished).then_some(said);
    };
    let rate = mbit(knee.value);
    Some(match limit {
        LimitedBy::Link => {
            format!("{name}: the link is the limit, {rate} of IP packets; a queue fills above that")
        }
        LimitedBy::Policer => {
            format!(
                "{name}: above {rate} packets are dropped without being queued: a policer, or a very short queue"
            )
        }
        LimitedBy::ReceiveBuffer => format!(
            "{name}: the receiver's kernel had no room above {rate} (buffer {} KiB): a larger buffer or a faster machine helps, \
             not the path",
            direction.receive_buffer_bytes / 1_024
        ),
        LimitedBy::Sender => format!(
            "{name}: the sender's processor or interface is the limit, {rate}; the path may carry more"
        ),
        LimitedBy::Unfinished => format!(
            "{name}: at least {rate}; the probe ended before a higher rate failed (--duration, --max-bytes)"
        ),
        LimitedBy::Allowed => {
            format!("{name}: no limit found up to {rate}, the highest allowed rate")
        }
    })
}

fn lossy(name: &str, direction: &Direction, rtt_s: f64) -> Option<String> {
    let loss = direction.loss.filter(|loss| loss.low > 0.0)?;
    let run = direction.loss_run.map_or(1.0, |run| run.value);
    let runs = if run > 1.5 { format!(", in runs of {run:.1}") } else { ", one by one".to_owned() };
    let cubic = tcp_cubic_bps(f64::from(direction.datagram_bytes), rtt_s, loss.value / run);
    let cost = match direction.knee_bps {
        Some(knee) if cubic < knee.value * 0.8 => {
            format!("; that holds TCP with CUBIC to about {}", mbit(cubic))
        }
        _ => String::new(),
    };
    Some(format!("{name}: {:.2} % are lost at any rate{runs}{cost}", loss.value * 100.0))
}

fn slow_tcp(name: &str, direction: &Direction, rtt_s: f64) -> Option<String> {
    let best = direction.tcp.iter().map(|tcp| tcp.goodput_bps.value).fold(0.0, f64::max);
    let knee = direction.knee_bps?.value;
    let share = best / knee;
    if best <= 0.0 || share > 0.8 {
        return None;
    }
    let why = match direction.loss {
        Some(loss) if loss.low > 0.0 => "it takes loss for a full queue".to_owned(),
        _ => format!(
            "it needs {:.0} KiB in flight, and many round trips to get there",
            knee / 8.0 * rtt_s / 1_024.0
        ),
    };
    Some(format!("{name}: TCP reached {:.0} % of the path's capacity: {why}", share * 100.0))
}

fn advise(report: &Report, rtt_s: f64, sizes: &[u64]) -> Advice {
    let directions = [&report.up, &report.down];
    let knees = directions.map(|direction| {
        direction.knee_bps.map_or(0.0, |knee| if knee.low > 0.0 { knee.low } else { knee.value })
    });
    let fastest = knees[0].max(knees[1]);
    let datagram_bytes = directions
        .map(|direction| direction.datagram_bytes)
        .into_iter()
        .filter(|&bytes| bytes > 0)
        .min()
        .unwrap_or(0);
    let payload = |direction: &Direction| {
        f64::from(direction.datagram_bytes) / (f64::from(direction.datagram_bytes) + 28.0)
    };
    let moves = sizes.iter().flat_map(|&bytes| {
        [false, true].map(|down| expect(bytes, down, if down { &report.down } else { &report.up }, rtt_s))
    });
    Advice {
        datagram_bytes,
        rate_bps: [0, 1].map(|at| knees[at] * 0.95 * payload(directions[at])),
        // A busy machine may keep a receiver from its processor for 20 ms.
        udp_buffer_bytes: ((fastest / 8.0 * 0.02) as u64).clamp(256 << 10, 64 << 20).next_power_of_two(),
        tcp_buffer_bytes: ((fastest / 8.0 * rtt_s * 2.0) as u64)
            .clamp(128 << 10, 1 << 30)
            .next_power_of_two(),
        moves: moves.collect(),
    }
}

fn expect(bytes: u64, down: bool, direction: &Direction, rtt_s: f64) -> TransferTime {
    let bits = bytes as f64 * 8.0;
    let share = f64::from(direction.datagram_bytes) / (f64::from(direction.datagram_bytes) + 28.0);
    let knee = direction.knee_bps.unwrap_or(Estimate::exact(0.0));
    let loss = direction.loss.unwrap_or(Estimate::exact(0.0));
    // CUBIC reacts once to a run, because most of it falls into one round trip.
    let run = direction.loss_run.map_or(1.0, |run| run.value.max(1.0));
    let cubic = |loss: f64, knee: f64| tcp_cubic_bps(1_448.0, rtt_s, loss / run).min(knee * 0.94);
    let time = |rate: f64| if rate > 0.0 { bits / rate + rtt_s } else { f64::INFINITY };
    let between = |middle: f64, fast: f64, slow: f64| Estimate::new(time(middle), time(fast), time(slow));
    let best = direction.tcp.iter().max_by(|a, b| a.late_bps.value.total_cmp(&b.late_bps.value));
    TransferTime {
        down,
        bytes,
        tcp_cubic_s: between(
            cubic(loss.value, knee.value),
            cubic(loss.low, knee.high),
            cubic(loss.high, knee.low),
        ),
        tcp_measured_s: best.map(|tcp| between(tcp.late_bps.value, tcp.late_bps.high, tcp.late_bps.low)),
        grebe_s: (knee.value > 0.0).then(|| {
            let rate = |knee: f64, loss: f64| knee * GREBE_SHARE * share * (1.0 - loss);
            between(rate(knee.value, loss.value), rate(knee.high, loss.low), rate(knee.low, loss.high))
        }),
    }
}

/// Share of the knee that `grebe send` uses, from docs/benchmarks-transfer.md.
const GREBE_SHARE: f64 = 0.97;

fn mbit(bps: f64) -> String {
    match bps {
        bps if bps >= 1e9 => format!("{:.2} Gbit/s", bps / 1e9),
        bps if bps >= 1e7 => format!("{:.0} Mbit/s", bps / 1e6),
        bps => format!("{:.2} Mbit/s", bps / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::tests::report;

    #[test]
    fn cubic_is_as_slow_as_it_is() {
        // 250 ms: 0.01 % 17 Mbit/s, 0.1 % 3.0, 1 % 0.56
        for (loss, mbps) in [(1e-4, 17.0), (1e-3, 3.05), (1e-2, 0.57)] {
            let found = tcp_cubic_bps(1_448.0, 0.25, loss) / 1e6;
            assert!((found / mbps - 1.0_f64).abs() < 0.05, "{found} at {loss}");
        }
        assert_eq!(tcp_cubic_bps(1_448.0, 0.25, 0.0), f64::INFINITY);
    }

    #[test]
    fn a_search_that_had_no_time_says_so() {
        let mut report = report();
        report.up = Direction { knee_bps: None, limit: Some(LimitedBy::Unfinished), ..report.up };
        report.down = Direction { knee_bps: None, limit: Some(LimitedBy::Link), ..report.down };
        conclude(&mut report, &[]);
        let text = report.verdict.join("\n");
        assert!(text.contains("up: too little time or data") && !text.contains("down: too little"), "{text}");
    }

    #[test]
    fn the_verdict_names_the_limit_and_the_times() {
        let mut report = report();
        conclude(&mut report, &[1_000_000_000]);
        let text = report.verdict.join("\n");
        assert!(text.contains("up: the link is the limit, 100 Mbit/s"), "{text}");
        assert!(text.contains("1.00 % are lost") && text.contains("CUBIC to about 0.5"), "{text}");
        let [up, down] = report.advice.moves[..] else { panic!() };
        assert!(up.tcp_cubic_s.value > 10_000.0 && down.tcp_cubic_s.value < 90.0, "{up:?} {down:?}");
        assert!((84.0..87.0).contains(&up.grebe_s.unwrap().value), "{up:?}");
        assert_eq!(report.advice.datagram_bytes, 1_472);
        assert!(report.advice.tcp_buffer_bytes >= 6_250_000);
    }
}
