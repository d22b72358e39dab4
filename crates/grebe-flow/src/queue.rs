//! Bounded queue of batches between two threads, with a policy for overflow.
//!
//! ```text
//!   stage --offer--> QueueSender --> ring of batches --> QueueReceiver --pop--> stage
//!            |                                                |
//!            +-- counts: queued, dropped, evicted     taken --+   one writer per counter, on separate lines
//! ```
//!
//! A queue is full by batches or by the bytes that they pin, whichever comes first. A batch above the byte
//! limit passes alone. Under `block` the producer waits, under `drop_oldest` it evicts until the batch fits,
//! under `drop_latest` the batch is refused. Drops count in frames and samples.
//!
//! Notifying the other side costs a fence while it is awake. A producer that waits for room wakes once per
//! half a queue, not for each batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use grebe_frame::Batch;
use grebe_ring::{Consumer, Policy, Producer, Signal, ring};

use crate::counters::add;

/// Options of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueOptions {
    /// Capacity in batches; rounded up to a power of two, at least 2.
    pub capacity_batches: usize,
    /// Capacity in pinned bytes of chunks ([`Batch::pinned_bytes`]); `None`: no byte limit. Either limit
    /// bounds the memory that a stopped consumer pins. A batch above this limit passes alone.
    pub capacity_bytes: Option<usize>,
    /// Overflow policy.
    pub policy: Policy,
}

impl QueueOptions {
    /// Queue that blocks its producer when full.
    pub const fn block(capacity_batches: usize) -> Self {
        Self { capacity_batches, capacity_bytes: None, policy: Policy::Block }
    }

    /// Queue that keeps the newest batches.
    pub const fn drop_oldest(capacity_batches: usize) -> Self {
        Self { capacity_batches, capacity_bytes: None, policy: Policy::DropOldest }
    }

    /// Queue that keeps the oldest batches.
    pub const fn drop_latest(capacity_batches: usize) -> Self {
        Self { capacity_batches, capacity_bytes: None, policy: Policy::DropLatest }
    }

    /// Adds a limit of pinned bytes.
    ///
    /// ```
    /// use grebe_flow::QueueOptions;
    /// let options = QueueOptions::drop_oldest(256).bytes(4 << 20);
    /// assert_eq!((options.capacity_batches, options.capacity_bytes), (256, Some(4 << 20)));
    /// ```
    pub const fn bytes(self, capacity_bytes: usize) -> Self {
        Self { capacity_bytes: Some(capacity_bytes), ..self }
    }
}

/// Makes both ends of a queue. `consumer` is notified of a batch or the end, `producer` of free room.
pub fn queue(
    options: QueueOptions,
    producer: Arc<Signal>,
    consumer: Arc<Signal>,
) -> (QueueSender, QueueReceiver) {
    let (tx, rx) = ring(options.capacity_batches, options.policy);
    let counts = Arc::new(QueueCounts {
        capacity_batches: tx.capacity(),
        capacity_bytes: options.capacity_bytes,
        ..QueueCounts::default()
    });
    let wakes_producer = (options.policy == Policy::Block).then(|| producer.clone());
    (
        QueueSender {
            ring: Some(tx),
            policy: options.policy,
            producer,
            consumer,
            seen_taken_bytes: 0,
            offered_bytes: 0,
            counts: counts.clone(),
        },
        QueueReceiver { ring: Some(rx), producer: wakes_producer, counts },
    )
}

/// Producer's end.
#[derive(Debug)]
pub struct QueueSender {
    /// `None` only during drop: the ring closes before the other side wakes.
    ring: Option<Producer<Batch>>,
    policy: Policy,
    producer: Arc<Signal>,
    consumer: Arc<Signal>,
    /// Last known value of the consumer's counter, which lies in the consumer's cache.
    seen_taken_bytes: u64,
    /// Bytes of the last offered batch: the room that a waiting producer needs.
    offered_bytes: u64,
    counts: Arc<QueueCounts>,
}

