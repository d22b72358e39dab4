use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::check::Seen;
use super::make::Made;
use super::plan::{Job, Scenario, Technique, Work};
use crate::canary::{Mood, Reading};
use crate::udp::{Latency, RunResult};

/// One row: the median run of its kind. The fields of `bench --udp`, and what each consumer saw.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// Scenario.
    pub label: String,
    /// By which way.
    pub technique: Technique,
    /// What the way is called, where it is another program's.
    pub name: String,
    /// Channels a frame.
    pub channels: u32,
    /// Samples a channel and frame.
    pub block_size: u32,
    /// Bytes of header and samples.
    pub datagram_size: usize,
    /// Millions of samples a second and channel asked for; 0: as fast as it goes.
    pub target_rate_msps: f64,
    /// Seconds from the first frame to the last, at the slowest side.
    pub duration_s: f64,
    /// Frames made.
    pub frames_sent: u64,
    /// Frames that the consumer took that took the fewest.
    pub frames_recv: u64,
    /// The same, a second.
    pub frames_per_sec: f64,
    /// Millions of samples a second and channel that the slowest consumer took.
    pub throughput_msps: f64,
    /// The same as payload, megabits a second.
    pub throughput_mbps: f64,
    /// Lost frames of those made, over all consumers, 0 to 1.
    pub drop_rate: f64,
    /// Frames that a producer with a rate was too late to make.
    pub frames_skipped: u64,
    /// The machine before the run.
    pub mood_before: Reading,
    /// The machine after it.
    pub mood_after: Reading,
    /// For runs of a given rate: the share of readings meanwhile that were near, 0 to 1.
    pub near: Option<f64>,
    /// Throughput against each baseline of the same turns, by name.
    pub ratios: BTreeMap<String, f64>,
    /// Runs that the median is of.
    pub runs: usize,
    /// Frames that were not what their header says, over all consumers and runs.
    pub corrupt: u64,
    /// Frames that came behind their successor.
    pub reordered: u64,
    /// Payload bytes copied on the way, in user space; what a consumer copies on purpose is none.
    pub copies: u64,
    /// Shared memory, where there is some.
    pub footprint_bytes: usize,
    /// Share of a core that the producing thread used.
    pub cpu_sender: Option<f64>,
    /// Share of a core that the busiest consumer used.
    pub cpu_receiver: Option<f64>,
    /// From when a frame was due to when the slowest consumer took it.
    pub latency: Latency,
    /// Each consumer.
    pub consumers: Vec<ConsumerRow>,
}

/// What one consumer saw.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConsumerRow {
    /// What it did with each frame.
    pub work: Work,
    /// Frames it took.
    pub frames: u64,
    /// Frames that did not reach it.
    pub lost: u64,
    /// Frames that were not what their header says.
    pub corrupt: u64,
    /// Bytes it copied out on purpose.
    pub copied_out: u64,
    /// Share of a core that it used.
    pub cpu: Option<f64>,
    /// From when a frame was due to when it was taken.
    pub latency: Latency,
}

impl Row {
    pub(super) fn of(
        scenario: Scenario,
        job: &Job,
        made: Made,
        seen: Vec<Seen>,
        (mood_before, mood_after): (Reading, Reading),
        near: Option<f64>,
    ) -> Self {
        let longest = seen.iter().map(|seen| seen.duration).max().unwrap_or_default().max(made.duration);
        let duration_s = longest.as_secs_f64().max(1e-9);
        let share = |cpu: Option<std::time::Duration>| cpu.map(|cpu| cpu.as_secs_f64() / duration_s);
        let frames_recv = seen.iter().map(|seen| seen.frames).min().unwrap_or(0);
        let lost: u64 = seen.iter().map(|seen| made.frames.saturating_sub(seen.frames)).sum();
        let frames_per_sec = frames_recv as f64 / duration_s;
        let samples = frames_per_sec * f64::from(job.block);
        let latest = seen.iter().map(|seen| seen.latency).max_by(|a, b| a.p99_us.total_cmp(&b.p99_us));
        Self {
            label: scenario.label.to_owned(),
            technique: job.technique,
            name: job.technique.name().to_owned(),
            channels: job.channels,
            block_size: job.block,
            datagram_size: job.frame_bytes(),
            target_rate_msps: job.target_msps.unwrap_or(0.0),
            duration_s,
            frames_sent: made.frames,
            frames_recv,
            frames_per_sec,
            throughput_msps: samples / 1e6,
            throughput_mbps: samples * f64::from(job.channels) * 16.0 / 1e6,
            drop_rate: lost as f64 / (made.frames * seen.len().max(1) as u64).max(1) as f64,
            frames_skipped: made.skipped,
            mood_before,
            mood_after,
            near,
            ratios: BTreeMap::new(),
            runs: 1,
            corrupt: seen.iter().map(|seen| seen.corrupt).sum(),
            reordered: seen.iter().map(|seen| seen.reordered).sum(),
            copies: seen.iter().map(|seen| seen.copied).sum(),
            footprint_bytes: 0,
            cpu_sender: share(made.cpu),
            cpu_receiver: seen.iter().filter_map(|seen| share(seen.cpu)).max_by(f64::total_cmp),
            latency: latest.unwrap_or_default(),
            consumers: seen
                .iter()
                .zip(scenario.consumers)
                .map(|(seen, &work)| ConsumerRow {
                    work,
                    frames: seen.frames,
                    lost: made.frames.saturating_sub(seen.frames),
                    corrupt: seen.corrupt,
                    copied_out: seen.copied_out,
                    cpu: share(seen.cpu),
                    latency: seen.latency,
                })
                .collect(),
        }
    }

