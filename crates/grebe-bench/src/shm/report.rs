use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::check::Seen;
use super::faults::Faults;
use super::ingress;
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
    /// The slowest and the fastest of them, as `throughput_msps`.
    pub throughput_msps_range: [f64; 2],
    /// The most frames that any of them lost or did not make in time.
    pub lost_max: u64,
    /// The largest 99th percentile of latency of them, in microseconds.
    pub p99_us_max: f64,
    /// Frames that were not what their header says, over all consumers and runs.
    pub corrupt: u64,
    /// Frames that came behind their successor.
    pub reordered: u64,
    /// Payload bytes copied on the way, in user space; what a consumer copies on purpose is none.
    pub copies: u64,
    /// Shared memory, where there is some: fixed from the start.
    pub footprint_bytes: usize,
    /// Share of a core that the producing thread used.
    pub cpu_sender: Option<f64>,
    /// Share of a core that the busiest consumer used.
    pub cpu_receiver: Option<f64>,
    /// From when a frame was due to when the slowest consumer took it.
    pub latency: Latency,
    /// For how long a side may sleep although there is something to do, in microseconds.
    pub sleep_budget_us: f64,
    /// For a way into a program: latency against the producer being a stage of it.
    pub latency_ratio: Option<LatencyRatio>,
    /// Where consumers were stopped and killed.
    pub faults: Option<Faults>,
    /// Each consumer.
    pub consumers: Vec<ConsumerRow>,
}

