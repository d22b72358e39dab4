use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::check::{Latency, Seen, Work};
use super::maker::{Made, Plan};
use crate::canary::{self, MachineState, Reading, Watcher};
use crate::error::Result;
use crate::row::{Row, digits, percent};
use crate::runs::Spread;

/// The median run of a technique; the first thirteen fields are those of the C++ program.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct StreamRun {
    /// Scenario.
    pub label: String,
    pub channels: u32,
    /// Samples per channel and frame.
    pub block_size: u32,
    /// Bytes of header and samples.
    pub datagram_size: usize,
    /// Millions of samples per second and channel asked for; 0: as fast as it goes.
    pub target_rate_msps: f64,
    /// Seconds from the first frame to the last, at the slowest side.
    pub duration_s: f64,
    pub frames_sent: u64,
    /// Frames taken, by the consumer that took the fewest.
    pub frames_recv: u64,
    pub frames_per_sec: f64,
    /// Millions of samples per second and channel that the slowest consumer took.
    pub throughput_msps: f64,
    /// The same as payload, megabits per second.
    pub throughput_mbps: f64,
    /// Lost frames of those made, over all consumers, 0 to 1.
    pub drop_rate: f64,
    pub technique: String,
    /// Frames that a producer with a rate was too late to make.
    pub frames_skipped: u64,
    pub machine_before: Reading,
    pub machine_after: Reading,
    /// For runs of a given rate: the share of readings meanwhile that were near, 0 to 1.
    pub near: Option<f64>,
    /// Throughput against each baseline of the same turns, by name.
    pub ratios: BTreeMap<String, f64>,
    /// The machine's limit in the same turns ([`crate::limit`]).
    pub limit: Option<Limit>,
    /// Runs that this is the median of, and the slowest and the fastest of them as `throughput_msps`.
    pub runs: usize,
    pub throughput_msps_range: [f64; 2],
    /// The most frames that any of them lost or did not make in time, and their largest 99th percentile of latency.
    pub lost_max: u64,
    pub p99_us_max: f64,
    /// Frames that differ from their header, over all consumers and runs.
    pub corrupt: u64,
    /// Frames that arrived after their successor.
    pub reordered: u64,
    /// Payload bytes (for sockets: datagrams) copied on the way, in user space; what a consumer copies on purpose is
    /// not counted.
    pub copies: u64,
    /// Shares of a core that the producing thread and the busiest consumer used.
    pub cpu_sender: Option<f64>,
    pub cpu_receiver: Option<f64>,
    /// From when a frame was due to when the slowest consumer took it.
    pub latency: Latency,
    /// How long a side may sleep although there is something to do, in microseconds.
    pub sleep_budget_us: f64,
    /// Shared memory, where there is some: fixed from the start.
    pub footprint_bytes: usize,
    /// For a route into a program: latency relative to a producer that is one of its stages.
    pub latency_ratio: Option<LatencyRatio>,
    /// Where consumers were stopped and killed.
    pub faults: Option<Faults>,
    pub consumers: Vec<ConsumerRun>,
    #[serde(flatten)]
    pub sockets: Option<SocketCosts>,
}

/// Results of one consumer.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ConsumerRun {
    /// Its work on each frame.
    pub work: Work,
    pub frames: u64,
    pub lost: u64,
    pub corrupt: u64,
    /// Bytes it copied out on purpose.
    pub copied_out: u64,
    /// Share of a core that it used.
    pub cpu: Option<f64>,
    pub latency: Latency,
}

/// Latency as a multiple of another.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct LatencyRatio {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

/// The machine's own limit: medians of the turns, so that a share is of the same minutes as its limit.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Limit {
    /// Payload, gigabytes per second.
    pub gb_per_sec: f64,
    /// The run's as a share of it.
    pub share: f64,
}

impl Limit {
    fn words(self) -> String {
        format!("{:.0}% ({})", self.share * 100.0, digits(self.gb_per_sec))
    }
}

/// Results of a stopped consumer, and of a killed one.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Faults {
    /// Milliseconds from `kill -9` to when the producer had taken everything back from that consumer; `None`: never.
    pub noticed_ms: Option<f64>,
    /// Frames dropped for the stopped consumer, which takes none.
    pub stopped_dropped: u64,
    /// Chunks that had not come home once everybody was gone.
    pub leftover_chunks: usize,
}

/// Costs of datagrams.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SocketCosts {
    /// Datagrams per batch at most.
    pub burst_size: usize,
    /// Whether buffers beyond the system's limit were requested, and the receive buffer granted.
    pub privileged: bool,
    pub recv_buffer_bytes: usize,
    /// Throughput against the baseline of one call per datagram of the same turns.
    pub ratio: Option<f64>,
    /// Frames lost while the kernel's counter of full buffers grew, and frames lost otherwise.
    pub lost_kernel: u64,
    pub lost_network: u64,
    /// Kernel buffers dropped; `None`: not counted by this system or technique.
    pub kernel_drops: Option<u64>,
    pub datagrams_per_send: f64,
    pub datagrams_per_recv: f64,
    /// Times the sender waited for room.
    pub backoffs: u64,
}

