//! What either side may choose.

use std::path::PathBuf;
use std::time::Duration;

use grebe_ring::Policy;

use crate::cache;

/// How a stream is made. Nothing of it grows later.
#[derive(Debug, Clone)]
pub struct PublisherOptions {
    /// Bytes per chunk, a multiple of 64. A batch fills one chunk.
    pub chunk_bytes: usize,
    /// Chunks in all.
    pub chunks: usize,
    /// Of them those that no consumer can pin: what the producer itself has in hand and in queues. What neither these nor
    /// those that rest take is shared out evenly as quotas.
    pub reserve_chunks: usize,
    /// The batches sent last that are kept from being written again, whoever is done with them. A chunk that comes back at
    /// once is still in the consumer's cache, from which it is taken more slowly than from a cache that both share. `None`: four
    /// times a core's own cache (4 MiB where the system does not tell its size), at most a quarter of all chunks.
    pub rest_chunks: Option<usize>,
    /// Consumers at a time; further ones are refused.
    pub consumers_max: usize,
    /// Whether a consumer may make the producer wait.
    pub allow_block: bool,
    /// For how long a consumer that blocks may take nothing.
    pub block_timeout: Duration,
    /// Users that may read the stream beside the producer's own. Their processes must also be able to reach the socket.
    pub allow_uids: Vec<u32>,
    /// Where the control socket is made, instead of the user's own directory.
    pub directory: Option<PathBuf>,
}

impl Default for PublisherOptions {
    /// 256 MiB in chunks of 256 KiB for 4 consumers, of which 32 chunks are the producer's own.
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
    /// How many chunks rest.
    #[must_use]
    pub fn resting_chunks(&self) -> usize {
        self.rest_chunks.unwrap_or_else(|| {
            let cache_bytes = cache::own_bytes().unwrap_or(OWN_CACHE_BYTES);
            let rest_bytes = (RESTING_CACHES * cache_bytes).max(REST_BYTES_MIN);
            (rest_bytes / self.chunk_bytes.max(1)).clamp(1, (self.chunks / REST_SHARE).max(1))
        })
    }
}

/// Whose streams a subscriber reads in place, without a copy.
///
/// In place a batch is a `&[u8]` in memory that the producer's process can still write to. A [`Publisher`](crate::Publisher) never writes
/// to what it has lent. A hostile process can change any byte of it at any time, between two reads of it: samples, and headers after
/// they were checked. That is a data race, so the reader's behaviour is undefined, up to reads and writes outside the batch.
///
/// Frames are copied one by one before anything looks at them, and headers and lengths are checked on the copy. Each is a frame that passed
/// its checks, and stays what it is. Its samples can be a mixture of what was written meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// Those of this user: the kernel names the user of this process for the socket's listener and for the memory's maker.
    #[default]
    OwnUser,
    /// Nobody's: every batch is a copy.
    Nobody,
}

/// How a stream is read.
#[derive(Debug, Clone)]
pub struct SubscriberOptions {
    /// What happens when this consumer's queue is full, or its quota used up. Under `block` the producer waits: it must
    /// consent ([`PublisherOptions::allow_block`]), and cuts off a consumer that takes nothing for too long.
    pub policy: Policy,
    /// Batches that may wait; rounded up to a power of two.
    pub queue_batches: u32,
    /// Chunks that may be out: waiting, and held by this consumer. `None`: as many as the producer grants.
    pub quota_chunks: Option<u32>,
    /// Whose streams are read in place. All others are copied.
    pub trust: Trust,
    /// What this consumer is called where the producer lists it.
    pub name: String,
    /// Where the control socket is, instead of the user's own directory.
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
/// What goes round has to leave the consumer's own cache before it is written again. With as much as that cache, a chunk was handed
/// over at a third of the full speed, with twice as much at 0.85, with three to eight times at all of it (a plain loop of two threads,
/// 1 MiB a core and 32 MiB for both; `grebe bench shm` has the loop beside every figure).
const RESTING_CACHES: usize = 4;
const REST_BYTES_MIN: usize = 2 << 20;
/// A quarter of the pool at most.
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
