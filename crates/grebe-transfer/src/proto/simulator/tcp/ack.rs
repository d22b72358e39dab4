//! What a TCP model learns from one acknowledgement.

/// One acknowledgement, and the state of the flow when it arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ack {
    pub(super) now_us: u64,
    pub(super) rtt_us: u64,
    pub(super) min_rtt_us: u64,
    pub(super) packets_per_s: f64,
    pub(super) paused: bool,
    pub(super) lost: u64,
    /// The packet that arrived.
    pub(super) number: u64,
    pub(super) next_number: u64,
    pub(super) in_flight: u64,
}
