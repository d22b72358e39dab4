//! What was measured, for programs, and as rows for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use grebe_transfer::PhaseCost;
use serde::{Deserialize, Serialize};

use super::link::Link;
use crate::canary::Reading;
use crate::row::{Row, digits, range};
use crate::stats::Spread;

/// What one transfer of ours over a link did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Sent {
    /// From the start to the receiver's last word, with the handshake.
    pub seconds: f64,
    /// Bytes on the wire, headers and repeats with them.
    pub wire_bytes: u64,
    /// The share of packets that were lost, 0 to 1.
    pub lost: f64,
    pub phases: Vec<PhaseRow>,
}

/// What a phase of the rate control cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PhaseRow {
    pub phase: String,
    /// Times it was entered.
    pub entries: u32,
    /// Round trips that ended in it.
    pub round_trips: u32,
    pub seconds: f64,
}

/// What became of a TCP flow that carries the same.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TcpRun {
    Seconds(f64),
    /// The share that was done when it was given up.
    GivenUp(f64),
    /// Why it could not be measured.
    Refused(String),
}

/// What stands between the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Over {
    /// The simulator, in virtual time.
    Simulator,
    /// A program that emulates the link between two network namespaces.
    Emulator,
}

/// A file over a link, beside TCP flows that carry the same alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename = "link")]
pub(super) struct LinkRow {
    pub link: Link,
    pub over: Over,
    pub seconds: Spread,
    /// Runs; every one brought the file whole.
    pub runs: usize,
    /// What the wire alone takes.
    pub wire_s: f64,
    /// Whether the median is within the link's goal.
    pub is_met: bool,
    /// Bytes on the wire, divided by those of the file.
    pub wire_bytes_ratio: Spread,
    /// What it may be: 1.05 and the link's loss.
    pub wire_bytes_goal: f64,
    pub lost: Spread,
    /// What each phase cost in the median run.
    pub phases: Vec<PhaseRow>,
    /// TCP on the same link.
    pub baselines: Vec<Baseline>,
    /// The machine before and after the runs, where their time is real.
    pub machine: Option<(Reading, Reading)>,
}

/// How TCP did the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Baseline {
    pub name: String,
    /// From the start to the receiver's last word; `None` where it was given up.
    pub seconds: Option<Spread>,
    /// How much was done when it was given up: the share of the file, 0 to 1, and after how long.
    pub given_up: Option<(f64, f64)>,
    /// How many times as long it took as ours.
    pub ratio: Option<f64>,
}

/// Two flows on one path.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename = "share")]
pub(super) struct ShareRow {
    /// Whose flows.
    pub flows: [String; 2],
    /// The path in words.
    pub path: String,
    /// The first one's share in the last two thirds of the time, 0 to 1.
    pub share: Spread,
    /// Megabits per second on the wire of both together.
    pub rate_mbit: Spread,
    /// The share of all packets that were lost, 0 to 1.
    pub lost: Spread,
    /// What is lost where a second CUBIC stands in our place.
    pub lost_by_cubic: Option<f64>,
    /// Whether the median share is within 35 to 65 %; `None` where none of the flows is ours.
    pub is_fair: Option<bool>,
    pub runs: usize,
}

/// A file from one process of this machine to another.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename = "copy")]
pub(super) struct CopyRow {
    /// By which program.
    pub way: String,
    /// What it does and does not do.
    pub does: String,
    pub size_bytes: u64,
    /// Bits of the file per second, in billions.
    pub gbit_per_s: Spread,
    pub runs: usize,
    /// How many times as fast as each of the others, the median of the rounds.
    pub ratios: BTreeMap<String, f64>,
    pub machine_before: Reading,
    pub machine_after: Reading,
}

impl PhaseRow {
    /// One per phase, in the order of [`Phase`](grebe_transfer::Phase).
    pub(super) fn of(costs: &[PhaseCost; 5]) -> Vec<PhaseRow> {
        let names = ["train", "ramp", "cruise", "up", "down"];
        let row = |(phase, cost): (&str, &PhaseCost)| PhaseRow {
            phase: phase.to_owned(),
            entries: cost.entries,
            round_trips: cost.rounds,
            seconds: cost.time_us as f64 / 1e6,
        };
        names.into_iter().zip(costs).map(row).collect()
    }

