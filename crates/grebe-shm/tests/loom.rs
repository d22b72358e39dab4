//! All interleavings of a producer and one consumer of its lane under loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p grebe-shm --test loom --release`
#![cfg(loom)]

use std::sync::Arc;

use borrower::Borrower;
use grebe_shm::Policy;
use layout::{Descriptor, Shape};
use lender::{Lender, Offer};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use sync::Words;

// The lane is not public, so its files are compiled into this test.
#[path = "../src/lane/borrower.rs"]
#[allow(dead_code)]
mod borrower;
#[path = "../src/lane/layout.rs"]
#[allow(dead_code)]
mod layout;
#[path = "../src/lane/lender.rs"]
#[allow(dead_code)]
mod lender;
#[path = "../src/sync.rs"]
#[allow(dead_code)]
mod sync;

/// Samples of each chunk. Loom detects a write during a read.
type Chunks = Arc<Vec<UnsafeCell<u64>>>;

fn lane(policy: Policy, quota: u32, chunks: u32) -> (Lender<u32>, Borrower, Chunks) {
    let shape = Shape::new(2, quota);
    let words = Words::model(shape.words());
    let samples = Arc::new((0..chunks).map(|_| UnsafeCell::new(0)).collect());
    (Lender::new(words.clone(), shape, policy, quota, chunks), Borrower::new(words, shape, policy), samples)
}

fn write(chunks: &Chunks, chunk: u32, value: u64) {
    // SAFETY: loom checks that nobody reads meanwhile.
    chunks[chunk as usize].with_mut(|place| unsafe { *place = value });
}

fn read(chunks: &Chunks, chunk: u32) -> u64 {
    // SAFETY: loom checks that nobody writes meanwhile.
    chunks[chunk as usize].with(|place| unsafe { *place })
}

fn what(chunk: u32) -> Descriptor {
    Descriptor { chunk, frames: 1, first: 0, stride: 64 }
}

/// Takes at most `most` batches, reads each, and returns it.
fn consume(borrower: &mut Borrower, chunks: &Chunks, most: usize) -> Vec<u64> {
    let mut seen = Vec::new();
    for _ in 0..most {
        if let Some(what) = borrower.pop().unwrap() {
            seen.push(read(chunks, what.chunk));
            borrower.returns().give_back(what.chunk);
        }
    }
    seen
}

#[test]
fn a_chunk_is_written_again_only_after_it_was_returned() {
    loom::model(|| {
        let (mut lender, mut borrower, chunks) = lane(Policy::DropLatest, 2, 1);
        let theirs = chunks.clone();
        write(&chunks, 0, 1);
        assert!(matches!(lender.offer(0, what(0)), Ok(Offer::Queued(None))));
        let consumer = thread::spawn(move || consume(&mut borrower, &theirs, 2));
        let mut home = None;
        lender.reap(|chunk| home = Some(chunk)).unwrap();
        if let Some(chunk) = home {
            write(&chunks, chunk, 2);
            assert!(matches!(lender.offer(chunk, what(chunk)), Ok(Offer::Queued(None))));
        }
        let seen = consumer.join().unwrap();
        assert!(seen == [1] || seen == [1, 2], "{seen:?}");
    });
}

#[test]
fn what_is_evicted_is_not_read_and_what_is_taken_is_not_evicted() {
    loom::model(|| {
        let (mut lender, mut borrower, chunks) = lane(Policy::DropOldest, 2, 3);
        let theirs = chunks.clone();
        for chunk in 0..2 {
            write(&chunks, chunk, u64::from(chunk));
            assert!(matches!(lender.offer(chunk, what(chunk)), Ok(Offer::Queued(None))));
        }
        let consumer = thread::spawn(move || {
            let seen = consume(&mut borrower, &theirs, 2);
            (seen, borrower)
        });
        write(&chunks, 2, 2);
        let mut evicted = None;
        match lender.offer(2, what(2)).unwrap() {
            // An evicted chunk belongs to the producer again at once.
            Offer::Queued(Some(chunk)) => {
                evicted = Some(u64::from(chunk));
                write(&chunks, chunk, 9);
            }
            Offer::Queued(None) => {}
            Offer::Dropped(chunk) => evicted = Some(u64::from(chunk)),
            Offer::Full(_) => unreachable!(),
        }
        let (mut seen, mut borrower) = consumer.join().unwrap();
        seen.extend(consume(&mut borrower, &chunks, 3));
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
        seen.extend(evicted);
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2]);
    });
}