/// Latency as a multiple of another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyRatio {
    /// Of the medians.
    pub p50: f64,
    /// Of the 99th percentiles.
    pub p99: f64,
    /// Of the slowest.
    pub max: f64,
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
            throughput_msps_range: [samples / 1e6; 2],
            lost_max: lost + made.skipped,
            p99_us_max: latest.unwrap_or_default().p99_us,
            corrupt: seen.iter().map(|seen| seen.corrupt).sum(),
            reordered: seen.iter().map(|seen| seen.reordered).sum(),
            copies: seen.iter().map(|seen| seen.copied).sum(),
            footprint_bytes: 0,
            cpu_sender: share(made.cpu),
            cpu_receiver: seen.iter().filter_map(|seen| share(seen.cpu)).max_by(f64::total_cmp),
            latency: latest.unwrap_or_default(),
            sleep_budget_us: ingress::sleep_budget(job).as_secs_f64() * 1e6,
            latency_ratio: None,
            faults: None,
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
            throughput_msps_range: [row.throughput_msps; 2],
            lost_max: row.frames_sent.saturating_sub(row.frames_recv),
            p99_us_max: row.latency.p99_us,
            corrupt: row.corrupt,
            reordered: row.reordered,
            copies: row.copies,
            footprint_bytes: 0,
            cpu_sender: row.cpu_sender,
            cpu_receiver: row.cpu_receiver,
            latency: row.latency,
            // Half of the default latency budget, which the receiver has, and a quarter, which the sender has.
            sleep_budget_us: 375.0,
            latency_ratio: None,
            faults: None,
            consumers: Vec::new(),
        }
    }

    /// Notes how much faster this row is than each of the others.
    pub fn compare(&mut self, others: &[Row]) {
        for other in others.iter().filter(|other| other.throughput_msps > 0.0) {
            self.ratios.insert(other.name.clone(), self.throughput_msps / other.throughput_msps);
        }
    }

    /// Notes how much later frames came than in the other row.
    pub(super) fn compare_latency(&mut self, other: &Row) {
        let (ours, theirs) = (self.latency, other.latency);
        self.latency_ratio = Some(LatencyRatio {
            p50: ours.p50_us / theirs.p50_us.max(1e-3),
            p99: ours.p99_us / theirs.p99_us.max(1e-3),
            max: ours.max_us / theirs.max_us.max(1e-3),
        });
    }

    /// The run whose throughput is the median; at a given rate, whose 99th percentile of latency is. What was corrupt in any is in
    /// the row, and the worst of all.
    pub fn median(mut runs: Vec<Row>) -> Option<Row> {
        let by =
            |row: &Row| if row.target_rate_msps > 0.0 { row.latency.p99_us } else { row.throughput_msps };
        runs.sort_by(|a, b| by(a).total_cmp(&by(b)));
        let count = runs.len();
        let range = runs
            .iter()
            .map(|run| run.throughput_msps)
            .fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], msps| [low.min(msps), high.max(msps)]);
        let corrupt = runs.iter().map(|run| run.corrupt).sum();
        let lost_max = runs.iter().map(|run| run.lost_max).max().unwrap_or(0);
        let p99_us_max = runs.iter().map(|run| run.p99_us_max).fold(0.0, f64::max);
        let median = runs.into_iter().nth(count / 2)?;
        Some(Row { runs: count, corrupt, throughput_msps_range: range, lost_max, p99_us_max, ..median })
    }

    /// Frames that did not reach a consumer, over all of them.
    pub fn lost(&self) -> u64 {
        match self.consumers.as_slice() {
            [] => self.frames_sent.saturating_sub(self.frames_recv),
            consumers => consumers.iter().map(|consumer| consumer.lost).sum(),
        }
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
            self.lost(),
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
        if let Some(ratio) = self.latency_ratio {
            let _ = write!(line, " latency x{:.2} x{:.2} x{:.2} embedded", ratio.p50, ratio.p99, ratio.max);
        }
        let _ = write!(line, " sleeps <= {:.0} us", self.sleep_budget_us);
        if self.footprint_bytes > 0 {
            let _ = write!(line, " memory {:.1} MiB, fixed", mib(self.footprint_bytes));
        }
        if let Some(Faults { noticed_ms, stopped_dropped, leftover_chunks }) = self.faults {
            let noticed = noticed_ms.map_or("never".to_owned(), |ms| format!("after {ms:.2} ms"));
            let _ = write!(
                line,
                " kill noticed {noticed}, {stopped_dropped} dropped for the stopped one, {leftover_chunks} chunks left"
            );
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
        "| scenario | bytes | way | MSPS/ch (range of runs) | GB/s | s | lost (most) | skipped | copies | MiB | CPU producer/consumers | \
         p50/p99/max us (largest p99) | sleeps us | ratio | mood ns |\n\
         |---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|--:|\n",
    );
    for row in rows {
        let consumers: Vec<String> = match row.consumers.as_slice() {
            [] => vec![percent(row.cpu_receiver)],
            consumers => consumers.iter().map(|consumer| percent(consumer.cpu)).collect(),
        };
        let [slowest, fastest] = row.throughput_msps_range;
        let _ = writeln!(
            table,
            "| {} | {} | {} | {:.1} ({slowest:.1}-{fastest:.1}, {}) | {:.2} | {:.1} | {} ({}) | {} | {} | {:.1} | {}/{} | \
             {:.0}/{:.0}/{:.0} ({:.0}) | {:.0} | {} | {:.0}-{:.0}{} |",
            row.label,
            row.datagram_size,
            row.name,
            row.throughput_msps,
            row.runs,
            row.gb_per_sec(),
            row.duration_s,
            row.lost(),
            row.lost_max,
            row.frames_skipped,
            row.copies,
            mib(row.footprint_bytes),
            percent(row.cpu_sender),
            consumers.join(" "),
            row.latency.p50_us,
            row.latency.p99_us,
            row.latency.max_us,
            row.p99_us_max,
            row.sleep_budget_us,
            ratios(row),
            row.mood_before.round_trip_ns,
            row.mood_after.round_trip_ns,
            row.near.map_or(String::new(), |near| format!(", {:.0} % near", near * 100.0)),
        );
    }
    table
}

fn ratios(row: &Row) -> String {
    let mut all: Vec<String> = row.ratios.iter().map(|(name, ratio)| format!("{ratio:.1} {name}")).collect();
    if let Some(ratio) = row.latency_ratio {
        all.push(format!("latency {:.2}/{:.2}/{:.2} embedded", ratio.p50, ratio.p99, ratio.max));
    }
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

fn mib(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.0}%", share * 100.0))
}