    fn words(&self) -> String {
        let Self { phase, round_trips, seconds, .. } = self;
        match round_trips {
            0 => format!("{phase} {seconds:.2} s"),
            _ => format!("{phase} {seconds:.2} s ({round_trips} RTT)"),
        }
    }
}

impl Baseline {
    /// Counts as given up where any of its runs was; `None` where one was refused.
    pub(super) fn of(name: &str, runs: &[TcpRun], ours_s: f64, patience_s: f64) -> Option<Self> {
        let (mut seconds, mut shares) = (Vec::new(), Vec::new());
        for run in runs {
            match run {
                TcpRun::Seconds(after) => seconds.push(*after),
                TcpRun::GivenUp(share) => shares.push(*share),
                TcpRun::Refused(_) => return None,
            }
        }
        let (seconds, given_up) = match shares.as_slice() {
            [] => (Some(Spread::of(&seconds)), None),
            shares => (None, Some((Spread::of(shares).median, patience_s))),
        };
        let ratio = seconds.map(|seconds| seconds.median / ours_s);
        Some(Self { name: name.to_owned(), seconds, given_up, ratio })
    }

    fn words(&self) -> String {
        let mut words = self.name.clone();
        match (&self.seconds, self.given_up) {
            (Some(seconds), _) => _ = write!(words, " {} s", digits(seconds.median)),
            (None, Some((share, after_s))) => {
                _ = write!(words, " {:.0} % done after {after_s:.0} s", 100.0 * share);
            }
            (None, None) => {}
        }
        if let Some(ratio) = self.ratio {
            let _ = write!(words, " (x{ratio:.2})");
        }
        words
    }
}

impl LinkRow {
    /// `tcp` are the flows beside ours by name, which were given up after `patience_s`.
    pub(super) fn of(
        link: &Link,
        over: Over,
        sent: &[Sent],
        tcp: &[(String, Vec<TcpRun>)],
        patience_s: f64,
        machine: Option<(Reading, Reading)>,
    ) -> Self {
        let seconds = Spread::over(sent, |sent| sent.seconds);
        let mut by_time: Vec<&Sent> = sent.iter().collect();
        by_time.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let baseline =
            |(name, runs): &(String, Vec<TcpRun>)| Baseline::of(name, runs, seconds.median, patience_s);
        Self {
            link: link.clone(),
            over,
            seconds,
            runs: sent.len(),
            wire_s: link.wire_s(),
            is_met: seconds.median <= link.goal_s,
            wire_bytes_ratio: Spread::over(sent, |sent| sent.wire_bytes as f64 / link.file_bytes as f64),
            wire_bytes_goal: link.wire_bytes_goal(),
            lost: Spread::over(sent, |sent| sent.lost),
            phases: by_time.get(by_time.len() / 2).map_or(Vec::new(), |sent| sent.phases.clone()),
            baselines: tcp.iter().filter_map(baseline).collect(),
            machine,
        }
    }

    pub(super) fn row(&self) -> Row {
        let title = match self.over {
            Over::Simulator => {
                "Links, simulated, from the start to the receiver's last word; time is virtual"
            }
            Over::Emulator => {
                "Links, emulated between two network namespaces, from the start to the receiver's last word"
            }
        };
        let phases: Vec<String> = self.phases.iter().map(PhaseRow::words).collect();
        let baselines: Vec<String> = self.baselines.iter().map(Baseline::words).collect();
        let (wire_ratio, wire_goal) = (self.wire_bytes_ratio.median, self.wire_bytes_goal);
        Row::new(title, self)
            .name("link", &self.link.name)
            .name("path", format!("{:<36}", self.link.words()))
            .cell("MB", format!("{:.0}", self.link.file_bytes as f64 / 1e6))
            .cell("s (range)", range(&self.seconds))
            .cell("s for the wire alone", digits(self.wire_s))
            .cell("runs", self.runs)
            .cell("% lost", format!("{:.2}", 100.0 * self.lost.median))
            .text("phases: s (round trips)", phases.join(", "))
            .text("beside it: s (ratio)", baselines.join(", "))
            .machine(self.machine)
            .goal(
                "time",
                format!("<= {} s", digits(self.link.goal_s)),
                format!("{} s", digits(self.seconds.median)),
                self.is_met,
            )
            .goal(
                "bytes on the wire",
                format!("<= {wire_goal:.3} times the file"),
                format!("{wire_ratio:.3}"),
                wire_ratio <= wire_goal,
            )
    }
}

