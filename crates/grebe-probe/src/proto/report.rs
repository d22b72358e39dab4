//! What a probe found, for people and for programs.

use serde::Serialize;

use crate::proto::estimate::Estimate;

/// Everything a probe found. Rates are in bits of IP packets per second where nothing else is said.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The server.
    pub peer: String,
    /// How long it took.
    pub elapsed_s: f64,
    /// Bytes of IP packets that it cost, both ways together.
    pub spent_bytes: u64,
    /// Round trip of small packets while nothing else was sent.
    pub rtt: Rtt,
    /// The server's clock less this one's. It may be off by half a round trip: nothing says how the two directions share it.
    pub clock_offset_ms: Estimate,
    /// From here to the server.
    pub up: Direction,
    /// From the server to here.
    pub down: Direction,
    /// What it means, a sentence each.
    pub verdict: Vec<String>,
    /// What to set.
    pub advice: Advice,
}

/// Round trips, in milliseconds.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Rtt {
    /// The shortest.
    pub min_ms: Estimate,
    /// The median.
    pub p50_ms: Estimate,
    /// The 99th percentile.
    pub p99_ms: Estimate,
    /// Round trips measured.
    pub count: usize,
    /// Share of pings without an answer.
    pub loss: Estimate,
}

/// One direction.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Direction {
    /// The longest IP packet that comes through whole.
    pub mtu_bytes: Option<Estimate>,
    /// Bytes of UDP payload that were sent in each datagram.
    pub datagram_bytes: u16,
    /// Share of datagrams lost on the way, at rates that the path keeps up with.
    pub loss: Option<Estimate>,
    /// Mean length of a run of lost datagrams.
    pub loss_run: Option<Estimate>,
    /// The longest run.
    pub longest_run: u32,
    /// Runs by length: 1, 2, 3-4, 5-8, 9-16, 17-32, 33-64, above.
    pub run_counts: [u32; 8],
    /// Share of datagrams that arrived behind a later one.
    pub reordered: Option<Estimate>,
    /// How many datagrams one of them was behind at most.
    pub reorder_extent: u32,
    /// Share of datagrams that arrived more than once.
    pub duplicated: Option<Estimate>,
    /// Mean difference of the delay of neighbours.
    pub jitter_ms: Option<Estimate>,
    /// 99th percentile of the delay above the shortest, at rates that the path keeps up with.
    pub delay_variation_p99_ms: f64,
    /// Datagrams that the receiver's kernel had no room for; `None` where it does not say.
    pub kernel_drops: Option<u64>,
    /// The receive buffer that the receiver's kernel granted.
    pub receive_buffer_bytes: u64,
    /// The highest rate without loss; on a lossy path the rate where loss rises above its base.
    pub knee_bps: Option<Estimate>,
    /// Whether a longer train at the lower end of that interval passed.
    pub confirmed: bool,
    /// What is in the way of more.
    pub limit: Option<LimitedBy>,
    /// Payload that arrived in the longest train that the path kept up with.
    pub udp_goodput_bps: Option<Estimate>,
    /// Interval between two datagrams of that train: asked for, and kept by the sender.
    pub spacing_us: Option<Spacing>,
    /// 95th percentile of the round trip above the unloaded one while more was sent than the path carries, or by TCP.
    pub bufferbloat_ms: Option<Estimate>,
    /// Whether a train was seen to fill the queue. Otherwise the queue may hold more than [`bufferbloat_ms`](Self::bufferbloat_ms).
    pub queue_filled: bool,
    /// What TCP carried, by the length of its writes.
    pub tcp: Vec<TcpResult>,
    /// Bytes of IP packets that the trains took.
    pub sent_bytes: u64,
    /// Those of them that arrived.
    pub arrived_bytes: u64,
    /// Every train.
    pub trains: Vec<TrainResult>,
}

/// The interval between two datagrams.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Spacing {
    /// As the train was planned.
    pub asked_us: f64,
    /// As the sender's stamps say.
    pub sent_us: f64,
}

/// A TCP stream.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TcpResult {
    /// Bytes of each write.
    pub write_bytes: u32,
    /// Payload that arrived, from the first byte on.
    pub goodput_bps: Estimate,
    /// For how long.
    pub span_s: f64,
    /// The same for the second half only: without the slow start.
    pub late_bps: Estimate,
}

/// One train of the search.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TrainResult {
    /// Seconds since the probe began.
    pub at_s: f64,
    /// As sent, in bits of IP packets.
    pub sent_bps: f64,
    /// As arrived.
    pub delivered_bps: f64,
    /// Datagrams sent.
    pub count: u32,
    /// Datagrams that did not arrive.
    pub lost: u32,
    /// Median round trip meanwhile.
    pub rtt_ms: f64,
    /// What kept it from passing.
    pub failed: Option<LimitedBy>,
}

/// What to set, and what to expect.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Advice {
    /// For `--datagram-size`, bytes.
    pub datagram_bytes: u16,
    /// A rate that each direction keeps up with, in bits of payload per second: up, down.
    pub rate_bps: [f64; 2],
    /// Receive buffer of the UDP sockets, bytes.
    pub udp_buffer_bytes: u64,
    /// What TCP's windows have to hold, bytes.
    pub tcp_buffer_bytes: u64,
    /// Expected times to move data.
    pub moves: Vec<TransferTime>,
}

/// How long it takes to move data one way.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TransferTime {
    /// Down, from the server to here; otherwise up.
    pub down: bool,
    /// How much.
    pub bytes: u64,
    /// By TCP with CUBIC, by a model of loss and round trip.
    pub tcp_cubic_s: Estimate,
    /// By TCP as it was measured here.
    pub tcp_measured_s: Option<Estimate>,
    /// By `grebe send`: 0.97 of the knee, less what is lost.
    pub grebe_s: Option<Estimate>,
}

/// What kept a rate from passing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// A queue filled: the rate of a link.
    Link,
    /// Loss rose while delays did not: a policer, or a queue too short to show.
    Policer,
    /// The receiver's kernel had no room.
    ReceiveBuffer,
    /// The sender did not reach the rate.
    Sender,
    /// Nothing up to the highest rate that was allowed.
    Allowed,
    /// The time or the bytes of the probe ended before a rate failed.
    Unfinished,
}

/// What a probe is doing.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ProbeEvent {
    /// The server serves others first.
    Waiting {
        /// How many.
        ahead: u16,
    },
    /// A part of the probe begins.
    Part {
        /// What it is.
        name: &'static str,
        /// Which direction it is about, if one: down, or up.
        is_down: Option<bool>,
    },
    /// The round trip in ms is known.
    RoundTrip(Estimate),
    /// A train is over.
    Train {
        /// Whether it went down.
        is_down: bool,
        /// What became of it.
        result: TrainResult,
    },
}