/// Result of offering a batch.
#[derive(Debug)]
#[must_use]
pub enum Offer {
    /// Queued; under `drop_oldest` possibly at the cost of an older batch.
    Queued,
    /// Dropped by the policy, because the queue was full.
    Dropped,
    /// Returned, because the queue is full and blocks its producer.
    Full(Batch),
    /// The consumer is gone.
    Closed,
}

impl QueueSender {
    /// Offers a batch under the queue's policy; never waits.
    pub fn offer(&mut self, batch: Batch) -> Offer {
        if self.is_closed() {
            return Offer::Closed;
        }
        self.offered_bytes = batch.pinned_bytes() as u64;
        let mut refused = match self.push(batch) {
            Ok(()) => return Offer::Queued,
            Err(batch) => batch,
        };
        match self.policy {
            Policy::Block => Offer::Full(refused),
            Policy::DropLatest => {
                self.counts.drop_batch(&refused);
                Offer::Dropped
            }
            Policy::DropOldest => loop {
                self.make_room();
                match self.push(refused) {
                    Ok(()) => return Offer::Queued,
                    Err(batch) => refused = batch,
                }
                // The consumer has taken a batch without announcing it yet, or its thread stopped inside
                // `pop` one whole queue ago. This policy keeps the newest batch, so it waits for these few
                // instructions.
                std::thread::yield_now();
            },
        }
    }

    #[inline]
    fn push(&mut self, batch: Batch) -> Result<(), Batch> {
        let frames = batch.len() as u64;
        if !self.has_bytes() {
            return Err(batch);
        }
        let Some(ring) = self.ring.as_mut() else { return Err(batch) };
        ring.push(batch)?;
        if QueueCounts::read(&self.counts.wake_at.0) != NEVER {
            self.counts.wake_at.0.store(NEVER, Ordering::Relaxed);
        }
        self.counts.add_batch(frames, self.offered_bytes);
        self.consumer.notify();
        Ok(())
    }

    /// Evicts one batch for lack of a slot, and as many as the bytes require.
    #[cold]
    fn make_room(&mut self) {
        if self.ring.as_ref().is_some_and(|ring| !ring.has_room()) {
            self.evict();
        }
        while !self.has_bytes() && self.evict() {}
    }

    fn evict(&mut self) -> bool {
        let Some(oldest) = self.ring.as_mut().and_then(Producer::evict) else { return false };
        add(&self.counts.evicted_batches, 1);
        add(&self.counts.evicted_bytes, oldest.pinned_bytes() as u64);
        self.counts.drop_batch(&oldest);
        true
    }

    /// Whether the last offered batch fits by bytes. Reads the consumer's counter only if necessary.
    #[inline]
    fn has_bytes(&mut self) -> bool {
        let Some(capacity) = self.counts.capacity_bytes else { return true };
        if self.counts.queued_bytes(self.seen_taken_bytes) + self.offered_bytes <= capacity as u64 {
            return true;
        }
        self.seen_taken_bytes = QueueCounts::read(&self.counts.taken.bytes);
        self.fits(capacity)
    }

    fn fits(&self, capacity: usize) -> bool {
        let taken = QueueCounts::read(&self.counts.taken.bytes);
        self.counts.queued_bytes(taken) + self.offered_bytes <= capacity as u64
            || self.ring.as_ref().is_some_and(Producer::is_empty)
    }

    /// Counts a batch as dropped that was never queued, because the graph is stopping.
    pub(crate) fn give_up(&self, batch: &Batch) {
        self.counts.drop_batch(batch);
    }

    /// Whether the next offer succeeds without a drop, if it pins no more bytes than the last. If not, the
    /// producer is notified of free room.
    pub fn has_room(&self) -> bool {
        let has_room = || {
            self.ring.as_ref().is_some_and(Producer::has_room)
                && self.counts.capacity_bytes.is_none_or(|capacity| self.fits(capacity))
        };
        has_room() || self.wake_at(0, has_room)
    }

