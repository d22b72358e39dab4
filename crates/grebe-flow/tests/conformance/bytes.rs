//! Tests the byte limit of the queue between threads: its policies when slots are free but the bytes are used
//! up.

use grebe_flow::{Offer, Policy, QueueOptions};
use grebe_frame::BatchPool;

use super::conformance::{POLICIES, Sending, Source, across_threads, drain, sequences};
use super::{Rx, Tx, open};

/// Queue with many slots that is full at `capacity_bytes`.
fn open_bytes(capacity_bytes: usize, policy: Policy) -> (Tx, Rx) {
    open(QueueOptions { policy, ..QueueOptions::block(64).bytes(capacity_bytes) })
}

#[test]
fn a_queue_full_of_bytes_follows_its_policy() {
    for (policy, kept) in [
        (Policy::Block, [0, 1, 2, 3]),
        (Policy::DropLatest, [0, 1, 2, 3]),
        (Policy::DropOldest, [2, 3, 4, 5]),
    ] {
        // Two and a half chunks, so a third does not fit.
        let (mut tx, mut rx) = open_bytes(2 * 4096 + 2048, policy);
        let mut source = Source::new(BatchPool::new(4, 4096));
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
    let (mut small, mut large) =
        (Source::new(BatchPool::new(8, 4096)), Source::new(BatchPool::new(1, 3 * 4096)));
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
        let mut source = Source::new(BatchPool::new(4, 4096));
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
        let mut source = Source::new(BatchPool::new(6, 4096));
        for _ in 0..1000 {
            let _ = tx.offer(source.next().expect("a chunk is free: the queue holds three of six"));
        }
        assert_eq!(source.pool.available(), 3, "{policy}");
        drop((tx, rx));
    }
}

/// A producer that waits in the queue is woken once per half of it; another waits for its own signal.
#[test]
fn across_threads_nothing_is_lost_twice_or_reordered() {
    for policy in POLICIES {
        for waits_in_queue in [false, true] {
            for options in [QueueOptions::block(4), QueueOptions::block(64).bytes(4 * 4096)] {
                let (mut tx, rx) = open(QueueOptions { policy, ..options });
                tx.waits_in_queue = waits_in_queue;
                across_threads(BatchPool::new(8, 4096), tx, rx, policy);
            }
        }
    }
}
