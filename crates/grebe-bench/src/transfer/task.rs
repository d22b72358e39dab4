//! The processes of a run: what they are told to do.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::peer::Task;

/// When standard input ends, so does the process.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum TransferTask {
    /// Answers with a ticket, then, when the files are whole, with nothing.
    Receive { directory: PathBuf, host: IpAddr },
    /// Answers with what was `Sent`.
    Send { file: PathBuf, ticket: String, device: Option<String> },
    /// Answers with its address, then with the bytes that came, within `patience_s` from the first.
    TcpReceive { file: PathBuf, host: IpAddr, patience_s: f64 },
    /// Answers with nothing when it is connected, then with the seconds.
    TcpSend { file: PathBuf, to: SocketAddr, congestion: Option<String> },
    /// Sets the network namespace up for long distances. Answers with what could not be set.
    Widen,
    /// Removes a directory once the process that started this one is gone without having done so.
    Guard { directory: PathBuf },
    /// Keeps a program running, and interrupts it when it is to end. Answers when it has ended.
    Keep { program: PathBuf, arguments: Vec<String> },
}

impl Task for TransferTask {
    const BENCH: &'static str = "transfer";
}

/// This machine, for those who listen to itself only.
pub(super) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
