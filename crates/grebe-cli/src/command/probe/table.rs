//! Report of a probe as text: one line per figure, both directions side by side.

use grebe_probe::{Direction, Estimate, LimitedBy, ProbeEvent, Report, TcpResult, TrainResult, TransferTime};
use grebe_scope::Engineering;

use crate::units::grouped;

/// Lines of the progress.
#[derive(Default)]
pub(crate) struct Lines {
    trains: usize,
}

impl Lines {
    /// Lines of an event.
    pub(crate) fn of(&mut self, event: &ProbeEvent) -> Vec<String> {
        match event {
            ProbeEvent::Waiting { ahead } => vec![format!("{ahead} clients ahead")],
            ProbeEvent::RoundTrip(rtt) => vec![format!("round trip {}", figure(*rtt, "ms"))],
            ProbeEvent::Part { name, is_down: Some(is_down) } => {
                vec![format!("{name} {}", direction_name(*is_down))]
            }
            ProbeEvent::Part { name, is_down: None } => vec![(*name).to_owned()],
            ProbeEvent::Train { is_down, result } => {
                let head = self.trains.is_multiple_of(HEAD_EVERY).then(|| HEAD.to_owned());
                self.trains += 1;
                head.into_iter().chain([train_line(*is_down, result)]).collect()
            }
            _ => Vec::new(),
        }
    }
}

const HEAD: &str = "        at               sent       arrived   lost      RTT";
const HEAD_EVERY: usize = 20;

fn train_line(is_down: bool, train: &TrainResult) -> String {
    format!(
        "  {:6.1} s  {:4} {:>13} {:>13} {:5.2} % {:6.1} ms  {}",
        train.at_s,
        direction_name(is_down),
        rate(train.sent_bps),
        rate(train.delivered_bps),
        f64::from(train.lost) / f64::from(train.count.max(1)) * 100.0,
        train.rtt_ms,
        train.failed.map_or("", limit_name)
    )
}

/// The whole report.
pub(crate) fn text(report: &Report) -> String {
    let mut text = format!("{} within {:.1} s\n\n", report.peer, report.elapsed_s);
    let rtt = &report.rtt;
    let mut row = |name: &str, value: String| text += &format!("  {name:20} {value}\n");
    row("round trip", format!("min {}", figure(rtt.min_ms, "ms")));
    row("", format!("p50 {}", figure(rtt.p50_ms, "ms")));
    row("", format!("p99 {}", figure(rtt.p99_ms, "ms")));
    row("clock offset", figure(report.clock_offset_ms, "ms"));
    text += &format!("\n  {:20} {:29} {}\n", "", "up", "down");
    let directions = [&report.up, &report.down];
    for (name, value) in ROWS {
        let [up, down] = directions.map(|direction| value(direction).unwrap_or_else(|| "-".to_owned()));
        if (up.as_str(), down.as_str()) != ("-", "-") {
            text += &format!("  {name:20} {up:29} {down}\n");
        }
    }
    let streams = report.up.tcp.len().max(report.down.tcp.len());
    for at in 0..streams {
        let [up, down] = directions.map(|direction| direction.tcp.get(at));
        let bytes = up.or(down).map_or(0, |tcp| tcp.write_bytes);
        let cell = |tcp: Option<&TcpResult>| tcp.map_or("-".to_owned(), |tcp| rates(tcp.goodput_bps));
        text += &format!("  {:20} {:29} {}\n", format!("TCP, {bytes} B writes"), cell(up), cell(down));
    }
    text += "\n";
    for sentence in &report.verdict {
        text += &format!("{sentence}.\n");
    }
    let advice = &report.advice;
    let [up, down] = advice.rate_bps;
    text += &format!(
        "Set: --datagram-size {}; up {}, down {}; UDP buffers of {}; TCP buffers of {}.\n",
        advice.datagram_bytes,
        at_most(up),
        at_most(down),
        size(advice.udp_buffer_bytes),
        size(advice.tcp_buffer_bytes),
    );
    for transfer in &advice.moves {
        text += &transfer_line(transfer);
    }
    text += &format!("Spent: {} bytes.\n", grouped(report.spent_bytes));
    text
}

/// Figure of a direction.
type Cell = fn(&Direction) -> Option<String>;

