//! What either side may choose.

use std::path::PathBuf;
use std::time::Duration;

use grebe_ring::Policy;

/// How a stream is made. Nothing of it grows later.
#[derive(Debug, Clone)]
pub struct PublisherOptions {
    /// Bytes per chunk, a multiple of 64. A batch fills one chunk.
    pub chunk_bytes: usize,
    /// Chunks in all.
    pub chunks: usize,
    /// Of them those that no consumer can pin: what the producer itself has in hand and in queues. The rest is shared out
    /// evenly as quotas.
    pub reserve_chunks: usize,
    /// The batches sent last that are kept from being written again, whoever is done with them; part of the reserve. A chunk
    /// that comes back at once is still in the consumer's cache, from which it is taken more slowly than from a cache that
    /// both share.
    pub rest_chunks: usize,
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
    /// 64 MiB in chunks of 256 KiB, of which 48 are the producer's own and 16 (4 MiB) rest, for 4 consumers.
    fn default() -> Self {
        Self {
            chunk_bytes: 256 << 10,
            chunks: 256,
            reserve_chunks: 48,
            rest_chunks: 16,
            consumers_max: 4,
            allow_block: true,
            block_timeout: Duration::from_secs(2),
            allow_uids: Vec::new(),
            directory: None,
        }
    }
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
    /// What this consumer is called where the producer lists it.
    pub name: String,
    /// Where the control socket is, instead of the user's own directory.
    pub directory: Option<PathBuf>,
}

impl Default for SubscriberOptions {
    /// `drop_oldest`, a queue of 64.
    fn default() -> Self {
        Self {
            policy: Policy::DropOldest,
            queue_batches: 64,
            quota_chunks: None,
            name: String::new(),
            directory: None,
        }
    }
}
