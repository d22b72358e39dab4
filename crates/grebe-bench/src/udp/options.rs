//! What to measure.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use grebe_frame::SampleFormat;
use serde::{Deserialize, Serialize};

use crate::error::{Result, choose};
use crate::machine::Machine;
use crate::peer::Launcher;
use crate::runs::{Runs, size, time};
use crate::stream::{Checker, FrameSender, Stream};

/// What to measure; each combination of scenario, size, buffers, technique and burst is a row.
#[derive(Debug, Clone, Parser)]
pub struct Options {
    /// Scenarios by label, or `all`.
    #[arg(long, value_name = "LABEL", value_delimiter = ',', default_value = "1ch_max")]
    pub scenario: Vec<String>,
    /// Millions of samples per second and channel, instead of the scenario's own rate.
    #[arg(long, value_name = "MSPS", conflicts_with_all = ["reach", "recv"], value_parser = msps)]
    pub rate_msps: Option<f64>,
    /// Bytes of a datagram.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "1400,65000", value_parser = size)]
    pub datagram_size: Vec<usize>,
    /// Datagrams per system call.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "128", value_parser = clap::value_parser!(u16).range(1..=128))]
    pub burst: Vec<u16>,
    /// How datagrams go to the kernel.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "gso")]
    pub technique: Vec<Technique>,
    /// With the large socket buffers that need privilege, without, or both.
    #[arg(long, default_value = "both")]
    pub buffers: Buffers,
    /// Bytes of receive buffer to ask for.
    #[arg(long, value_name = "BYTES", default_value = "32M", value_parser = size)]
    pub recv_buffer: usize,
    /// End-to-end latency budget.
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = time)]
    pub latency: Duration,
    /// Look for the highest rate without loss instead, with the first scenario, technique and burst.
    #[arg(long)]
    pub reach: bool,
    /// Measure receiving small datagrams from 1, 2, 4 and 8 senders instead: one per call, and 32 per call.
    #[arg(long, conflicts_with = "reach")]
    pub recv: bool,
    /// Where the receiver binds.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Leave the baseline out.
    #[arg(long)]
    pub no_baseline: bool,
    /// How long and how often.
    #[command(flatten)]
    pub runs: Runs,
    /// In which state of the machine.
    #[command(flatten)]
    pub machine: Machine,
    /// Starts the receiver as a process; `None`: it is a thread of this one.
    #[arg(skip)]
    pub launcher: Option<Launcher>,
    /// Other programs' techniques to measure in turn with ours.
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

/// How datagrams are handed to the kernel and taken from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Technique {
    /// One per blocking call: `send` and `recv` of `std`. The baseline.
    OneCall,
    /// Several per call.
    Mmsg,
    /// Several per call and kernel buffer (segmentation offload), header and samples gathered by the kernel.
    Gso,
    /// The same from frames that lie one behind the other; writing them is part of the run.
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

/// Which socket buffers are asked for.
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

/// Another program's technique to send and receive datagrams, under the same scenario, checks and socket buffers; its receiver
/// is a thread.
pub trait Other: std::fmt::Debug + Send + Sync {
    /// What it is called in results.
    fn name(&self) -> &'static str;

    /// A sender on a connected socket, which does not block.
    ///
    /// # Errors
    /// Where a socket fails.
    fn sender(&self, to: SocketAddr, socket: UdpSocket) -> Result<Box<dyn FrameSender>>;

    /// Receives from the bound socket, which does not block, until the checker says that the stream is over.
    ///
    /// # Errors
    /// Where the socket fails.
    fn receive(&self, socket: UdpSocket, checker: &mut Checker) -> Result<()>;
}

const fn stream(label: &'static str, channels: u32, block: Option<u32>, target_msps: Option<f64>) -> Stream {
    Stream { label, format: SampleFormat::I16, channels, block, target_msps }
}

/// The labels, channels, blocks and rates of the C++ program, so that its tables can be put beside ours.
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
    // Not of that program: as 1ch_max, of which it should carry the bytes.
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
