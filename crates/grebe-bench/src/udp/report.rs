use std::fmt::Write as _;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::Technique;
use crate::canary::{Mood, Reading};

/// One row: the median run of its kind. The first thirteen fields are those of the C++ program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunResult {
    /// Scenario.
    pub label: String,
    /// Channels a frame.
    pub channels: u32,
    /// Samples a channel and frame.
    pub block_size: u32,
    /// Bytes of header and samples.
    pub datagram_size: usize,
    /// Datagrams a batch at most.
    pub burst_size: usize,
    /// Millions of samples a second and channel asked for; 0: as fast as it goes.
    pub target_rate_msps: f64,
    /// Seconds from the first frame to the last, at the slower side.
    pub duration_s: f64,
    /// Frames the kernel took.
    pub frames_sent: u64,
    /// Frames that arrived.
    pub frames_recv: u64,
    /// Frames that arrived, a second.
    pub frames_per_sec: f64,
    /// Millions of samples that arrived, a second and channel.
    pub throughput_msps: f64,
    /// Payload that arrived, megabits a second.
    pub throughput_mbps: f64,
    /// Lost frames of those sent, 0 to 1.
    pub drop_rate: f64,
    /// How it was done.
    pub technique: Technique,
    /// Whether buffers beyond the system's limit were asked for.
    pub privileged: bool,
    /// The receive buffer that was granted.
    pub recv_buffer_bytes: usize,
    /// The machine before the run.
    pub mood_before: Reading,
    /// The machine after it.
    pub mood_after: Reading,
    /// For runs of a given rate: the share of readings meanwhile that were near, 0 to 1.
    pub near: Option<f64>,
    /// Throughput against the median of the one-call-a-datagram baseline of the same minutes.
    pub ratio: Option<f64>,
    /// Runs that the median is of.
    pub runs: usize,
    /// Frames lost while the kernel's counter of full buffers grew.
    pub lost_kernel: u64,
    /// Frames lost otherwise.
    pub lost_network: u64,
    /// Kernel buffers dropped; `None`: not counted by this system or technique.
    pub kernel_drops: Option<u64>,
    /// Frames that were not what their header says.
    pub corrupt: u64,
    /// Frames that came behind their successor.
    pub reordered: u64,
    /// Share of a core that the sending thread used.
    pub cpu_sender: Option<f64>,
    /// Share of a core that the receiving thread used.
    pub cpu_receiver: Option<f64>,
    /// Datagrams a sending system call.
    pub datagrams_per_send: f64,
    /// Datagrams a receiving system call.
    pub datagrams_per_recv: f64,
    /// Datagrams copied in user space before they were sent.
    pub copies: u64,
    /// Times the sender waited for room.
    pub backoffs: u64,
    /// From the time a frame was due (or, at full speed, its stretch was begun) to its delivery.
    pub latency: Latency,
}

/// Times between producing and delivering, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of the frames were faster.
    pub p50_us: f64,
    /// 99 of 100 frames were faster.
    pub p99_us: f64,
    /// The slowest.
    pub max_us: f64,
}

impl Latency {
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        let us = |ns: u64| ns as f64 / 1e3;
        Self {
            p50_us: us(histogram.value_at_quantile(0.5)),
            p99_us: us(histogram.value_at_quantile(0.99)),
            max_us: us(histogram.max()),
        }
    }
}

impl RunResult {
    /// Whether the machine was in this mood before, after and, where that was read, all through the run.
    pub(crate) fn is_all(&self, mood: Mood) -> bool {
        let meanwhile = match mood {
            Mood::Near => self.near.is_none_or(|share| share == 1.0),
            Mood::Far => self.near.is_none_or(|share| share == 0.0),
            Mood::Mixed => true,
        };
        meanwhile && self.mood_before.mood == mood && self.mood_after.mood == mood
    }

    /// The row as one line of text.
    pub fn line(&self) -> String {
        let percent =
            |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.0}%", share * 100.0));
        let mut line = format!(
            "{:<12} {:>6} B {:<8} burst {:<4} {:<5} {:>8.1} MSPS/ch {:>9.0} frames/s {:>5.2} GB/s lost {} (kernel {}, network {})",
            self.label,
            self.datagram_size,
            self.technique.name(),
            self.burst_size,
            if self.privileged { "priv" } else { "plain" },
            self.throughput_msps,
            self.frames_per_sec,
            self.throughput_mbps / 8_000.0,
            self.frames_sent - self.frames_recv.min(self.frames_sent),
            self.lost_kernel,
            self.lost_network,
        );
        if let Some(ratio) = self.ratio {
            let _ = write!(line, " x{ratio:.2}");
        }
        let _ = write!(
            line,
            " cpu {}/{} p50 {:.0} p99 {:.0} max {:.0} us mood {} -> {}",
            percent(self.cpu_sender),
            percent(self.cpu_receiver),
            self.latency.p50_us,
            self.latency.p99_us,
            self.latency.max_us,
            self.mood_before,
            self.mood_after,
        );
        let _ = write!(line, " copied {}", self.copies);
        if let Some(near) = self.near {
            let _ = write!(line, " ({:.0}% near)", near * 100.0);
        }
        if self.corrupt > 0 {
            let _ = write!(line, " CORRUPT {}", self.corrupt);
        }
        line
    }
}

/// The rows as a Markdown table.
pub fn markdown(results: &[RunResult]) -> String {
    let mut table = String::from(
        "| scenario | bytes | technique | burst | buffer MiB | MSPS/ch | MSPS | GB/s | frames/s | lost | ratio | CPU send/recv | p50/p99/max us | mood ns |\n\
         |---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for row in results {
        let percent =
            |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.0}%", share * 100.0));
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {:.1} | {:.0} | {:.2} | {:.0} | {} | {} | {}/{} | {:.0}/{:.0}/{:.0} | {:.0}-{:.0}{} |",
            row.label,
            row.datagram_size,
            row.technique.name(),
            row.burst_size,
            row.recv_buffer_bytes >> 20,
            row.throughput_msps,
            row.throughput_msps * f64::from(row.channels),
            row.throughput_mbps / 8_000.0,
            row.frames_per_sec,
            row.frames_sent - row.frames_recv.min(row.frames_sent),
            row.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
            percent(row.cpu_sender),
            percent(row.cpu_receiver),
            row.latency.p50_us,
            row.latency.p99_us,
            row.latency.max_us,
            row.mood_before.round_trip_ns,
            row.mood_after.round_trip_ns,
            row.near.map_or(String::new(), |near| format!(", {:.0} % near", near * 100.0)),
        );
    }
    table
}
