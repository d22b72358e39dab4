//! Sessions: two ends that find each other by a ticket, and carry one transfer, or a stream each way, over UDP or, where no UDP passes, over TCP.

mod connect;
pub(crate) mod connection;
pub(crate) mod receive;
pub(crate) mod send;
mod tcp;

use crate::io::disk::{LeftOut, Renamed};
use crate::proto::congestion::PhaseCost;
use crate::proto::handshake::Responder;
use crate::proto::sender::{SendCounters, SendProgress};
use crate::proto::wire::{Frame, SILENCE_US_MAX, Verdict};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// For how long a peer that was there may be silent, unless the user says otherwise.
const KEEP_TRYING: Duration = Duration::from_micros(SILENCE_US_MAX);

/// What is said to somebody with the ticket when it is spent already.
fn taken(responder: &mut Option<Responder>, datagram: &mut [u8]) -> Option<Vec<u8>> {
    let mut frame = [0; 2];
    Frame::Outcome(Verdict::Taken).encode(&mut frame)?;
    responder.as_mut()?.refuse(datagram, &frame)
}

/// What a user may want to know before the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// Nothing was heard for two seconds, neither over UDP nor over TCP; both are tried on.
    NoAnswerYet {
        /// Who was asked.
        peer: SocketAddr,
    },
    /// All goes over TCP from now on.
    OverTcp,
}

/// What may carry a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// UDP, and TCP where no UDP passes.
    #[default]
    Any,
    /// UDP only.
    Udp,
    /// TCP only.
    Tcp,
}

/// Is called with what a user may want to know before the end.
pub type Notify = Arc<dyn Fn(Notice) + Send + Sync>;

/// Where a transfer stands at its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceiveProgress {
    /// Bytes of the stream that are there.
    pub received_bytes: u64,
    /// All of them; 0: not known yet.
    pub total_bytes: u64,
    /// The sender's round trip, once it is known.
    pub rtt_us: Option<u64>,
}

/// Files that arrived whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiveReport {
    /// The files and directories that the sender named, where they are now.
    pub paths: Vec<PathBuf>,
    /// What could not be had, although the sender had it: for want of a name here, or because it changed while it was sent.
    pub left_out: Vec<LeftOut>,
    /// What has another name than at the sender.
    pub renamed: Vec<Renamed>,
    /// Bytes of all files and of the list of them.
    pub content_bytes: u64,
    /// Bytes of the stream that were there, from an earlier session or in files of the same content.
    pub resumed_bytes: u64,
    /// The sender's address.
    pub peer: SocketAddr,
    /// From the sender's first packet to the last byte written and verified.
    pub took: Duration,
}

/// A transfer whose receiver has verified every byte.
#[derive(Debug, Clone, PartialEq)]
pub struct SendReport {
    /// Bytes of all files.
    pub file_bytes: u64,
    /// What the receiver does not have, beside what [`Source::left_out`](crate::Source::left_out) names: files that changed while they were
    /// sent, or that could not be read when their turn came.
    pub left_out: Vec<LeftOut>,
    /// The receiver could not have all that was sent; it says what.
    pub is_partial: bool,
    /// Bytes of the stream that the receiver had, from an earlier session or in files of the same content.
    pub resumed_bytes: u64,
    /// Who received them.
    pub peer: SocketAddr,
    /// From the first packet to the receiver's verdict.
    pub took: Duration,
    /// The handshake's part of it.
    pub handshake: Duration,
    /// What was sent, including repeats.
    pub counters: SendCounters,
    /// What each phase of the congestion control has cost, in the order of [`Phase`](crate::Phase).
    pub phases: [PhaseCost; 5],
    /// Bytes of UDP payload of the longest datagrams at the end.
    pub datagram_bytes: usize,
    /// Where the transfer stood at the end.
    pub progress: SendProgress,
}
