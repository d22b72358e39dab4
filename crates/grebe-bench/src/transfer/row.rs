//! Results, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use grebe_transfer::PhaseCost;
use serde::{Deserialize, Serialize};

use super::link::Link;
use crate::canary::Reading;
use crate::flow::Spread;

/// One result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Row {
    /// A file over a link.
    Link(LinkRow),
    /// Two flows on one path.
    Share(ShareRow),
    /// A file from one process of this machine to another.
    Copy(CopyRow),
    /// Something that could not be measured here.
    LeftOut {
        /// What.
        what: String,
        /// Why.
        why: String,
    },
}

/// A file over a link, beside TCP flows that carry the same alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkRow {
    /// The link.
    pub link: Link,
    /// Whether its time is virtual.
    pub over: Over,
    /// From the start to the receiver's last word, with the handshake.
    pub seconds: Spread,
    /// Runs; every one brought the file whole.
    pub runs: usize,
    /// What the wire alone takes.
    pub wire_s: f64,
    /// Whether the median is within the link's goal.
    pub is_met: bool,
    /// Bytes on the wire, headers and repeats with them, divided by those of the file.
    pub wire_bytes_ratio: Spread,
    /// What it may be: 1.05 and the link's loss.
    pub wire_bytes_goal: f64,
    /// The share of packets that were lost, 0 to 1.
    pub lost: Spread,
    /// What each phase cost in the median run.
    pub phases: Vec<PhaseRow>,
    /// TCP on the same link.
    pub baselines: Vec<Baseline>,
    /// The machine before and after the runs, where their time is real.
    pub moods: Option<(Reading, Reading)>,
}

/// What stands between the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// The simulator, in virtual time.
    Simulator,
    /// A program that emulates the link between two network namespaces.
    Emulator,
}

/// What a phase of the rate control cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseRow {
    /// Its name.
    pub phase: String,
    /// Times it was entered.
    pub entries: u32,
    /// Round trips that ended in it.
    pub round_trips: u32,
    /// Time in it.
    pub seconds: f64,
}

/// How TCP did the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Its name.
    pub name: String,
    /// From the start to the receiver's last word; `None` where it was given up.
    pub seconds: Option<Spread>,
    /// How much was done when it was given up: the share of the file, 0 to 1, and after how long.
    pub given_up: Option<(f64, f64)>,
    /// How many times as long it took as ours.
    pub ratio: Option<f64>,
}

/// Two flows on one path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShareRow {
    /// Whose flows.
    pub flows: [String; 2],
    /// The path in words.
    pub path: String,
    /// The first one's share in the last two thirds of the time, 0 to 1.
    pub share: Spread,
    /// Megabits a second on the wire of both together.
    pub rate_mbit: Spread,
    /// The share of all packets that were lost, 0 to 1.
    pub lost: Spread,
    /// What is lost where a second CUBIC stands in our place.
    pub lost_by_cubic: Option<f64>,
    /// Whether the median share is within 35 to 65 %; `None` where none of the flows is ours.
    pub is_fair: Option<bool>,
    /// Runs.
    pub runs: usize,
}

/// A file from one process of this machine to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CopyRow {
    /// By which way.
    pub way: String,
    /// What it does and does not do.
    pub does: String,
    /// Bytes of the file.
    pub size_bytes: u64,
    /// Bits of the file a second, in billions.
    pub gbit_per_s: Spread,
    /// Runs.
    pub runs: usize,
    /// How many times as fast as each of the others, the median of the rounds.
    pub ratios: BTreeMap<String, f64>,
    /// The machine before the runs.
    pub mood_before: Reading,
    /// The machine after them.
    pub mood_after: Reading,
}

impl PhaseRow {
    /// A row a phase, in the order of [`Phase`](grebe_transfer::Phase).
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
}

impl Row {
    /// What this row and those of its kind are about.
    pub fn title(&self) -> Option<String> {
        let links = "seconds from the start to the receiver's last word, median (range), \
                     beside TCP's and how many times as long that is";
        match self {
            Row::Link(row) => Some(match row.over {
                Over::Simulator => format!("Links, simulated: {links}; time is virtual"),
                Over::Emulator => format!("Links, emulated between two network namespaces: {links}"),
            }),
            Row::Share(row) => {
                Some(format!("Two flows on {}, simulated: the first one's share, median (range)", row.path))
            }
            Row::Copy(row) => Some(format!(
                "{} from one process of this machine to another, every byte compared",
                size(row.size_bytes)
            )),
            Row::LeftOut { .. } => None,
        }
    }

