//! What the processes of a run are told to do.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;

use grebe_transfer::Cancel;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::peer::Peer;

/// When standard input ends, so does the process.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TransferTask {
    /// Answers with a ticket, then, when the files are whole, with nothing.
    Receive { directory: PathBuf, host: IpAddr },
    /// Answers with what was [`Sent`](super::row::Sent).
    Send { file: PathBuf, ticket: String, device: Option<String> },
    /// Answers with its address, then with the bytes that came, within `patience_s` from the first.
    TcpReceive { file: PathBuf, host: IpAddr, patience_s: f64 },
    /// Answers with nothing when it is connected, then with the seconds.
    TcpSend { file: PathBuf, to: SocketAddr, congestion: Option<String> },
    /// Sets the network namespace up for long distances. Answers with what could not be set.
    Widen,
    /// Removes a directory once the process that started this one is gone without having done so.
    Guard { directory: PathBuf },
    /// Keeps a program running. When it is to end, it is interrupted; answers with what the program said.
    Keep { program: PathBuf, arguments: Vec<String> },
}

impl TransferTask {
    /// Starts a process with it. `side` is what it is called in errors.
    pub(super) fn start(&self, command: Command, side: &'static str, cancel: &Cancel) -> Result<Peer> {
        Peer::start(command, side, "transfer", self, cancel)
    }
}

/// This machine, for those who listen to itself only.
pub(super) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
