//! Options of the bench, and the task of one run for both sides.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use grebe_frame::SampleFormat;
use serde::{Deserialize, Serialize};

use crate::error::{Result, choose};
use crate::machine::Machine;
use crate::peer::{Launcher, Task};
use crate::runs::{Runs, size, time};
use crate::stream::{Checker, FrameSender, Plan, Stream};

/// Measurement; each combination of scenario, size, buffers, technique and burst is a row.
#[derive(Debug, Clone, Parser)]
pub struct Options {
    /// Scenarios by label, or `all`.
    #[arg(long, value_name = "LABEL", value_delimiter = ',', default_value = "1ch_max")]
    pub scenario: Vec<String>,
    /// Rate per channel in MS/s [default: that of the scenario].
    #[arg(long, value_name = "MSPS", conflicts_with_all = ["reach", "recv"], value_parser = msps)]
    pub rate_msps: Option<f64>,
    /// Bytes per datagram, comma-separated.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "1400,65000", value_parser = size)]
    pub datagram_size: Vec<usize>,
    /// Datagrams per system call, comma-separated.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "128", value_parser = clap::value_parser!(u16).range(1..=128))]
    pub burst: Vec<u16>,
    /// Techniques of handing datagrams to the kernel.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "gso")]
    pub technique: Vec<Technique>,
    /// Socket buffers: privileged (large), plain, or both.
    #[arg(long, default_value = "both")]
    pub buffers: Buffers,
    /// Size of the receive buffer to request.
    #[arg(long, value_name = "BYTES", default_value = "32M", value_parser = size)]
    pub recv_buffer: usize,
    /// End-to-end latency budget.
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = time)]
    pub latency: Duration,
    /// Search the maximum rate without loss, with the first scenario and technique.
    #[arg(long)]
    pub reach: bool,
    /// Measure receiving small datagrams from 1, 2, 4 and 8 senders.
    #[arg(long, conflicts_with = "reach")]
    pub recv: bool,
    /// Address of the receiver.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Omit the baseline.
    #[arg(long)]
    pub no_baseline: bool,
    /// Duration and repeats.
    #[command(flatten)]
    pub runs: Runs,
    /// State of the machine.
    #[command(flatten)]
    pub machine: Machine,
    /// Starts the receiver as a process; `None`: a thread of this process.
    #[arg(skip)]
    pub launcher: Option<Launcher>,
    /// Other programs' techniques to measure in turns with ours.
    #[arg(skip)]
    pub others: Vec<Arc<dyn Other>>,
    #[cfg(test)]
    #[arg(skip)]
    pub(crate) spoiled_by: isize,
}

impl Default for Options {
    fn default() -> Self {
        Self::parse_from([""])
    }
}

/// Technique of sending and receiving datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Technique {
    /// One per blocking call: `send` and `recv` of `std`. The baseline.
    OneCall,
    /// Several per call.
    Mmsg,
    /// Several per call and kernel buffer (segmentation offload); the kernel gathers header and samples.
    Gso,
    /// The same from contiguous frames, including the time to write them.
    GsoRun,
}

impl Technique {
    pub(super) fn name(self) -> &'static str {
        match self {
            Technique::OneCall => "one_call",
            Technique::Mmsg => "mmsg",
            Technique::Gso => "gso",
            Technique::GsoRun => "gso_run",
        }
    }
}

/// Requested socket buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "the option says it")]
pub enum Buffers {
    Privileged,
    Plain,
    Both,
}

impl Buffers {
    pub(super) fn privileges(self) -> &'static [bool] {
        match self {
            Buffers::Privileged => &[true],
            Buffers::Plain => &[false],
            Buffers::Both => &[true, false],
        }
    }
}

/// Another program's technique of sending and receiving datagrams, with the same scenario, checks and socket buffers.
/// Its receiver is a thread.
pub trait Other: std::fmt::Debug + Send + Sync {
    /// Its name in results.
    fn name(&self) -> &'static str;

    /// A sender on a connected, non-blocking socket.
    ///
    /// # Errors
    /// The socket fails.
    fn sender(&self, to: SocketAddr, socket: UdpSocket) -> Result<Box<dyn FrameSender>>;