    /// The row as text for people: a line, of a link two.
    pub fn line(&self) -> String {
        match self {
            Row::Link(row) => row.line(),
            Row::Share(row) => row.line(),
            Row::Copy(row) => row.line(),
            Row::LeftOut { what, why } => format!("{what} left out: {why}"),
        }
    }
}

impl LinkRow {
    /// Whether no more than the goal went over the wire.
    pub(super) fn is_wire_met(&self) -> bool {
        self.wire_bytes_ratio.median <= self.wire_bytes_goal
    }

    fn line(&self) -> String {
        let mut line = format!(
            "{:<2} {:<38} {:>2.0} MB  {:<22} goal {:<5} {:<7} wire {:<5}",
            self.link.name,
            self.link.words(),
            self.link.file_bytes as f64 / 1e6,
            spread(&self.seconds, 2),
            digits(self.link.goal_s),
            if self.is_met { "met," } else { "MISSED," },
            digits(self.wire_s),
        );
        for baseline in &self.baselines {
            let _ = write!(line, "  {}", baseline.words());
        }
        let _ = write!(
            line,
            "\n   on the wire {:.3} times the file, goal {:.3} {}, {:.2} % lost;",
            self.wire_bytes_ratio.median,
            self.wire_bytes_goal,
            if self.is_wire_met() { "met" } else { "MISSED" },
            100.0 * self.lost.median
        );
        let phases: Vec<String> = self.phases.iter().map(PhaseRow::words).collect();
        let _ = write!(line, " {}", phases.join(", "));
        if let Some((before, after)) = &self.moods {
            let _ = write!(line, "; mood {before} to {after}");
        }
        line
    }
}

impl PhaseRow {
    pub(super) fn words(&self) -> String {
        let Self { phase, round_trips, seconds, .. } = self;
        match round_trips {
            0 => format!("{phase} {seconds:.2} s"),
            _ => format!("{phase} {seconds:.2} s ({round_trips} RTT)"),
        }
    }
}

impl Baseline {
    pub(super) fn words(&self) -> String {
        let mut words = self.name.clone();
        match (&self.seconds, self.given_up) {
            (Some(seconds), _) => _ = write!(words, " {}", digits(seconds.median)),
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

impl ShareRow {
    fn line(&self) -> String {
        let mut line = format!(
            "{:<14} {:<18} {:>5.1} Mbit/s of both, {:.2} % lost",
            self.flows.join(", "),
            share(&self.share),
            self.rate_mbit.median,
            100.0 * self.lost.median,
        );
        if let Some(lost) = self.lost_by_cubic {
            let _ = write!(line, " (a second CUBIC: {:.2} %)", 100.0 * lost);
        }
        if let Some(is_fair) = self.is_fair {
            line += if is_fair { "; 35 to 65 %: met" } else { "; 35 to 65 %: MISSED" };
        }
        line
    }
}

impl CopyRow {
    fn line(&self) -> String {
        let mut line = format!("{:<7} {:<19} Gbit/s  {}", self.way, spread(&self.gbit_per_s, 2), self.does);
        if !self.ratios.is_empty() {
            let _ = write!(line, "; {}", self.ratio_words());
        }
        let _ = write!(line, "; mood {} to {}", self.mood_before, self.mood_after);
        line
    }

    pub(super) fn ratio_words(&self) -> String {
        self.ratios.iter().map(|(way, ratio)| format!("x{ratio:.2} {way}")).collect::<Vec<_>>().join(", ")
    }
}

/// `median (low-high)`; the range only where there is one.
pub(super) fn spread(of: &Spread, digits: usize) -> String {
    let [low, median, high] = [of.low, of.median, of.high].map(|value| format!("{value:.digits$}"));
    if low == high { median } else { format!("{median} ({low}-{high})") }
}

/// Shares as percentages.
pub(super) fn share(of: &Spread) -> String {
    let percent = |share: f64| 100.0 * share;
    let percents = Spread { low: percent(of.low), median: percent(of.median), high: percent(of.high) };
    format!("{} %", spread(&percents, 0))
}

/// Three digits.
pub(super) fn digits(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Bytes for people, in the multiples that the command line takes.
pub(super) fn size(bytes: u64) -> String {
    [("GiB", 30), ("MiB", 20), ("KiB", 10)]
        .into_iter()
        .find(|(_, shift)| bytes >= 1 << shift)
        .map_or(format!("{bytes} bytes"), |(unit, shift)| {
            format!("{} {unit}", (10.0 * bytes as f64 / (1_u64 << shift) as f64).round() / 10.0)
        })
}
