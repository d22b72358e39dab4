//! Runs the conformance suite of queues on shared memory: real memory, a real connection, two threads.
#![cfg(all(any(target_os = "linux", target_os = "macos", windows), not(loom)))]

#[path = "../../grebe-flow/tests/conformance/mod.rs"]
mod conformance;

use std::time::{Duration, Instant};

use conformance::{Carrier, Receiving, Sending, conforms};
use grebe_flow::{Offer, Policy};
use grebe_frame::{Batch, BatchPool};
use grebe_shm::{Publisher, PublisherOptions, Subscriber, SubscriberOptions, Trust};
use tempfile::TempDir;

struct SharedMemory<const IS_COPIED: bool>;

impl<const IS_COPIED: bool> Carrier for SharedMemory<IS_COPIED> {
    type Sender = Tx;
    type Receiver = Rx;

    fn open(chunks: usize, capacity: usize, policy: Policy) -> (BatchPool, Tx, Rx) {
        let folder = tempfile::tempdir().unwrap();
        let quota = capacity.min(chunks);
        let options = PublisherOptions {
            chunk_bytes: 4096,
            chunks,
            reserve_chunks: chunks - quota,
            rest_chunks: Some(0),
            consumers_max: 1,
            block_timeout: Duration::from_secs(60),
            directory: Some(folder.path().to_owned()),
            ..PublisherOptions::default()
        };
        let (publisher, pool) = Publisher::create("x", options).unwrap();
        let options = SubscriberOptions {
            policy,
            queue_batches: capacity as u32,
            trust: if IS_COPIED { Trust::Nobody } else { Trust::OwnUser },
            directory: Some(folder.path().to_owned()),
            ..SubscriberOptions::default()
        };
        let subscriber = Subscriber::connect("x", &options).unwrap();
        assert!(publisher.wait_for_consumers(1, Duration::from_secs(30)));
        (pool, Tx { publisher, policy, waits: false, _folder: folder }, Rx(subscriber))
    }
}

struct Tx {
    publisher: Publisher,
    policy: Policy,
    waits: bool,
    _folder: TempDir,
}

impl Sending for Tx {
    fn offer(&mut self, batch: Batch) -> Offer {
        let before = self.publisher.totals();
        if before.consumers == 0 {
            return Offer::Closed;
        }
        self.waits = match self.waits {
            true => self.publisher.retry_send(&batch),
            false => self.publisher.try_send(&batch),
        }
        .unwrap();
        if self.waits {
            return Offer::Full(batch);
        }
        let has_dropped = self.publisher.totals().dropped_frames > before.dropped_frames;
        if has_dropped && self.policy == Policy::DropLatest { Offer::Dropped } else { Offer::Queued }
    }

    fn has_room(&mut self) -> bool {
        self.publisher.reap();
        let consumer = &self.publisher.consumers()[0];
        consumer.queued_batches < consumer.queue_batches && consumer.out_chunks < consumer.quota_chunks
    }

    fn is_closed(&mut self) -> bool {
        // Another thread notices the hang-up.
        let until = Instant::now() + Duration::from_secs(30);
        while !self.publisher.consumers().is_empty() {
            if Instant::now() > until {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    fn wait_for_room(&mut self) -> bool {
        let until = Instant::now() + Duration::from_secs(30);
        while Instant::now() < until {
            self.publisher.wait_for_room();
            if self.has_room() {
                return true;
            }
        }
        false
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        self.publisher.end(None);
    }
}

struct Rx(Subscriber);

impl Receiving for Rx {
    fn pop(&mut self) -> Option<Batch> {
        self.0.pop().unwrap()
    }

    fn is_ended(&mut self) -> bool {
        self.0.is_ended()
    }

    fn wait(&mut self) -> bool {
        self.0.wait(Duration::from_secs(30)).unwrap() || self.0.is_ended()
    }
}

mod in_place {
    use super::*;
    conforms!(SharedMemory<false>);
}

mod copied {
    use super::*;
    conforms!(SharedMemory<true>);
}