/// A run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunOf<'a> {
    pub label: &'a str,
    pub technique: &'a str,
    pub plan: &'a Plan,
    /// The work of each consumer.
    pub works: &'a [Work],
}

/// Runs once, and looks at the machine around it.
pub(crate) fn measured(of: RunOf, run: impl FnOnce() -> Result<(Made, Vec<Seen>)>) -> Result<StreamRun> {
    let before = canary::read();
    // At full speed a run is short, and any other thread would be measured with it.
    let watcher = of.plan.target_msps.map(|_| Watcher::start());
    let ended = run();
    let near = watcher.map(Watcher::near);
    let (made, seen) = ended?;
    Ok(StreamRun { near, ..StreamRun::new(of, made, &seen, (before, canary::read())) })
}

impl StreamRun {
    pub(crate) fn new(
        of: RunOf,
        made: Made,
        seen: &[Seen],
        (machine_before, machine_after): (Reading, Reading),
    ) -> Self {
        let RunOf { label, technique, plan, works } = of;
        let longest = seen.iter().map(|seen| seen.duration).max().unwrap_or_default().max(made.duration);
        let duration_s = longest.as_secs_f64().max(1e-9);
        let share = |cpu: Option<Duration>| cpu.map(|cpu| cpu.as_secs_f64() / duration_s);
        let lost_by = |seen: &Seen| made.frames.saturating_sub(seen.frames);
        let frames_recv = seen.iter().map(|seen| seen.frames).min().unwrap_or(0);
        let lost: u64 = seen.iter().map(lost_by).sum();
        let frames_per_sec = frames_recv as f64 / duration_s;
        let msps = frames_per_sec * f64::from(plan.block) / 1e6;
        let latest = seen.iter().map(|seen| seen.latency).max_by(|a, b| a.p99_us.total_cmp(&b.p99_us));
        let latency = latest.unwrap_or_default();
        let consumer = |(seen, &work): (&Seen, &Work)| ConsumerRun {
            work,
            frames: seen.frames,
            lost: lost_by(seen),
            corrupt: seen.corrupt,
            copied_out: seen.copied_out,
            cpu: share(seen.cpu),
            latency: seen.latency,
        };
        Self {
            label: label.to_owned(),
            channels: plan.channels,
            block_size: plan.block,
            datagram_size: plan.frame_bytes(),
            target_rate_msps: plan.target_msps.unwrap_or(0.0),
            duration_s,
            frames_sent: made.frames,
            frames_recv,
            frames_per_sec,
            throughput_msps: msps,
            throughput_mbps: msps * f64::from(plan.channels) * 8.0 * plan.format.bytes() as f64,
            drop_rate: lost as f64 / (made.frames * seen.len().max(1) as u64).max(1) as f64,
            technique: technique.to_owned(),
            frames_skipped: made.skipped,
            machine_before,
            machine_after,
            near: None,
            ratios: BTreeMap::new(),
            limit: None,
            runs: 1,
            throughput_msps_range: [msps; 2],
            lost_max: lost + made.skipped,
            p99_us_max: latency.p99_us,
            corrupt: seen.iter().map(|seen| seen.corrupt).sum(),
            reordered: seen.iter().map(|seen| seen.reordered).sum(),
            copies: seen.iter().map(|seen| seen.copied).sum(),
            cpu_sender: share(made.cpu),
            cpu_receiver: seen.iter().filter_map(|seen| share(seen.cpu)).max_by(f64::total_cmp),
            latency,
            sleep_budget_us: 0.0,
            footprint_bytes: 0,
            latency_ratio: None,
            faults: None,
            consumers: seen.iter().zip(works).map(consumer).collect(),
            sockets: None,
        }
    }