    /// Receives from the bound, non-blocking socket, until the checker reports the end.
    ///
    /// # Errors
    /// The socket fails.
    fn receive(&self, socket: UdpSocket, checker: &mut Checker) -> Result<()>;
}

/// The task of one run for both sides.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct UdpTask {
    pub(super) plan: Plan,
    pub(super) burst: usize,
    pub(super) technique: Technique,
    pub(super) privileged: bool,
    pub(super) latency: Duration,
    pub(super) recv_buffer_bytes: usize,
    pub(super) host: IpAddr,
}

impl Task for UdpTask {
    const BENCH: &'static str = "udp";
}

impl UdpTask {
    pub(super) fn new(
        options: &Options,
        stream: Stream,
        datagram_bytes: usize,
        privileged: bool,
    ) -> Result<Self> {
        let block = stream.block_for(datagram_bytes, 1)?;
        let mut plan = Plan {
            format: stream.format,
            channels: stream.channels,
            block,
            target_msps: stream.target_msps,
            duration: options.runs.duration,
            // A quarter of the latency budget, as in the product's sender.
            tick: options.latency / 4,
            late_max: Duration::from_millis(50),
            burst_max: None,
            frames_max: 1,
        };
        // Interval of clock reads; at full speed, the maximum age of a latency stamp.
        plan.frames_max = ((2 << 20) / plan.frame_bytes()).clamp(1, 512);
        let (latency, recv_buffer_bytes, host) = (options.latency, options.recv_buffer, options.host);
        Ok(Self {
            plan,
            burst: 1,
            technique: Technique::OneCall,
            privileged,
            latency,
            recv_buffer_bytes,
            host,
        })
    }

    pub(super) fn socket_options(&self) -> grebe_datagram::Options {
        let offload = matches!(self.technique, Technique::Gso | Technique::GsoRun);
        grebe_datagram::Options {
            recv_buffer_bytes: self.recv_buffer_bytes,
            force_buffers: self.privileged,
            batch: self.technique != Technique::OneCall,
            gso: offload,
            gro: offload,
            burst: self.burst,
            latency: self.latency,
            // One datagram per slot needs more slots for the same effect.
            slots: if offload { 8 } else { 64 },
            ..grebe_datagram::Options::default()
        }
    }
}

const fn stream(label: &'static str, channels: u32, block: Option<u32>, target_msps: Option<f64>) -> Stream {
    Stream { label, format: SampleFormat::I16, channels, block, target_msps }
}

/// The labels, channels, blocks and rates of the C++ program, for comparable tables.
const SCENARIOS: [Stream; 14] = [
    stream("1ch_max", 1, None, None),
    stream("1ch_256", 1, Some(256), None),
    stream("1ch_64", 1, Some(64), None),
    stream("2ch_max", 2, None, None),
    stream("4ch_max", 4, None, None),
    stream("1ch_1MSPS", 1, None, Some(1.0)),
    stream("1ch_10MSPS", 1, None, Some(10.0)),
    stream("1ch_100MSPS", 1, None, Some(100.0)),
    stream("1ch_1GSPS", 1, None, Some(1_000.0)),
    stream("4ch_1MSPS", 4, None, Some(1.0)),
    stream("4ch_10MSPS", 4, None, Some(10.0)),
    stream("4ch_100MSPS", 4, None, Some(100.0)),
    stream("4ch_1GSPS", 4, None, Some(1_000.0)),
    // Not in that program: as 1ch_max, whose bytes it should carry.
    Stream { format: SampleFormat::Cf32, ..stream("1ch_cf32_max", 1, None, None) },
];

fn msps(text: &str) -> std::result::Result<f64, String> {
    let msps: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if msps > 0.0 && msps.is_finite() { Ok(msps) } else { Err("must be above 0".to_owned()) }
}

pub(super) fn scenarios(labels: &[String]) -> Result<Vec<Stream>> {
    let labels = if labels == ["all"] { &[] } else { labels };
    choose(&SCENARIOS, |stream| stream.label, "scenario", labels)
}
