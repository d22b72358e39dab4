//! What the controller learns from one report of the receiver.

use crate::proto::train::TrainHeard;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AckSample {
    pub(crate) now_us: u64,
    pub(crate) rtt_us: Option<u64>,
    /// Least one-way delay since the report before, with an unknown offset between the clocks.
    pub(crate) one_way_delay_us: Option<u32>,
    /// The receiver's clock, and the bytes on the wire that had come by then.
    pub(crate) receiver_us: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) train: Option<TrainHeard>,
    pub(crate) acked_packets: u64,
    pub(crate) lost_packets: u64,
    /// Packets that were declared lost and came after all.
    pub(crate) late_packets: u64,
    pub(crate) in_flight_bytes: u64,
    /// This report ends a packet-timed round trip.
    pub(crate) round_ended: bool,
    /// The source, the receiver or a set limit held the sender back, not the path.
    pub(crate) app_limited: bool,
}