impl ShareRow {
    pub(super) fn row(&self) -> Row {
        let percents = |of: &Spread| {
            range(&Spread { low: 100.0 * of.low, median: 100.0 * of.median, high: 100.0 * of.high })
        };
        let lost_by_cubic = self.lost_by_cubic.map(|lost| format!("{:.2}", 100.0 * lost));
        let row = Row::new(format!("Two flows on {}, simulated", self.path), self)
            .name("flows", format!("{:<12}", self.flows.join(", ")))
            .cell("% the first one's share (range)", percents(&self.share))
            .cell("Mbit/s of both", range(&self.rate_mbit))
            .cell("% lost (range)", percents(&self.lost))
            .cell("% lost beside a second CUBIC", lost_by_cubic.unwrap_or_else(|| "-".to_owned()))
            .cell("runs", self.runs);
        let measured = format!("{:.0} %", 100.0 * self.share.median);
        match self.is_fair {
            Some(is_fair) => row.goal("share", "35 to 65 %", measured, is_fair),
            None => row,
        }
    }
}

impl CopyRow {
    pub(super) fn row(&self) -> Row {
        let title = format!(
            "{} from one process of this machine to another, every byte compared",
            size_words(self.size_bytes)
        );
        let ratios: Vec<_> = self.ratios.iter().map(|(other, ratio)| format!("{ratio:.2} {other}")).collect();
        Row::new(title, self)
            .name("program", &self.way)
            .cell("Gbit/s (range)", range(&self.gbit_per_s))
            .cell("runs", self.runs)
            .text("does", &self.does)
            .cell("times", if ratios.is_empty() { "-".to_owned() } else { ratios.join(", ") })
            .machine(Some((self.machine_before, self.machine_after)))
    }
}

/// Bytes for people, in the multiples that the command line takes.
pub(super) fn size_words(bytes: u64) -> String {
    [("GiB", 30), ("MiB", 20), ("KiB", 10)]
        .into_iter()
        .find(|(_, shift)| bytes >= 1 << shift)
        .map_or(format!("{bytes} bytes"), |(unit, shift)| {
            format!("{} {unit}", (10.0 * bytes as f64 / (1_u64 << shift) as f64).round() / 10.0)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::link;

    #[test]
    fn a_baseline_that_was_given_up_or_refused_says_so() {
        let runs = [TcpRun::Seconds(8.0), TcpRun::Seconds(9.0), TcpRun::Seconds(7.0)];
        let whole = Baseline::of("TCP CUBIC", &runs, 4.0, 60.0).unwrap();
        assert_eq!((whole.ratio, whole.words().as_str()), (Some(2.0), "TCP CUBIC 8.00 s (x2.00)"));
        let runs = [TcpRun::Seconds(8.0), TcpRun::GivenUp(0.284)];
        let given_up = Baseline::of("TCP CUBIC", &runs, 4.0, 60.0).unwrap();
        assert_eq!((given_up.seconds, given_up.given_up), (None, Some((0.284, 60.0))));
        assert_eq!(given_up.words(), "TCP CUBIC 28 % done after 60 s");
        assert_eq!(Baseline::of("TCP BBR", &[TcpRun::Refused("no".to_owned())], 4.0, 60.0), None);
    }

    #[test]
    fn a_link_says_what_was_met() {
        let sent = |seconds| Sent { seconds, wire_bytes: 53_000_000, lost: 0.001, phases: Vec::new() };
        let link = &link::choose(&["B".to_owned()]).unwrap()[0];
        let tcp = [("TCP BBR".to_owned(), vec![TcpRun::Seconds(2.6)])];
        let row = |s| LinkRow::of(link, Over::Emulator, &[sent(s), sent(2.3), sent(9.0)], &tcp, 60.0, None);
        let (met, missed) = (row(2.4).row().line(), row(2.6).row().line());
        assert!(met.contains("time <= 2.50 s: met") && missed.contains("time <= 2.50 s: MISSED"), "{met}");
        assert!(
            met.contains("2.40 (2.30-9.00) s (range)") && met.contains("TCP BBR 2.60 s (x1.08)"),
            "{met}"
        );
        assert!(met.contains("bytes on the wire <= 1.051 times the file: MISSED"), "{met}");
    }
}
