//! Budget for the trains of one direction, in proportion to the bytes that have arrived.

use crate::proto::tracker::Summary;
use crate::proto::train::Train;

/// Bytes of the trains of one direction. On an unknown path the first train is short. Each arrived byte
/// allows for more, and a lost byte for nothing. So a path with a hundredth of the burst's rate costs a
/// hundredth too.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Budget {
    /// Bytes of IP packets sent.
    pub(crate) sent_bytes: u64,
    /// Bytes of IP packets that arrived.
    pub(crate) arrived_bytes: u64,
}

impl Budget {
    /// Bytes allowed for the next train.
    pub(crate) fn left_bytes(&self) -> u64 {
        (FIRST_BYTES + SENT_PER_ARRIVED * self.arrived_bytes).saturating_sub(self.sent_bytes)
    }

    /// Counts a train that was sent.
    pub(crate) fn count(&mut self, train: &Train, summary: &Summary) {
        self.sent_bytes += train.bytes();
        self.arrived_bytes += train.packet_bytes() * u64::from(summary.received);
    }
}

/// Allowance before anything has arrived.
const FIRST_BYTES: u64 = 2_000_000;
/// Further allowance per arrived byte.
const SENT_PER_ARRIVED: u64 = 8;