/// Models the lender's owner (`Consumers::settle`, `Consumers::attend`) with a consumer that was cut off. It
/// releases the leases when the socket has hung up, and not earlier.
#[test]
fn what_a_consumer_was_lent_is_written_again_only_after_it_hung_up() {
    loom::model(|| {
        let (mut lender, mut borrower, chunks) = lane(Policy::Block, 2, 2);
        let theirs = chunks.clone();
        for chunk in 0..2 {
            write(&chunks, chunk, 1);
            assert!(matches!(lender.offer(chunk, what(chunk)), Ok(Offer::Queued(None))));
        }
        let hung_up = loom::sync::Arc::new(AtomicBool::new(false));
        let hang_up = hung_up.clone();
        let consumer = thread::spawn(move || {
            let held = [borrower.pop().unwrap(), borrower.pop().unwrap()];
            for what in held.into_iter().flatten() {
                assert_eq!(read(&theirs, what.chunk), 1);
            }
            hang_up.store(true, Ordering::Release);
        });
        lender.cut_off();
        if hung_up.load(Ordering::Acquire) {
            drop(lender);
            (0..2).for_each(|chunk| write(&chunks, chunk, 2));
        }
        consumer.join().unwrap();
    });
}

#[test]
fn nothing_is_taken_after_the_message_that_cuts_off() {
    loom::model(|| {
        let (mut lender, mut borrower, _) = lane(Policy::DropOldest, 2, 2);
        for chunk in 0..2 {
            assert!(matches!(lender.offer(chunk, what(chunk)), Ok(Offer::Queued(None))));
        }
        let bye = loom::sync::Arc::new(AtomicBool::new(false));
        let descriptions = bye.clone();
        let producer = thread::spawn(move || {
            lender.cut_off();
            descriptions.store(true, Ordering::Release);
            lender
        });
        for _ in 0..2 {
            let is_told = bye.load(Ordering::Acquire);
            let taken = borrower.pop().unwrap();
            assert!(!is_told || taken.is_none() && !borrower.has_value());
        }
        producer.join().unwrap();
    });
}

#[test]
fn chunks_come_back_from_several_threads() {
    loom::model(|| {
        let (mut lender, mut borrower, _) = lane(Policy::Block, 2, 2);
        for chunk in 0..2 {
            assert!(matches!(lender.offer(chunk, what(chunk)), Ok(Offer::Queued(None))));
        }
        let taken = [borrower.pop().unwrap().unwrap().chunk, borrower.pop().unwrap().unwrap().chunk];
        let others = taken.map(|chunk| {
            let returns = borrower.returns().clone();
            thread::spawn(move || {
                returns.give_back(chunk);
            })
        });
        let mut home = Vec::new();
        lender.reap(|chunk| home.push(chunk)).unwrap();
        for other in others {
            other.join().unwrap();
        }
        lender.reap(|chunk| home.push(chunk)).unwrap();
        home.sort_unstable();
        assert_eq!((home, lender.out()), (vec![0, 1], 0));
    });
}

#[test]
fn a_sleeping_consumer_is_woken() {
    loom::model(|| {
        let (mut lender, borrower, _) = lane(Policy::DropLatest, 2, 1);
        let woken = loom::sync::Arc::new(AtomicBool::new(false));
        let wake = woken.clone();
        let producer = thread::spawn(move || {
            assert!(matches!(lender.offer(0, what(0)), Ok(Offer::Queued(None))));
            if lender.must_wake() {
                wake.store(true, Ordering::Release);
            }
        });
        borrower.prepare_sleep();
        let sees = borrower.has_value();
        producer.join().unwrap();
        assert!(sees || woken.load(Ordering::Acquire), "it sleeps beside a batch");
    });
}

#[test]
fn a_waiting_producer_is_woken() {
    loom::model(|| {
        let (mut lender, mut borrower, _) = lane(Policy::Block, 2, 3);
        for chunk in 0..2 {
            assert!(matches!(lender.offer(chunk, what(chunk)), Ok(Offer::Queued(None))));
        }
        let woken = loom::sync::Arc::new(AtomicBool::new(false));
        let wake = woken.clone();
        let consumer = thread::spawn(move || {
            let what = borrower.pop().unwrap().unwrap();
            let on_pop = borrower.must_wake();
            if borrower.returns().give_back(what.chunk) | on_pop {
                wake.store(true, Ordering::Release);
            }
        });
        assert!(matches!(lender.offer(2, what(2)), Ok(Offer::Full(2))));
        lender.arm();
        lender.reap(drop).unwrap();
        lender.refresh().unwrap();
        let has_room = lender.has_room();
        consumer.join().unwrap();
        assert!(has_room || woken.load(Ordering::Acquire), "it waits beside room");
    });
}
