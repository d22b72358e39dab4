//! Tests the byte limit of the queue between threads: its policies when slots are free but the bytes are used
//! up.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use grebe_flow::{Offer, Policy, QueueOptions, QueueReceiver, QueueSender, queue};
use grebe_frame::{Batch, BatchPool, Header};
use grebe_ring::Signal;

/// Makes numbered batches of two frames.
struct Source {
    pool: BatchPool,
    sequence: u64,
}

impl Source {
    fn new(chunks: usize) -> Self {
        Self::of(chunks, 4096)
    }

    fn of(chunks: usize, chunk_bytes: usize) -> Self {
        Self { pool: BatchPool::new(chunks, chunk_bytes), sequence: 0 }
    }

    fn next(&mut self) -> Option<Batch> {
        let mut batch = self.pool.acquire()?;
        for _ in 0..2 {
            let header = Header {
                sequence: self.sequence,
                channel_count: 1,
                block_length_samples: 16,
                first_sample_index: self.sequence * 16,
                ..Header::default()
            };
            batch.push::<i16>(&header, |_, samples| samples.fill(self.sequence as i16)).unwrap();
            self.sequence += 1;
        }
        Some(batch.freeze())
    }
}

fn sequences(batch: &Batch) -> Vec<u64> {
    for frame in batch.frames() {
        assert!(
            frame.channel::<i16>(0).unwrap().iter().all(|&sample| sample == frame.header().sequence as i16),
            "content"
        );
    }
    batch.frames().map(|frame| frame.header().sequence).collect()
}

fn drain(rx: &mut QueueReceiver) -> Vec<u64> {
    std::iter::from_fn(|| rx.pop()).flat_map(|batch| sequences(&batch)).collect()
}

/// Queue with many slots that is full at `capacity_bytes`.
fn open_bytes(capacity_bytes: usize, policy: Policy) -> (QueueSender, QueueReceiver) {
    let options = QueueOptions { policy, ..QueueOptions::block(64).bytes(capacity_bytes) };
    queue(options, Arc::new(Signal::new()), Arc::new(Signal::new()))
}

const POLICIES: [Policy; 3] = [Policy::Block, Policy::DropOldest, Policy::DropLatest];

#[test]
fn a_queue_full_of_bytes_does_what_its_policy_says() {
    for (policy, kept) in [
        (Policy::Block, [0, 1, 2, 3]),
        (Policy::DropLatest, [0, 1, 2, 3]),
        (Policy::DropOldest, [2, 3, 4, 5]),
    ] {
        // Two and a half chunks, so a third does not fit.
        let (mut tx, mut rx) = open_bytes(2 * 4096 + 2048, policy);
        let mut source = Source::new(4);
        for _ in 0..2 {
            assert!(tx.has_room(), "{policy}");
            assert!(matches!(tx.offer(source.next().unwrap()), Offer::Queued));
        }
        assert!(!tx.has_room(), "{policy}");
        let offer = tx.offer(source.next().unwrap());
        match policy {
            Policy::Block => assert!(matches!(offer, Offer::Full(batch) if sequences(&batch) == [4, 5])),
            Policy::DropLatest => assert!(matches!(offer, Offer::Dropped)),
            Policy::DropOldest => assert!(matches!(offer, Offer::Queued)),
        }
        assert_eq!(drain(&mut rx), kept, "{policy}");
        assert!(tx.has_room(), "{policy}");
    }
}

#[test]
fn a_large_batch_evicts_until_it_fits() {
    let (mut tx, mut rx) = open_bytes(4 * 4096, Policy::DropOldest);
    let (mut small, mut large) = (Source::new(8), Source::of(1, 3 * 4096));
    for _ in 0..4 {
        assert!(matches!(tx.offer(small.next().unwrap()), Offer::Queued));
    }
    large.sequence = 8;
    assert!(matches!(tx.offer(large.next().unwrap()), Offer::Queued));
    assert_eq!(small.pool.available(), 7, "three went for the large one");
    assert_eq!(drain(&mut rx), [6, 7, 8, 9]);
}

#[test]
fn a_batch_beyond_the_bound_goes_through_alone_under_every_policy() {
    for policy in POLICIES {
        let (mut tx, mut rx) = open_bytes(1000, policy);
        let mut source = Source::new(4);
        for round in 0..3u64 {
            assert!(tx.has_room(), "{policy}");
            assert!(matches!(tx.offer(source.next().unwrap()), Offer::Queued), "{policy}");
            assert!(!tx.has_room(), "{policy}");
            assert_eq!(drain(&mut rx), [round * 2, round * 2 + 1]);
        }
    }
}

#[test]
fn a_stopped_consumer_pins_no_more_than_its_bytes() {
    for policy in [Policy::DropOldest, Policy::DropLatest] {
        let (mut tx, rx) = open_bytes(3 * 4096, policy);
        let mut source = Source::new(6);
        for _ in 0..1000 {
            let _ = tx.offer(source.next().expect("a chunk is free: the queue holds three of six"));
        }
        assert_eq!(source.pool.available(), 3, "{policy}");
        drop((tx, rx));
    }
}

#[test]
fn across_threads_nothing_is_lost_twice_or_reordered() {
    for policy in POLICIES {
        for tx_waits in [false, true] {
            across_threads(QueueOptions { policy, ..QueueOptions::block(4) }, tx_waits);
            across_threads(QueueOptions { policy, ..QueueOptions::block(64).bytes(4 * 4096) }, tx_waits);
        }
    }
}

/// With `tx_waits` the producer sleeps in the queue, woken once per half of it; otherwise on its own signal.
fn across_threads(options: QueueOptions, tx_waits: bool) {
    let policy = options.policy;
    let (producer, consumer) = (Arc::new(Signal::new()), Arc::new(Signal::new()));
    let (mut tx, mut rx) = queue(options, producer.clone(), consumer.clone());
    const BATCHES: u64 = 20_000;
    let sender = thread::spawn(move || {
        let mut source = Source::new(8);
        for _ in 0..BATCHES {
            let mut batch = loop {
                match source.next() {
                    Some(batch) => break batch,
                    None => thread::yield_now(),
                }
            };
            while let Offer::Full(back) = tx.offer(batch) {
                batch = back;
                if tx_waits {
                    tx.wait(Duration::from_secs(30), || false);
                    assert!(tx.has_room(), "a wake-up was lost");
                } else {
                    assert!(producer.wait(Duration::from_secs(30), || tx.has_room()), "a wake-up was lost");
                }
            }
        }
    });
    let mut seen = Vec::new();
    while !rx.is_ended() {
        assert!(
            consumer.wait(Duration::from_secs(30), || rx.has_batch() || rx.is_ended()),
            "a wake-up was lost"
        );
        seen.extend(drain(&mut rx));
    }
    sender.join().unwrap();
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{policy}");
    if policy == Policy::Block {
        assert_eq!(seen.len() as u64, BATCHES * 2);
    }
    if policy == Policy::DropOldest {
        assert_eq!(seen.last(), Some(&(BATCHES * 2 - 1)), "the newest is always kept");
    }
}
