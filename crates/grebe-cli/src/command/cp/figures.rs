//! Progress and outcome of a copy, as numbers that can travel.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use grebe_tree::{LeftOut, Report, Snapshot, Waits};
use serde::{Deserialize, Serialize};

use super::path_text::PathText;
use crate::cli::printable;

/// Progress of a copy, see [`Snapshot`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::command) struct Figures {
    pub(super) files_found: u64,
    pub(super) bytes_found: u64,
    pub(super) is_scanned: bool,
    pub(super) files_done: u64,
    pub(super) bytes_done: u64,
    pub(super) files_same: u64,
    pub(super) bytes_same: u64,
    pub(super) data_bytes: u64,
    pub(super) left_out: u64,
    /// Large file in progress: name, bytes done, length.
    pub(super) current: Option<(PathText, u64, u64)>,
}

/// Outcome of a copy, see [`Report`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::command) struct Outcome {
    pub(super) files_copied: u64,
    pub(super) bytes_copied: u64,
    pub(super) files_same: u64,
    pub(super) bytes_same: u64,
    pub(super) directories_made: u64,
    pub(super) links_made: u64,
    pub(super) deleted: u64,
    pub(super) data_bytes: u64,
    /// Copied bytes that came from files at the destination, or from an earlier, partial copy.
    pub(super) found_bytes: u64,
    pub(super) wire_bytes: u64,
    pub(super) left_out: Vec<(PathText, String)>,
    pub(super) left_out_count: u64,
    /// Waits for the stream and for disks in ms: of the sender, and of the receiver.
    pub(super) waits_ms: [(u64, u64); 2],
}

/// Recent rates, and an estimate of the remaining time.
#[derive(Debug, Default)]
pub(super) struct Pace {
    seen: VecDeque<Seen>,
}

/// Progress at a time.
#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Instant,
    moved_bytes: u64,
    done_bytes: u64,
    done_files: u64,
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
    /// The first skipped file, with the reason.
    pub(super) fn first_left_out(&self) -> Option<String> {
        let (name, why) = self.left_out.first()?;
        Some(format!("{}: {why}", printable(name.bytes())))
    }

    /// The outcome after the last change of the counters.
    pub(super) fn of(report: Report, counters: &Snapshot) -> Self {
        // Unchanged files count in both.
        let found_bytes = counters.bytes_same.saturating_sub(report.bytes_same);
        Self { found_bytes, ..report.into() }
    }

    /// Copied bytes that were neither sent nor found at the destination.
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
        self.seen.push_back(Seen {
            at: now,
            moved_bytes: figures.data_bytes,
            done_bytes: figures.bytes_done,
            done_files: figures.files_done,
        });
        while self.seen.len() > 2
            && self.seen.get(1).is_some_and(|seen| now.duration_since(seen.at) >= WINDOW)
        {
            self.seen.pop_front();
        }
    }

    /// Sent bytes and finished files per second. Holes and found bytes do not count.
    pub(super) fn rates(&self) -> (f64, f64) {
        (self.rate(|seen| seen.moved_bytes), self.rate(|seen| seen.done_files))
    }

    /// Remaining time; `None` before the scan ends, and in the first seconds.
    pub(super) fn left(&self, figures: &Figures) -> Option<Duration> {
        let (first, last) = (self.seen.front()?, self.seen.back()?);
        if !figures.is_scanned || last.at.duration_since(first.at) < SAID_AFTER {
            return None;
        }
        // Small files are limited by their number, large ones by their bytes.
        let of = |left: u64, per_s: f64| match (left, per_s > 0.0) {
            (0, _) => Some(0.0),
            (left, true) => Some(left as f64 / per_s),
            (_, false) => None,
        };
        let bytes_left = figures.bytes_found.saturating_sub(figures.bytes_done);
        let files_left = figures.files_found.saturating_sub(figures.files_done);
        let bytes = of(bytes_left, self.steady_rate(|seen| seen.done_bytes));
        let files = of(files_left, self.steady_rate(|seen| seen.done_files));
        let seconds = match (bytes, files) {
            (Some(bytes), Some(files)) => bytes.max(files),
            // A long file finishes no other for a while.
            (Some(bytes), None) => bytes,
            (None, _) => return None,
        };
        (seconds < 1e7).then(|| Duration::from_secs_f64(seconds))
    }

    /// Rate over the whole window.
    fn rate(&self, of: impl Fn(&Seen) -> u64) -> f64 {
        match (self.seen.front(), self.seen.back()) {
            (Some(first), Some(last)) if last.at.duration_since(first.at) >= SHORTEST => {
                rate(first, last, &of)
            }
            _ => 0.0,
        }
    }

    /// Rate of the median second. A hole of gigabytes takes no time and predicts nothing.
    fn steady_rate(&self, of: impl Fn(&Seen) -> u64) -> f64 {
        let Some(mut from) = self.seen.front() else { return 0.0 };
        let mut rates = Vec::new();
        for seen in &self.seen {
            if seen.at.duration_since(from.at) >= SLICE {
                rates.push(rate(from, seen, &of));
                from = seen;
            }
        }
        rates.sort_by(f64::total_cmp);
        let median = rates.get(rates.len().saturating_sub(1) / 2).copied().unwrap_or_default();
        // Bursty progress falls into a few of the seconds.
        if median > 0.0 { median } else { self.rate(of) }
    }
}

fn rate(from: &Seen, to: &Seen, of: impl Fn(&Seen) -> u64) -> f64 {
    of(to).saturating_sub(of(from)) as f64 / to.at.duration_since(from.at).as_secs_f64()
}

/// Window of recent progress.
const WINDOW: Duration = Duration::from_secs(10);
/// Interval of one rate of the median.
const SLICE: Duration = Duration::from_secs(1);
/// Shortest interval of a rate.
const SHORTEST: Duration = Duration::from_millis(50);
const SAID_AFTER: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(bytes_done: u64, files_done: u64, is_scanned: bool) -> Figures {
        Figures {
            bytes_found: 1_000,
            files_found: 100,
            bytes_done,
            data_bytes: bytes_done,
            files_done,
            is_scanned,
            ..Figures::default()
        }
    }

    #[test]
    fn a_remaining_time_needs_the_total_and_is_the_longer_estimate() {
        let began = Instant::now();
        let mut pace = Pace::default();
        for second in 0..=4 {
            let now = figures(second * 100, second * 5, true);
            pace.add(began + Duration::from_secs(second), &now);
            assert_eq!(pace.left(&figures(0, 0, false)), None);
            assert_eq!(pace.left(&now).is_some(), second >= 2, "after {second} s");
        }
        // 600 bytes at 100 B/s take 6 s, 80 files at 5 per second take 16 s.
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
    #[test]
    fn holes_and_existing_bytes_count_for_no_rate_or_estimate() {
        let began = Instant::now();
        let mut pace = Pace::default();
        let at = |second: u64, here: u64| Figures {
            bytes_found: 10_000_001_000,
            bytes_done: here + second * 100,
            data_bytes: second * 100,
            files_found: 1,
            is_scanned: true,
            ..Figures::default()
        };
        for second in 0..=5 {
            // A hole in the third second.
            let now = at(second, if second < 3 { 0 } else { 10_000_000_000 });
            pace.add(began + Duration::from_secs(second), &now);
            assert!(second == 0 || pace.rates().0 == 100.0, "after {second} s");
        }
        assert_eq!(pace.left(&at(5, 10_000_000_000)), Some(Duration::from_secs(5)));
    }
}
