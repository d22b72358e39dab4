//! A sender's options, and what it reports of itself.

use crate::proto::congestion::Mode;

/// How a sender behaves. Every field has a default that is right for a path of which nothing is known.
#[derive(Debug, Clone)]
pub struct SenderOptions {
    /// How much of a shared path to take.
    pub mode: Mode,
    /// Bits per second on the wire, at most; `None`: what the path gives.
    pub limit_bits_per_s: Option<f64>,
    /// The round trip of the handshake, if there was one.
    pub rtt_us: Option<u64>,
    /// Bytes of UDP payload that every path carries.
    pub datagram_bytes: usize,
    /// Larger datagrams to try, in bytes of UDP payload, ascending. At most four are tried.
    pub probe_datagram_bytes: Vec<usize>,
    /// Senders that start together probe the path at different times if their seeds differ.
    pub seed: u64,
}

/// What keeps a transfer from being faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Nothing yet: the rate is still growing.
    Start,
    /// The path delivers no more.
    Path,
    /// A queue has built up on the path.
    Queue,
    /// As much is in flight as the round trip allows.
    InFlight,
    /// The receiver takes no more.
    Receiver,
    /// The file is not read as fast.
    Source,
    /// The limit that was set.
    Bandwidth,
}

/// Where a transfer stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SendProgress {
    /// Bytes of the file that the receiver confirmed.
    pub confirmed_bytes: u64,
    /// The confirmed rate on the wire, in bits per second.
    pub rate_bits_per_s: f64,
    /// The smoothed round trip.
    pub rtt_us: u64,
    /// The queueing delay last seen.
    pub queue_us: u64,
    /// Packets that were lost, of those sent so far: 0 to 1.
    pub loss: f64,
    /// What keeps it from being faster now.
    pub limit: Limit,
}

/// What a sender has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SendCounters {
    /// Packets sent.
    pub packets: u64,
    /// Their bytes with UDP and IP headers.
    pub wire_bytes: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Packets that were declared lost and arrived after all.
    pub late: u64,
    /// Packets that carried bytes sent before.
    pub repeats: u64,
    /// Probe timeouts: nothing was heard for so long that a packet was sent to ask.
    pub probes: u64,
}

impl Default for SenderOptions {
    fn default() -> Self {
        Self {
            mode: Mode::Fair,
            limit_bits_per_s: None,
            rtt_us: None,
            datagram_bytes: 1_200,
            probe_datagram_bytes: vec![1_400, 1_472],
            seed: 1,
        }
    }
}