    /// Waits for room in a full `block` queue, until the consumer is gone, `is_over` returns true, or
    /// `timeout` has passed.
    ///
    /// The producer's thread wakes once per half a queue, not for each batch. A consumer that stops midway
    /// (because it may wait for another input) does not delay it.
    pub fn wait(&self, timeout: Duration, is_over: impl Fn() -> bool) {
        let is_over = || self.is_closed() || is_over();
        let taken = QueueCounts::read(&self.counts.taken.batches);
        let half = taken + QueueCounts::read(&self.counts.batches).saturating_sub(taken).div_ceil(2);
        let is_half_taken = || QueueCounts::read(&self.counts.taken.batches) >= half;
        let has_half = || is_half_taken() || self.wake_at(half, is_half_taken);
        if !self.producer.wait(HALF_EMPTY_TIMEOUT.min(timeout), || has_half() || is_over()) {
            self.producer.wait(timeout, || self.has_room() || is_over());
        }
    }

    /// Requests a notification after `batches` batches. Checks again, because the consumer may have just
    /// passed that point.
    #[cold]
    fn wake_at(&self, batches: u64, condition: impl Fn() -> bool) -> bool {
        self.counts.wake_at.0.store(batches, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        condition()
    }

    /// Whether the consumer is gone.
    pub fn is_closed(&self) -> bool {
        self.ring.as_ref().is_none_or(Producer::is_closed)
    }

    pub(crate) fn counts(&self) -> Arc<QueueCounts> {
        self.counts.clone()
    }
}

impl Drop for QueueSender {
    fn drop(&mut self) {
        self.ring = None;
        self.consumer.notify();
    }
}

/// Consumer's end.
#[derive(Debug)]
pub struct QueueReceiver {
    ring: Option<Consumer<Batch>>,
    producer: Option<Arc<Signal>>,
    counts: Arc<QueueCounts>,
}

impl QueueReceiver {
    /// Next batch, if one is queued.
    pub fn pop(&mut self) -> Option<Batch> {
        let batch = self.ring.as_mut()?.pop()?;
        add(&self.counts.taken.bytes, batch.pinned_bytes() as u64);
        add(&self.counts.taken.batches, 1);
        if let Some(producer) = &self.producer {
            // Paired with the fence in `wake_at`: either the producer sees that this batch is gone, or it is
            // notified.
            fence(Ordering::SeqCst);
            if QueueCounts::read(&self.counts.taken.batches) >= QueueCounts::read(&self.counts.wake_at.0) {
                producer.notify();
            }
        }
        Some(batch)
    }

    /// Whether a batch is queued.
    pub fn has_batch(&self) -> bool {
        self.ring.as_ref().is_some_and(Consumer::has_value)
    }

    /// Whether the producer is gone and everything was taken.
    pub fn is_ended(&self) -> bool {
        // In this order, because a push before the close is visible after it.
        self.ring.as_ref().is_none_or(|ring| ring.is_closed() && !ring.has_value())
    }

