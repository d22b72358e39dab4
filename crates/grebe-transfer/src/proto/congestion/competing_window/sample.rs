//! What a report tells beside competing flows.

use crate::proto::congestion::constants::{
    EMPTY_QUEUE_RTT_SHARE, EMPTY_QUEUE_US_MAX, EMPTY_QUEUE_US_MIN, SEGMENT_BYTES,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowSample {
    pub(crate) now_us: u64,
    /// From sending a packet to its report, with the queue.
    pub(crate) rtt_us: u64,
    pub(crate) min_rtt_us: u64,
    pub(crate) queue_us: u64,
    pub(crate) acked: u64,
    pub(crate) lost: u64,
    pub(crate) round_ended: bool,
    pub(crate) in_flight_bytes: u64,
    /// What the path holds of this flow without a queue.
    pub(crate) path_bytes: f64,
    /// The path's capacity in bytes per second, as far as it showed.
    pub(crate) capacity: f64,
    pub(crate) is_capacity_known: bool,
    /// The share of packets that is lost at any rate.
    pub(crate) base_loss: f64,
}

impl WindowSample {
    pub(crate) fn is_queue_empty(&self) -> bool {
        let empty_us = self.rtt_us / EMPTY_QUEUE_RTT_SHARE;
        self.queue_us <= empty_us.clamp(EMPTY_QUEUE_US_MIN, EMPTY_QUEUE_US_MAX)
    }

    /// The path's product of capacity and time, in segments.
    pub(crate) fn capacity_segments(&self, us: f64) -> f64 {
        self.capacity * us / 1e6 / SEGMENT_BYTES
    }
}

#[cfg(test)]
pub(crate) fn sample(now_ms: u64, queue_us: u64, lost: u64) -> WindowSample {
    WindowSample {
        now_us: now_ms * 1_000,
        rtt_us: 100_000,
        min_rtt_us: 50_000,
        queue_us,
        acked: 100,
        lost,
        round_ended: now_ms.is_multiple_of(100),
        in_flight_bytes: 600_000,
        path_bytes: 300_000.0,
        capacity: 12e6,
        is_capacity_known: true,
        base_loss: 0.0,
    }
}
