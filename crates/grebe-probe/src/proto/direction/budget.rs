//! What the trains of one direction may take: in proportion to what has arrived of them.

use crate::proto::tracker::Summary;
use crate::proto::train::Train;

/// The bytes of the trains of one direction. Who knows nothing of a path sends little; each train that arrives allows for a longer one, and
/// what does not arrive allows for nothing. So a path that carries a hundredth of what a burst told costs a hundredth as well.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Budget {
    /// Bytes of IP packets that were sent.
    pub(crate) sent_bytes: u64,
    /// Those of them that arrived.
    pub(crate) arrived_bytes: u64,
}

impl Budget {
    /// What the next train may take.
    pub(crate) fn left_bytes(&self) -> u64 {
        (FIRST_BYTES + SENT_PER_ARRIVED * self.arrived_bytes).saturating_sub(self.sent_bytes)
    }

    /// Counts a train that was sent.
    pub(crate) fn count(&mut self, train: &Train, summary: &Summary) {
        self.sent_bytes += train.bytes();
        self.arrived_bytes += train.packet_bytes() * u64::from(summary.received);
    }
}

/// What a direction may take before anything has arrived.
const FIRST_BYTES: u64 = 2_000_000;
/// What may be sent beyond that, for each byte that arrived.
const SENT_PER_ARRIVED: u64 = 8;