    pub(super) fn of_udp(row: RunResult, label: &str) -> Self {
        Self {
            label: label.to_owned(),
            technique: Technique::Udp,
            name: "udp".to_owned(),
            channels: row.channels,
            block_size: row.block_size,
            datagram_size: row.datagram_size,
            target_rate_msps: row.target_rate_msps,
            duration_s: row.duration_s,
            frames_sent: row.frames_sent,
            frames_recv: row.frames_recv,
            frames_per_sec: row.frames_per_sec,
            throughput_msps: row.throughput_msps,
            throughput_mbps: row.throughput_mbps,
            drop_rate: row.drop_rate,
            frames_skipped: 0,
            mood_before: row.mood_before,
            mood_after: row.mood_after,
            near: row.near,
            ratios: BTreeMap::new(),
            runs: 1,
            corrupt: row.corrupt,
            reordered: row.reordered,
            copies: row.copies,
            footprint_bytes: 0,
            cpu_sender: row.cpu_sender,
            cpu_receiver: row.cpu_receiver,
            latency: row.latency,
            consumers: Vec::new(),
        }
    }

    /// Notes how much faster this row is than each of the others.
    pub fn compare(&mut self, others: &[Row]) {
        for other in others.iter().filter(|other| other.throughput_msps > 0.0) {
            self.ratios.insert(other.name.clone(), self.throughput_msps / other.throughput_msps);
        }
    }

    /// The run whose throughput is the median. What was corrupt or skipped in any is in the row.
    pub fn median(mut runs: Vec<Row>) -> Option<Row> {
        runs.sort_by(|a, b| a.throughput_msps.total_cmp(&b.throughput_msps));
        let count = runs.len();
        let corrupt = runs.iter().map(|run| run.corrupt).sum();
        let mut median = runs.into_iter().nth(count / 2)?;
        (median.runs, median.corrupt) = (count, corrupt);
        Some(median)
    }

    /// Payload that the slowest consumer took, gigabytes a second.
    pub fn gb_per_sec(&self) -> f64 {
        self.throughput_mbps / 8_000.0
    }

    /// Whether the machine was in this mood before, after and, where that was read, all through the run.
    pub(super) fn is_all(&self, mood: Mood) -> bool {
        let meanwhile = match mood {
            Mood::Near => self.near.is_none_or(|share| share == 1.0),
            Mood::Far => self.near.is_none_or(|share| share == 0.0),
            Mood::Mixed => true,
        };
        meanwhile && self.mood_before.mood == mood && self.mood_after.mood == mood
    }

    /// The row as one line of text.
    pub fn line(&self) -> String {
        let mut line = format!(
            "{:<17} {:>6} B {:<11} {:>8.1} MSPS/ch {:>6.2} GB/s for {:.1} s, lost {} of {}, skipped {}, copies {} cpu {}/{} \
             p50 {:.0} p99 {:.0} max {:.0} us mood {} -> {}",
            self.label,
            self.datagram_size,
            self.name,
            self.throughput_msps,
            self.gb_per_sec(),
            self.duration_s,
            lost(self),
            self.frames_sent,
            self.frames_skipped,
            self.copies,
            percent(self.cpu_sender),
            percent(self.cpu_receiver),
            self.latency.p50_us,
            self.latency.p99_us,
            self.latency.max_us,
            self.mood_before,
            self.mood_after,
        );
        if let Some(near) = self.near {
            let _ = write!(line, " ({:.0}% near)", near * 100.0);
        }
        for (name, ratio) in &self.ratios {
            let _ = write!(line, " x{ratio:.2} {name}");
        }
        if self.corrupt > 0 {
            let _ = write!(line, " CORRUPT {}", self.corrupt);
        }
        line
    }
}

/// The rows as a Markdown table.
pub fn markdown(rows: &[Row]) -> String {
    let mut table = String::from(
        "| scenario | bytes | way | MSPS/ch | GB/s | s | lost | skipped | copies | CPU producer/consumers | p50/p99/max us | ratio | mood ns |\n\
         |---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|---|--:|\n",
    );
    for row in rows {
        let ratios: Vec<String> =
            row.ratios.iter().map(|(name, ratio)| format!("{ratio:.1} {name}")).collect();
        let consumers: Vec<String> = match row.consumers.as_slice() {
            [] => vec![percent(row.cpu_receiver)],
            consumers => consumers.iter().map(|consumer| percent(consumer.cpu)).collect(),
        };
        let _ = writeln!(
            table,
            "| {} | {} | {} | {:.1} | {:.2} | {:.1} | {} | {} | {} | {}/{} | {:.0}/{:.0}/{:.0} | {} | {:.0}-{:.0}{} |",
            row.label,
            row.datagram_size,
            row.name,
            row.throughput_msps,
            row.gb_per_sec(),
            row.duration_s,
            lost(row),
            row.frames_skipped,
            row.copies,
            percent(row.cpu_sender),
            consumers.join(" "),
            row.latency.p50_us,
            row.latency.p99_us,
            row.latency.max_us,
            if ratios.is_empty() { "-".to_owned() } else { ratios.join(", ") },
            row.mood_before.round_trip_ns,
            row.mood_after.round_trip_ns,
            row.near.map_or(String::new(), |near| format!(", {:.0} % near", near * 100.0)),
        );
    }
    table
}

fn lost(row: &Row) -> u64 {
    match row.consumers.as_slice() {
        [] => row.frames_sent.saturating_sub(row.frames_recv),
        consumers => consumers.iter().map(|consumer| consumer.lost).sum(),
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.0}%", share * 100.0))
}
