//! Options of both sides.

use std::path::PathBuf;
use std::time::Duration;

use grebe_ring::Policy;

use crate::cache;

/// Options of a stream. Nothing grows later.
#[derive(Debug, Clone)]
pub struct PublisherOptions {
    /// Bytes per chunk, a multiple of 64. A batch fills one chunk.
    pub chunk_bytes: usize,
    /// Total number of chunks.
    pub chunks: usize,
    /// Chunks that no consumer can pin: for the producer's own stages and queues. The rest, without the
    /// resting chunks, is shared equally as quotas.
    pub reserve_chunks: usize,
    /// Number of last batches kept from reuse, even after all consumers are done with them. A chunk returned
    /// at once is still in the consumer's cache, from which it is fetched more slowly than from a shared
    /// cache. `None`: four times a core's own cache (4 MiB if its size is unknown), at most a quarter of all
    /// chunks.
    pub rest_chunks: Option<usize>,
    /// Maximum consumers; further ones are refused.
    pub consumers_max: usize,
    /// Whether a consumer may make the producer wait.
    pub allow_block: bool,
    /// Time without progress after which a blocking consumer is cut off.
    pub block_timeout: Duration,
    /// Further users that may read the stream. Their processes must also be able to reach the socket.
    pub allow_uids: Vec<u32>,
    /// Directory of the control socket, instead of the user's own one.
    pub directory: Option<PathBuf>,
}

impl Default for PublisherOptions {
    /// 256 MiB in chunks of 256 KiB for 4 consumers, with a reserve of 32 chunks.
    fn default() -> Self {
        Self {
            chunk_bytes: 256 << 10,
            chunks: 1_024,
            reserve_chunks: 32,
            rest_chunks: None,
            consumers_max: 4,
            allow_block: true,
            block_timeout: Duration::from_secs(2),
            allow_uids: Vec::new(),
            directory: None,
        }
    }
}

impl PublisherOptions {
    /// Number of resting chunks.
    #[must_use]
    pub fn resting_chunks(&self) -> usize {
        self.rest_chunks.unwrap_or_else(|| {
            let cache_bytes = cache::own_bytes().unwrap_or(OWN_CACHE_BYTES);
            let rest_bytes = (RESTING_CACHES * cache_bytes).max(REST_BYTES_MIN);
            (rest_bytes / self.chunk_bytes.max(1)).clamp(1, (self.chunks / REST_SHARE).max(1))
        })
    }
}

/// Producers whose streams a subscriber reads in place, without a copy.
///
/// In place, a batch is a `&[u8]` into memory that the producer's process can still write to. A
/// [`Publisher`](crate::Publisher) never writes to lent chunks. A hostile process can change any byte at any
/// time, between two reads: samples, and headers after their check. That is a data race, so the reader's
/// behaviour is undefined, up to reads and writes outside the batch.
///
/// Otherwise frames are copied one by one before anything looks at them, and headers and lengths are checked
/// on the copy. A copied frame has passed its checks and cannot change. Its samples can be a mixture of
/// concurrent writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// Producers of this user: the kernel reports this process's user for both the socket's listener and the
    /// memory's maker.
    #[default]
    OwnUser,
    /// No producer: every batch is a copy.
    Nobody,
}

/// Options for reading a stream.
#[derive(Debug, Clone)]
pub struct SubscriberOptions {
    /// Policy when this consumer's queue is full or its quota used up. Under `block` the producer waits. It
    /// must consent ([`PublisherOptions::allow_block`]), and cuts off a consumer that takes nothing for too
    /// long.
    pub policy: Policy,
    /// Maximum queued batches; rounded up to a power of two.
    pub queue_batches: u32,
    /// Maximum chunks on loan: queued, and held by this consumer. `None`: as many as the producer grants.
    pub quota_chunks: Option<u32>,
    /// Producers whose streams are read in place. All others are copied.
    pub trust: Trust,
    /// Name of this consumer in the producer's list.
    pub name: String,
    /// Directory of the control socket, instead of the user's own one.
    pub directory: Option<PathBuf>,
}

impl Default for SubscriberOptions {
    /// `drop_oldest`, a queue of 64, this user's streams in place.
    fn default() -> Self {
        Self {
            policy: Policy::DropOldest,
            queue_batches: 64,
            quota_chunks: None,
            trust: Trust::OwnUser,
            name: String::new(),
            directory: None,
        }
    }
}

const OWN_CACHE_BYTES: usize = 1 << 20;
/// Chunks in circulation must leave the consumer's own cache before they are written again. With one cache
/// size in circulation, chunks moved at a third of the full speed. With two it was 0.85, and with three to
/// eight the full speed. Measured with a plain loop of two threads, 1 MiB per core and 32 MiB for both;
/// `grebe bench shm` shows the loop beside every figure.
const RESTING_CACHES: usize = 4;
const REST_BYTES_MIN: usize = 2 << 20;
/// At most a quarter of the pool.
const REST_SHARE: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rests_leaves_room_for_the_others_whatever_cache_the_processor_has() {
        for (chunks, chunk_bytes) in [(1, 64), (16, 4_096), (64, 256 << 10), (256, 256 << 10), (9, 64 << 20)]
        {
            let options = PublisherOptions { chunks, chunk_bytes, ..PublisherOptions::default() };
            assert!((1..=(chunks / 4).max(1)).contains(&options.resting_chunks()), "{options:?}");
            let chosen = PublisherOptions { rest_chunks: Some(5), ..options };
            assert_eq!(chosen.resting_chunks(), 5);
        }
    }
}