    /// The run with the median throughput, or, at a given rate, the median 99th percentile of latency. It includes
    /// the corrupt frames of all runs, and the worst values.
    pub(crate) fn median(mut runs: Vec<StreamRun>) -> Option<StreamRun> {
        let by = |run: &StreamRun| {
            if run.target_rate_msps > 0.0 { run.latency.p99_us } else { run.throughput_msps }
        };
        runs.sort_by(|a, b| by(a).total_cmp(&by(b)));
        let count = runs.len();
        let rates = || runs.iter().map(|run| run.throughput_msps);
        let range = [rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max)];
        let corrupt = runs.iter().map(|run| run.corrupt).sum();
        let lost_max = runs.iter().map(|run| run.lost_max).max().unwrap_or(0);
        let p99_us_max = runs.iter().map(|run| run.p99_us_max).fold(0.0, f64::max);
        let limits: Vec<Limit> = runs.iter().filter_map(|run| run.limit).collect();
        let of_limits = |of: fn(&Limit) -> f64| Spread::over(&limits, of).median;
        let limit = (!limits.is_empty()).then(|| Limit {
            gb_per_sec: of_limits(|limit| limit.gb_per_sec),
            share: of_limits(|limit| limit.share),
        });
        let median = runs.into_iter().nth(count / 2)?;
        Some(StreamRun {
            runs: count,
            corrupt,
            throughput_msps_range: range,
            lost_max,
            p99_us_max,
            limit,
            ..median
        })
    }

    /// Notes how much faster this run is than another.
    pub(crate) fn compare(&mut self, other: &StreamRun) {
        if other.throughput_msps > 0.0 {
            self.ratios.insert(other.technique.clone(), self.throughput_msps / other.throughput_msps);
        }
    }

    /// Notes which share of the machine's own limit this run is.
    pub(crate) fn measure_by(&mut self, limit: &StreamRun) {
        let share = self.throughput_mbps / limit.throughput_mbps;
        self.limit = share.is_finite().then(|| Limit { gb_per_sec: limit.gb_per_sec(), share });
    }

    /// Notes how much later frames came than in another run.
    pub(crate) fn compare_latency(&mut self, other: &StreamRun) {
        let (ours, theirs) = (self.latency, other.latency);
        self.latency_ratio = Some(LatencyRatio {
            p50: ours.p50_us / theirs.p50_us.max(1e-3),
            p99: ours.p99_us / theirs.p99_us.max(1e-3),
            max: ours.max_us / theirs.max_us.max(1e-3),
        });
    }

    /// Frames that did not reach a consumer, over all of them.
    pub(crate) fn lost(&self) -> u64 {
        self.consumers.iter().map(|consumer| consumer.lost).sum()
    }

    /// Payload that the slowest consumer took, gigabytes per second.
    pub(crate) fn gb_per_sec(&self) -> f64 {
        self.throughput_mbps / 8_000.0
    }

    /// Whether the machine was in this state before, after and, where that was read, all through the run, and a sender of
    /// datagrams at full speed had its core to itself: else another program was measured.
    pub(crate) fn is_all(&self, state: MachineState) -> bool {
        let share = if state == MachineState::Near { 1.0 } else { 0.0 };
        let meanwhile = self.near.is_none_or(|near| near == share);
        let is_disturbed = self.sockets.is_some()
            && self.target_rate_msps == 0.0
            && self.cpu_sender.is_some_and(|share| share < 0.9);
        meanwhile && !is_disturbed && self.machine_before.state == state && self.machine_after.state == state
    }

    /// For people.
    pub(crate) fn row(&self, title: &str) -> Row {
        let consumers: Vec<String> = self.consumers.iter().map(|consumer| percent(consumer.cpu)).collect();
        let [slowest, fastest] = self.throughput_msps_range;
        let rate = format!("{:.1}", self.throughput_msps);
        let rate = if self.runs > 1 { format!("{rate} ({slowest:.1}-{fastest:.1})") } else { rate };
        let Latency { p50_us, p99_us, max_us } = self.latency;
        let ratios = self.ratios.iter().map(|(name, ratio)| format!("{ratio:.2} {name}"));
        let mut row = Row::new(title, self)
            .name("scenario", &self.label)
            .name("technique", &self.technique)
            .cell("bytes", self.datagram_size);
        if let Some(sockets) = &self.sockets {
            let buffer = if sockets.privileged { "" } else { " plain" };
            row = row
                .cell("per call", sockets.burst_size)
                .cell("MiB buffer", format!("{}{buffer}", sockets.recv_buffer_bytes >> 20));
        }
        row = row
            .range("MSPS/ch", rate)
            .cell("runs", self.runs)
            .cell("GB/s", format!("{:.2}", self.gb_per_sec()))
            .cell("of limit (GB/s)", self.limit.map_or(String::new(), Limit::words))
            .cell("frames/s", format!("{:.0}", self.frames_per_sec))
            .cell("s", format!("{:.1}", self.duration_s))
            .cell("lost (most)", format!("{} ({})", self.lost(), self.lost_max));
        row = match &self.sockets {
            Some(sockets) => row.cell("lost in the kernel", sockets.lost_kernel),
            None => row.cell("skipped", self.frames_skipped),
        };
        let near = self.near.map_or(String::new(), |near| format!(", {:.0} % near", near * 100.0));
        row.cell("copied", self.copies)
            .cell("CPU", format!("{}/{}", percent(self.cpu_sender), consumers.join(" ")))
            .cell("us p50/p99/max", format!("{p50_us:.0}/{p99_us:.0}/{max_us:.0}"))
            .cell("largest p99", format!("{:.0}", self.p99_us_max))
            .cell("times", ratios.collect::<Vec<_>>().join(", "))
            .cell("corrupt", if self.corrupt > 0 { format!("**{}**", self.corrupt) } else { "0".to_owned() })
            .machine(Some((self.machine_before, self.machine_after)), &near)
    }
}