    pub(crate) fn counts(&self) -> &QueueCounts {
        &self.counts
    }
}

impl Drop for QueueReceiver {
    fn drop(&mut self) {
        self.ring = None;
        if let Some(producer) = &self.producer {
            producer.notify();
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct QueueCounts {
    pub(crate) capacity_batches: usize,
    pub(crate) capacity_bytes: Option<usize>,
    pub(crate) frames: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) evicted_batches: AtomicU64,
    pub(crate) evicted_bytes: AtomicU64,
    pub(crate) dropped_frames: AtomicU64,
    pub(crate) dropped_samples: AtomicU64,
    pub(crate) taken: Taken,
    wake_at: WakeAt,
}

/// On its own cache line: the consumer reads it for each batch, and it changes only when the queue is full.
#[derive(Debug)]
#[repr(align(128))]
struct WakeAt(AtomicU64);

impl Default for WakeAt {
    fn default() -> Self {
        Self(AtomicU64::new(NEVER))
    }
}

/// Maximum wait for a full queue to become half empty.
const HALF_EMPTY_TIMEOUT: Duration = Duration::from_millis(1);
/// Nobody waits for room.
const NEVER: u64 = u64::MAX;

/// On its own cache line, because the other thread writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Taken {
    pub(crate) batches: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

impl QueueCounts {
    #[inline]
    fn add_batch(&self, frames: u64, bytes: u64) {
        add(&self.frames, frames);
        add(&self.batches, 1);
        add(&self.bytes, bytes);
    }

    /// Bytes pinned by queued batches, given the bytes taken. A batch counts until the consumer announces
    /// that it took it, slightly later.
    pub(crate) fn queued_bytes(&self, taken_bytes: u64) -> u64 {
        let gone = Self::read(&self.evicted_bytes).wrapping_add(taken_bytes);
        // Another thread may see the consumer's count before the producer's.
        Self::read(&self.bytes).saturating_sub(gone)
    }

    fn drop_batch(&self, batch: &Batch) {
        add(&self.dropped_frames, batch.len() as u64);
        add(&self.dropped_samples, batch.samples());
    }

    pub(crate) fn read(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use grebe_frame::{BatchPool, Header};

    use super::*;

    /// Queue of four batches and 64 KiB, after offers of seven batches with two frames of 16 samples each.
    fn offered(policy: Policy) -> (QueueSender, QueueReceiver) {
        let options = QueueOptions { policy, ..QueueOptions::block(4).bytes(1 << 16) };
        let (mut tx, rx) = queue(options, Arc::new(Signal::new()), Arc::new(Signal::new()));
        let mut pool = BatchPool::new(8, 4096);
        for _ in 0..7 {
            let mut batch = pool.acquire().unwrap();
            for _ in 0..2 {
                let header = Header { channel_count: 1, block_length_samples: 16, ..Header::default() };
                batch.push::<i16>(&header, |_, samples| samples.fill(1)).unwrap();
            }
            if let Offer::Full(batch) = tx.offer(batch.freeze()) {
                tx.give_up(&batch);
            }
        }
        (tx, rx)
    }

    #[test]
    fn every_batch_is_counted_where_it_went() {
        for (policy, queued, evicted) in
            [(Policy::Block, 4, 0), (Policy::DropLatest, 4, 0), (Policy::DropOldest, 7, 3)]
        {
            let (tx, mut rx) = offered(policy);
            let counts = tx.counts();
            let values = |counters: &[&AtomicU64]| -> Vec<u64> {
                counters.iter().map(|counter| QueueCounts::read(counter)).collect()
            };
            assert_eq!((counts.capacity_batches, counts.capacity_bytes), (4, Some(1 << 16)));
            let came = values(&[&counts.batches, &counts.frames, &counts.bytes]);
            assert_eq!(came, [queued, queued * 2, queued * 4096], "{policy}");
            let dropped = values(&[&counts.dropped_frames, &counts.dropped_samples]);
            assert_eq!(dropped, [6, 96], "{policy}");
            let gone = values(&[&counts.evicted_batches, &counts.evicted_bytes]);
            assert_eq!(gone, [evicted, evicted * 4096], "{policy}");
            assert_eq!(counts.queued_bytes(0), 4 * 4096, "{policy}");
            assert!(rx.pop().is_some());
            let taken = values(&[&rx.counts().taken.batches, &rx.counts().taken.bytes]);
            assert_eq!(taken, [1, 4096], "{policy}");
            assert_eq!(counts.queued_bytes(4096), 3 * 4096, "{policy}");
            // A reader that sees the consumer's count before the producer's.
            assert_eq!(counts.queued_bytes(1 << 20), 0, "{policy}");
        }
    }
}
