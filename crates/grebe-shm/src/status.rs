//! What a producer tells of its stream.

use std::fmt;

use grebe_ring::Policy;

/// The memory of a stream, fixed when it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// The samples.
    pub chunks_bytes: usize,
    /// Where frames stand in the chunks. What the stream says of itself costs memory only where it is written: at most 64 KiB a
    /// chunk, which are not counted.
    pub tables_bytes: usize,
    /// The lane of one consumer at most.
    pub lane_bytes: usize,
    /// Consumers at most.
    pub consumers_max: usize,
}

impl Footprint {
    /// All of it.
    pub fn total_bytes(&self) -> usize {
        self.chunks_bytes + self.tables_bytes + self.lane_bytes * self.consumers_max
    }
}

/// How a stream is doing, over all its consumers: to be asked while samples flow, since nothing is allocated for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Consumers that are there now.
    pub consumers: u32,
    /// Of the consumer whose queue is the fullest: how full it is, 0 to 100.
    pub fullest_queue_percent: u32,
    /// Chunks that are out, once for each consumer: waiting, and held.
    pub out_chunks: u32,
    /// Consumers that were ever let in.
    pub joined: u64,
    /// Consumers that hung up, orderly or not.
    pub hung_up: u64,
    /// Consumers that were cut off.
    pub cut_off: u64,
    /// Frames lent, once for each consumer.
    pub lent_frames: u64,
    /// Frames that policies dropped, once for each consumer.
    pub dropped_frames: u64,
    /// Samples per channel in them.
    pub dropped_samples: u64,
}

/// One consumer of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerStatus {
    /// What it calls itself.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Its policy.
    pub policy: Policy,
    /// Batches that wait.
    pub queued_batches: u32,
    /// Batches that may wait.
    pub queue_batches: u32,
    /// Chunks that are out to it: waiting, and held.
    pub out_chunks: u32,
    /// Chunks that may be out to it.
    pub quota_chunks: u32,
    /// Frames lent to it.
    pub lent_frames: u64,
    /// Frames that its policy dropped.
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
