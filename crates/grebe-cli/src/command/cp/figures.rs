//! How far a copy is and what came of it, as numbers that can travel.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use grebe_tree::{LeftOut, Report, Snapshot, Waits};
use serde::{Deserialize, Serialize};

use super::lines::PathText;
use crate::cli::printable;

/// How far a copy is, see [`Snapshot`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Figures {
    pub(super) files_found: u64,
    pub(super) bytes_found: u64,
    pub(super) is_scanned: bool,
    pub(super) files_done: u64,
    pub(super) bytes_done: u64,
    pub(super) files_same: u64,
    pub(super) bytes_same: u64,
    pub(super) data_bytes: u64,
    pub(super) left_out: u64,
    /// The large file that is under way: its name, how far, and how long it is.
    pub(super) current: Option<(PathText, u64, u64)>,
}

/// What came of a copy, see [`Report`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Outcome {
    pub(super) files_copied: u64,
    pub(super) bytes_copied: u64,
    pub(super) files_same: u64,
    pub(super) bytes_same: u64,
    pub(super) directories_made: u64,
    pub(super) links_made: u64,
    pub(super) deleted: u64,
    pub(super) data_bytes: u64,
    /// Of the bytes that were copied those that were at the destination, in an older file or in what an earlier copy left.
    pub(super) found_bytes: u64,
    pub(super) wire_bytes: u64,
    pub(super) left_out: Vec<(PathText, String)>,
    pub(super) left_out_count: u64,
    /// For the stream and for disks, in ms: at the sender, and at the receiver.
    pub(super) waits_ms: [(u64, u64); 2],
}

/// How fast it was lately, and how long the rest takes if it goes on so.
#[derive(Debug, Default)]
pub(super) struct Pace {
    seen: VecDeque<(Instant, u64, u64)>,
}

impl From<Snapshot> for Figures {
    fn from(now: Snapshot) -> Self {
        Self {
            files_found: now.files_found,
            bytes_found: now.bytes_found,
            is_scanned: now.is_scanned,
            files_done: now.files_done,
            bytes_done: now.bytes_done,
            files_same: now.files_same,
            bytes_same: now.bytes_same,
            data_bytes: now.data_bytes,
            left_out: now.left_out,
            current: now.current.map(|it| (PathText::of(&it.name), it.done_bytes, it.total_bytes)),
        }
    }
}

impl Outcome {
    /// What was left out first, and why.
    pub(super) fn first_left_out(&self) -> Option<String> {
        let (name, why) = self.left_out.first()?;
        Some(format!("{}: {why}", printable(name.bytes())))
    }

    /// What came of a copy whose counters are over.
    pub(super) fn of(report: Report, counters: &Snapshot) -> Self {
        // What was the same counts there, too.
        let found_bytes = counters.bytes_same.saturating_sub(report.bytes_same);
        Self { found_bytes, ..report.into() }
    }

    /// Bytes that were copied, and neither moved nor found.
    pub(super) fn spared_bytes(&self) -> u64 {
        self.bytes_copied.saturating_sub(self.data_bytes).saturating_sub(self.found_bytes)
    }
}

impl From<Report> for Outcome {
    fn from(report: Report) -> Self {
        let waits = |waits: Waits| (waits.stream_ms, waits.disk_ms);
        let left_out = |left: LeftOut| (PathText::of(&left.name), left.why);
        Self {
            files_copied: report.files_copied,
            bytes_copied: report.bytes_copied,
            files_same: report.files_same,
            bytes_same: report.bytes_same,
            directories_made: report.directories_made,
            links_made: report.links_made,
            deleted: report.deleted,
            data_bytes: report.data_bytes,
            found_bytes: 0,
            wire_bytes: report.written_bytes + report.read_bytes,
            left_out: report.left_out.into_iter().map(left_out).collect(),
            left_out_count: report.left_out_count,
            waits_ms: [waits(report.sender), waits(report.receiver)],
        }
    }
}

impl Pace {
    pub(super) fn add(&mut self, now: Instant, figures: &Figures) {
        self.seen.push_back((now, figures.bytes_done, figures.files_done));
        while self.seen.len() > 2
            && self.seen.get(1).is_some_and(|(at, ..)| now.duration_since(*at) >= WINDOW)
        {
            self.seen.pop_front();
        }
    }

    /// Bytes and files a second.
    pub(super) fn rates(&self) -> (f64, f64) {
        let (Some(first), Some(last)) = (self.seen.front(), self.seen.back()) else { return (0.0, 0.0) };
        let seconds = last.0.duration_since(first.0).as_secs_f64();
        let rate = |from: u64, to: u64| to.saturating_sub(from) as f64 / seconds;
        if seconds < 0.05 { (0.0, 0.0) } else { (rate(first.1, last.1), rate(first.2, last.2)) }
    }

    /// How long the rest takes; `None` where that cannot be said: while not all is found, and in the first seconds.
    pub(super) fn left(&self, figures: &Figures) -> Option<Duration> {
        let (first, last) = (self.seen.front()?, self.seen.back()?);
        if !figures.is_scanned || last.0.duration_since(first.0) < SAID_AFTER {
            return None;
        }
        let (bytes_per_s, files_per_s) = self.rates();
        // Small files cost their number, large ones their bytes.
        let of = |left: u64, per_s: f64| match (left, per_s > 0.0) {
            (0, _) => Some(0.0),
            (left, true) => Some(left as f64 / per_s),
            (_, false) => None,
        };
        let bytes = of(figures.bytes_found.saturating_sub(figures.bytes_done), bytes_per_s);
        let files = of(figures.files_found.saturating_sub(figures.files_done), files_per_s);
        let seconds = match (bytes, files) {
            (Some(bytes), Some(files)) => bytes.max(files),
            // One long file finishes none for a while.
            (Some(bytes), None) => bytes,
            (None, _) => return None,
        };
        (seconds < 1e7).then(|| Duration::from_secs_f64(seconds))
    }
}

/// What is called lately.
const WINDOW: Duration = Duration::from_secs(10);
const SAID_AFTER: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(bytes_done: u64, files_done: u64, is_scanned: bool) -> Figures {
        Figures {
            bytes_found: 1_000,
            files_found: 100,
            bytes_done,
            files_done,
            is_scanned,
            ..Figures::default()
        }
    }

    #[test]
    fn no_time_is_said_before_all_is_found_and_then_the_longer_of_both() {
        let began = Instant::now();
        let mut pace = Pace::default();
        for second in 0..=4 {
            let now = figures(second * 100, second * 5, true);
            pace.add(began + Duration::from_secs(second), &now);
            assert_eq!(pace.left(&figures(0, 0, false)), None);
            assert_eq!(pace.left(&now).is_some(), second >= 2, "after {second} s");
        }
        // 600 bytes at 100 a second are 6 s, 80 files at 5 a second 16.
        assert_eq!(pace.left(&figures(400, 20, true)), Some(Duration::from_secs(16)));
        assert_eq!(pace.left(&figures(1_000, 100, true)), Some(Duration::ZERO));
    }

    #[test]
    fn only_the_last_seconds_count() {
        let began = Instant::now();
        let mut pace = Pace::default();
        for second in 0..60 {
            let bytes = if second < 30 { second } else { 30 + (second - 30) * 10 };
            pace.add(began + Duration::from_secs(second), &figures(bytes, 0, true));
        }
        assert_eq!(pace.rates().0, 10.0);
    }
}