const ROWS: [(&str, Cell); 15] = [
    ("path MTU", |direction| direction.mtu_bytes.map(|mtu| figure(mtu, "B"))),
    ("knee (IP)", |direction| direction.knee_bps.map(rates)),
    ("  limit", |direction| {
        let confirmed = if direction.confirmed { ", confirmed" } else { "" };
        direction.limit.map(|limit| format!("{}{confirmed}", limit_name(limit)))
    }),
    ("UDP goodput", |direction| direction.udp_goodput_bps.map(rates)),
    ("  spacing", |direction| {
        direction
            .spacing_us
            .map(|spacing| format!("{:.1} us requested, {:.1} sent", spacing.requested_us, spacing.sent_us))
    }),
    ("loss", |direction| direction.loss.map(share)),
    ("  runs", |direction| {
        direction
            .loss_run
            .map(|run| format!("{}, max {}", figure(run, "").replace("  ", " "), direction.longest_run))
    }),
    ("  in the kernel", |direction| {
        direction.kernel_drops.map(|drops| format!("{} at the receiver", grouped(drops)))
    }),
    ("reordered", |direction| {
        direction.reordered.map(|reordered| format!("{}, by {}", share(reordered), direction.reorder_extent))
    }),
    ("duplicated", |direction| direction.duplicated.map(share)),
    ("jitter", |direction| direction.jitter_ms.map(|jitter| figure(jitter, "ms"))),
    ("  delay p99", |direction| {
        Some(format!("{:.2} ms above the shortest", direction.delay_variation_p99_ms))
    }),
    ("bufferbloat", |direction| direction.bufferbloat_ms.map(|bloat| figure(bloat, "ms"))),
    ("  queue", |direction| {
        let filled = if direction.queue_filled { "seen full" } else { "not seen full: at least that" };
        direction.bufferbloat_ms.map(|_| filled.to_owned())
    }),
    ("trains", |direction| {
        let [sent, arrived] = [direction.sent_bytes, direction.arrived_bytes]
            .map(|bytes| Engineering::new(bytes as f64, "B").to_string());
        (direction.sent_bytes > 0).then(|| format!("{sent}, {arrived} arrived"))
    }),
];

fn transfer_line(transfer: &TransferTime) -> String {
    let measured = transfer.tcp_measured_s.map_or("not measured".to_owned(), times);
    let ours = transfer.grebe_s.map_or("-".to_owned(), times);
    format!(
        "{} {}: grebe send {ours}; TCP as measured {measured}; TCP with CUBIC, by its loss and round trip, {}.\n",
        Engineering::new(transfer.bytes as f64, "B"),
        direction_name(transfer.down),
        times(transfer.tcp_cubic_s)
    )
}

pub(crate) fn direction_name(is_down: bool) -> &'static str {
    if is_down { "down" } else { "up" }
}

fn limit_name(limit: LimitedBy) -> &'static str {
    match limit {
        LimitedBy::Link => "full queue: link",
        LimitedBy::Policer => "drops: a policer",
        LimitedBy::ReceiveBuffer => "receiver's buffer",
        LimitedBy::Sender => "the sender",
        LimitedBy::Unfinished => "not reached in time",
        LimitedBy::Allowed => "none up to --max-rate",
    }
}

fn figure(estimate: Estimate, unit: &str) -> String {
    let Estimate { value, low, high } = estimate;
    let digits = match (high - low).abs() {
        width if width >= 20.0 || value.fract() == 0.0 && width == 0.0 => 0,
        width if width >= 2.0 => 1,
        width if width >= 0.2 => 2,
        _ => 3,
    };
    format!("{value:.digits$} {unit} [{low:.digits$}, {high:.digits$}]")
}

fn share(estimate: Estimate) -> String {
    figure(estimate.scaled(100.0), "%")
}

fn rates(estimate: Estimate) -> String {
    let (divisor, unit) = if estimate.value >= 1e9 { (1e9, "Gbit/s") } else { (1e6, "Mbit/s") };
    figure(estimate.scaled(1.0 / divisor), unit)
}

fn rate(bps: f64) -> String {
    Engineering::new(bps, "bit/s").to_string()
}

fn at_most(bps: f64) -> String {
    if bps > 0.0 { format!("at most {} of payload", rate(bps)) } else { "not known".to_owned() }
}

fn size(bytes: u64) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

fn times(estimate: Estimate) -> String {
    if !estimate.value.is_finite() {
        return "not known".to_owned();
    }
    let time = |seconds: f64| match seconds {
        s if !s.is_finite() => "never".to_owned(),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 1_200.0 => format!("{:.1} min", s / 60.0),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    };
    format!("{} [{}, {}]", time(estimate.value), time(estimate.low), time(estimate.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_as_many_digits_as_they_are_worth() {
        assert_eq!(figure(Estimate::new(250.123, 250.1, 250.15), "ms"), "250.123 ms [250.100, 250.150]");
        assert_eq!(rates(Estimate::new(98.4e6, 96.1e6, 101.2e6)), "98.4 Mbit/s [96.1, 101.2]");
        assert_eq!(figure(Estimate::exact(1_500.0), "B"), "1500 B [1500, 1500]");
        assert_eq!(times(Estimate::new(100.0, 90.0, 7_300.0)), "100.0 s [90.0 s, 2.0 h]");
    }
}
