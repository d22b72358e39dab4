//! A packet train as its sender and its receiver measured it.

use crate::proto::wire::Train;

/// A train as the receiver saw it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrainHeard {
    pub(crate) train: Train,
    /// How long it took to leave, and its bytes on the wire.
    pub(crate) sent_span_us: u64,
    pub(crate) sent_bytes: u64,
}

/// Packets of the first train, with which a transfer begins.
pub(crate) const FIRST_PACKETS: u64 = 32;
