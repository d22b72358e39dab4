//! Report of a probe, for users and programs.

use serde::Serialize;

use crate::proto::estimate::Estimate;

/// Complete result of a probe. Rates are in bits of IP packets per second unless stated otherwise.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The server.
    pub peer: String,
    /// Duration of the probe.
    pub elapsed_s: f64,
    /// Bytes of IP packets spent, in both directions together.
    pub spent_bytes: u64,
    /// Round trip of small packets on the idle path.
    pub rtt: Rtt,
    /// Server's clock minus this one's. It may be off by half a round trip, because nothing shows how the two
    /// directions share it.
    pub clock_offset_ms: Estimate,
    /// From this host to the server.
    pub up: Direction,
    /// From the server to this host.
    pub down: Direction,
    /// Findings, one sentence each.
    pub verdict: Vec<String>,
    /// Recommended settings.
    pub advice: Advice,
}

/// Round trips, in milliseconds.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Rtt {
    /// Minimum.
    pub min_ms: Estimate,
    /// Median.
    pub p50_ms: Estimate,
    /// 99th percentile.
    pub p99_ms: Estimate,
    /// Number of measured round trips.
    pub count: usize,
    /// Share of pings without an answer.
    pub loss: Estimate,
}

/// One direction.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Direction {
    /// Longest IP packet that passes without fragmentation.
    pub mtu_bytes: Option<Estimate>,
    /// UDP payload of each datagram, in bytes.
    pub datagram_bytes: u16,
    /// Share of datagrams lost on the path, at rates that the path keeps up with.
    pub loss: Option<Estimate>,
    /// Mean length of a run of lost datagrams.
    pub loss_run: Option<Estimate>,
    /// The longest run.
    pub longest_run: u32,
    /// Runs by length: 1, 2, 3-4, 5-8, 9-16, 17-32, 33-64, above.
    pub run_counts: [u32; 8],
    /// Share of datagrams that arrived after a later one.
    pub reordered: Option<Estimate>,
    /// Maximum number of datagrams by which one was late.
    pub reorder_extent: u32,
    /// Share of datagrams that arrived more than once.
    pub duplicated: Option<Estimate>,
    /// Mean difference in delay between neighbours.
    pub jitter_ms: Option<Estimate>,
    /// 99th percentile of the delay above the minimum, at rates that the path keeps up with.
    pub delay_variation_p99_ms: f64,
    /// Datagrams that the receiver's kernel dropped; `None` if it does not report them.
    pub kernel_drops: Option<u64>,
    /// Receive buffer granted by the receiver's kernel.
    pub receive_buffer_bytes: u64,
    /// Knee: the highest rate without loss. On a lossy path, the rate above which loss exceeds its base.
    pub knee_bps: Option<Estimate>,
    /// Whether a longer train at the lower end of that interval passed.
    pub confirmed: bool,
    /// Bottleneck.
    pub limit: Option<LimitedBy>,
    /// Received payload rate of the longest train that the path kept up with.
    pub udp_goodput_bps: Option<Estimate>,
    /// Datagram interval of that train: planned and actual.
    pub spacing_us: Option<Spacing>,
    /// 95th percentile of the round trip above the idle one, under overload or by TCP.
    pub bufferbloat_ms: Option<Estimate>,
    /// Whether a train filled the queue. Otherwise the queue may hold more than
    /// [`bufferbloat_ms`](Self::bufferbloat_ms).
    pub queue_filled: bool,
    /// TCP throughput, by the length of the writes.
    pub tcp: Vec<TcpResult>,
    /// Bytes of IP packets sent in trains.
    pub sent_bytes: u64,
    /// Bytes of them that arrived.
    pub arrived_bytes: u64,
    /// Every train.
    pub trains: Vec<TrainResult>,
}

/// Interval between two datagrams.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Spacing {
    /// As planned.
    pub requested_us: f64,
    /// By the sender's stamps.
    pub sent_us: f64,
}

/// A TCP stream.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TcpResult {
    /// Bytes of each write.
    pub write_bytes: u32,
    /// Received payload rate, from the first byte on.
    pub goodput_bps: Estimate,
    /// Duration in seconds.
    pub span_s: f64,
    /// Goodput of the second half only, without slow start.
    pub late_bps: Estimate,
}

/// One train of the search.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TrainResult {
    /// Seconds since the start of the probe.
    pub at_s: f64,
    /// Send rate, in bits of IP packets.
    pub sent_bps: f64,
    /// Rate of arrival.
    pub delivered_bps: f64,
    /// Datagrams sent.
    pub count: u32,
    /// Datagrams lost.
    pub lost: u32,
    /// Median round trip during the train.
    pub rtt_ms: f64,
    /// Reason why it did not pass.
    pub failed: Option<LimitedBy>,
}

/// Recommended settings, and expectations.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Advice {
    /// Value for `--datagram-size`, in bytes.
    pub datagram_bytes: u16,
    /// Sustainable rate per direction, in bits of payload per second: up, down.
    pub rate_bps: [f64; 2],
    /// Receive buffer of the UDP sockets, bytes.
    pub udp_buffer_bytes: u64,
    /// Required size of TCP windows, bytes.
    pub tcp_buffer_bytes: u64,
    /// Expected transfer times.
    pub moves: Vec<TransferTime>,
}

/// Transfer time in one direction.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TransferTime {
    /// Down: from the server to this host; otherwise up.
    pub down: bool,
    /// Amount of data.
    pub bytes: u64,
    /// By TCP with CUBIC, from a model of loss and round trip.
    pub tcp_cubic_s: Estimate,
    /// By TCP as measured here.
    pub tcp_measured_s: Option<Estimate>,
    /// By `grebe send`: 0.97 of the knee, minus the loss.
    pub grebe_s: Option<Estimate>,
}

/// Bottleneck that kept a rate from passing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// Rate of a link: a queue filled.
    Link,
    /// Policer, or a queue too short to see: loss rose without delays.
    Policer,
    /// Receive buffer of the receiver's kernel.
    ReceiveBuffer,
    /// Sender: it did not reach the rate.
    Sender,
    /// No bottleneck up to the highest allowed rate.
    Allowed,
    /// The probe ran out of time or bytes before a rate failed.
    Unfinished,
}

/// Event of a probe.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ProbeEvent {
    /// The server serves other clients first.
    Waiting {
        /// Number of clients ahead.
        ahead: u16,
    },
    /// A part of the probe begins.
    Part {
        /// Name of the part.
        name: &'static str,
        /// Direction, if only one is concerned: down, or up.
        is_down: Option<bool>,
    },
    /// The round trip in ms is known.
    RoundTrip(Estimate),
    /// A train is over.
    Train {
        /// Whether it was sent down.
        is_down: bool,
        /// Result.
        result: TrainResult,
    },
}
