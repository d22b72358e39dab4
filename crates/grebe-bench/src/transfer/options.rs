//! Options of the bench, and the tasks of its processes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use grebe_connection::Cancel;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::peer::{Launcher, Peer, Task};
use crate::runs::size;

/// Options of the bench.
#[derive(Debug, Clone, Parser)]
pub struct Options {
    /// Parts to measure [default: all].
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    pub parts: Vec<Part>,
    /// Only these of the links A to E.
    #[arg(long, value_name = "LINK", value_delimiter = ',')]
    pub only: Vec<String>,
    /// How many links are drawn at random.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(..=1000))]
    pub links: u16,
    /// The seed of the random links and of all losses.
    #[arg(long, value_name = "SEED", default_value_t = SEED)]
    pub seed: u64,
    /// The file that two processes on this machine hand over.
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = size)]
    pub file_size: usize,
    /// Where files are sent from and come to. By default in memory (/dev/shm) where there is room, else among the temporary
    /// files.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// As root: real processes over links A to E that this program emulates between two network namespaces, beside
    /// TCP with BBR and CUBIC. It is called with --name N --delay MS --rate MBIT --loss P --loss-back P --seed S,
    /// makes the namespaces N-a (198.18.0.1) and N-b (198.18.0.2), and removes them when it is interrupted.
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["parts", "links", "file_size"])]
    pub wanlink: Option<PathBuf>,
    /// Runs of each kind; medians are shown.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub repeats: u16,
    /// Starts the processes of a run; simulations need none.
    #[arg(skip)]
    pub launcher: Option<Launcher>,
    /// Ends the run from elsewhere.
    #[arg(skip)]
    pub cancel: Cancel,
}

/// The seed of the links that the documentation shows.
const SEED: u64 = 20_261_121;

impl Default for Options {
    fn default() -> Self {
        Self::parse_from([""])
    }
}

/// Part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Links A to E, simulated.
    Links,
    /// Links drawn at random, simulated.
    Random,
    /// Of a path beside TCP and another of ours, simulated.
    Shares,
    /// Two processes on this machine, beside plain TCP, iperf3 and scp.
    Loopback,
}

impl Options {
    pub(super) fn launcher(&self) -> Result<&Launcher> {
        self.launcher.as_ref().ok_or_else(|| Error::peer("bench", "nothing is set that starts its processes"))
    }

    /// Starts one of our processes; `side` names it in errors.
    pub(super) fn start(&self, side: &'static str, task: TransferTask) -> Result<Peer> {
        Peer::start(self.launcher()?.command(), side, &task, &self.cancel)
    }

    pub(super) fn check_cancel(&self) -> Result<()> {
        if self.cancel.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// When standard input ends, so does the process.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum TransferTask {
    /// Answers with a ticket, then, when the files are whole, with nothing.
    Receive { directory: PathBuf, host: IpAddr },
    /// Answers with `Sent`.
    Send { file: PathBuf, ticket: String, device: Option<String> },
    /// Answers with its address, then with the bytes that came, within `patience_s` from the first.
    TcpReceive { file: PathBuf, host: IpAddr, patience_s: f64 },
    /// Answers with nothing when connected, then with the seconds.
    TcpSend { file: PathBuf, to: SocketAddr, congestion: Option<String> },
    /// Prepares the network namespace for long distances. Answers with the settings that failed.
    Widen,
    /// Removes a directory once the process that started this one is gone without having done so.
    Guard { directory: PathBuf },
    /// Keeps a program running, and interrupts it when it is to end. Answers when it has ended.
    Keep { program: PathBuf, arguments: Vec<String> },
}

impl Task for TransferTask {
    const BENCH: &'static str = "transfer";
}

/// This machine, for programs that listen locally only.
pub(super) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
