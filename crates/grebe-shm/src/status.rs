//! Status of a stream, for its producer.

use std::fmt;

use grebe_ring::Policy;

/// Memory of a stream, fixed at its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Bytes of the chunks.
    pub chunks_bytes: usize,
    /// Bytes of the frame tables. Descriptions cost memory only when written, at most 64 KiB per chunk, and
    /// are not included.
    pub tables_bytes: usize,
    /// Maximum bytes of one consumer's lane.
    pub lane_bytes: usize,
    /// Maximum number of consumers.
    pub consumers_max: usize,
}

impl Footprint {
    /// Total.
    pub fn total_bytes(&self) -> usize {
        self.chunks_bytes + self.tables_bytes + self.lane_bytes * self.consumers_max
    }
}

/// Totals over all consumers of a stream. Cheap enough to read while samples flow, because nothing is
/// allocated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Connected consumers.
    pub consumers: u32,
    /// Fill of the fullest consumer's queue, 0 to 100.
    pub fullest_queue_percent: u32,
    /// Chunks on loan, counted per consumer: queued and held.
    pub out_chunks: u32,
    /// Consumers admitted so far.
    pub joined: u64,
    /// Consumers that hung up, orderly or not.
    pub hung_up: u64,
    /// Consumers that were cut off.
    pub cut_off: u64,
    /// Frames lent, counted per consumer.
    pub lent_frames: u64,
    /// Frames dropped by policies, counted per consumer.
    pub dropped_frames: u64,
    /// Samples per channel in the dropped frames.
    pub dropped_samples: u64,
}

/// One consumer of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerStatus {
    /// Name given by the consumer.
    pub name: String,
    /// Process id.
    pub pid: u32,
    /// Overflow policy.
    pub policy: Policy,
    /// Queued batches.
    pub queued_batches: u32,
    /// Maximum queued batches.
    pub queue_batches: u32,
    /// Chunks on loan: queued and held.
    pub out_chunks: u32,
    /// Maximum chunks on loan.
    pub quota_chunks: u32,
    /// Frames lent to it.
    pub lent_frames: u64,
    /// Frames dropped by its policy.
    pub dropped_frames: u64,
}

impl fmt::Display for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
        write!(
            f,
            "{:.1} MiB of shared memory, fixed: {:.1} MiB of samples, {:.1} MiB of tables, {:.1} KiB for each of {} readers",
            mib(self.total_bytes()),
            mib(self.chunks_bytes),
            mib(self.tables_bytes),
            self.lane_bytes as f64 / 1024.0,
            self.consumers_max,
        )
    }
}
