//! All interleavings of ring, pool and signal under loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p grebe-ring --test loom --release`
#![cfg(loom)]

use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use grebe_ring::{Policy, Pool, Signal, ring};
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::sync::{Arc, Notify};
use loom::thread;

#[test]
fn a_value_is_popped_or_evicted_exactly_once() {
    loom::model(|| {
        let (mut tx, mut rx) = ring(2, Policy::DropOldest);
        tx.push(0u32).unwrap();
        let consumer = thread::spawn(move || {
            let first = rx.pop();
            let second = rx.pop();
            (first, second, rx)
        });
        let mut evicted = None;
        tx.push(1).unwrap();
        if tx.push(2).is_err() {
            evicted = tx.evict();
        }
        let (first, second, mut rx) = consumer.join().unwrap();
        let mut seen: Vec<u32> = [first, second, evicted].into_iter().flatten().collect();
        while let Some(value) = rx.pop() {
            seen.push(value);
        }
        seen.sort_unstable();
        seen.dedup();
        assert!(seen == [0, 1] || seen == [0, 1, 2], "{seen:?}");
    });
}

#[test]
fn a_push_that_follows_an_eviction_is_never_refused() {
    loom::model(|| {
        let (mut tx, mut rx) = ring(2, Policy::DropOldest);
        tx.push(0u32).unwrap();
        tx.push(1).unwrap();
        let consumer = thread::spawn(move || drop((rx.pop(), rx)));
        if let Err(newest) = tx.push(2) {
            tx.evict();
            assert_eq!(tx.push(newest), Ok(()), "the consumer is just taking one out");
        }
        consumer.join().unwrap();
    });
}

#[test]
fn a_ring_that_does_not_evict_hands_over_what_was_written() {
    loom::model(|| {
        let (mut tx, mut rx) = ring(2, Policy::Block);
        let producer = thread::spawn(move || {
            tx.push(Box::new(1)).unwrap();
            tx.push(Box::new(2)).unwrap();
        });
        let mut expected = 1;
        while expected < 3 {
            match rx.pop() {
                Some(value) => {
                    assert_eq!(*value, expected);
                    expected += 1;
                }
                None => thread::yield_now(),
            }
        }
        producer.join().unwrap();
    });
}

#[test]
fn a_place_is_filled_again_only_after_its_value_was_taken() {
    loom::model(|| {
        let (mut tx, mut rx) = ring(2, Policy::Block);
        let producer = thread::spawn(move || {
            for value in 1..=3 {
                let mut value = Box::new(value);
                while let Err(back) = tx.push(value) {
                    value = back;
                    thread::yield_now();
                }
            }
        });
        let mut expected = 1;
        while expected < 4 {
            match rx.pop() {
                Some(value) => {
                    assert_eq!(*value, expected);
                    expected += 1;
                }
                None => thread::yield_now(),
            }
        }
        producer.join().unwrap();
    });
}

#[test]
fn a_chunk_is_never_owned_twice_and_its_readers_are_done_before_it_is_written() {
    loom::model(|| {
        let mut pool = Pool::new(1, 64, || 0_u32);
        let mut chunk = pool.acquire().unwrap();
        *chunk.meta_mut() = 1;
        let lease = chunk.freeze();
        let clone = lease.clone();
        let reader = thread::spawn(move || assert_eq!(*clone.meta(), 1));
        assert_eq!(*lease.meta(), 1);
        drop(lease);
        if let Some(mut chunk) = pool.acquire() {
            *chunk.meta_mut() = 2;
        }
        reader.join().unwrap();
        assert!(pool.acquire().is_some());
    });
}

#[test]
fn a_pool_and_its_last_leases_may_go_in_any_order() {
    loom::model(|| {
        let mut pool = Pool::new(2, 64, || 0_u32);
        let (first, second) = (pool.acquire().unwrap().freeze(), pool.acquire().unwrap().freeze());
        let a = thread::spawn(move || drop(first));
        let b = thread::spawn(move || drop(second));
        drop(pool);
        a.join().unwrap();
        b.join().unwrap();
    });
}

#[test]
fn a_wake_up_is_never_lost() {
    loom::model(|| {
        let (signal, ready) = (Arc::new(Signal::new()), Arc::new(AtomicBool::new(false)));
        let (theirs, flag) = (signal.clone(), ready.clone());
        let other = thread::spawn(move || {
            flag.store(true, Ordering::Release);
            theirs.notify();
        });
        assert!(signal.wait(Duration::MAX, || ready.load(Ordering::Acquire)));
        other.join().unwrap();
    });
}

#[test]
fn a_tasks_wake_up_is_never_lost() {
    loom::model(|| {
        let (signal, count) = (Arc::new(Signal::new()), Arc::new(AtomicU32::new(0)));
        let (theirs, counted) = (signal.clone(), count.clone());
        let other = thread::spawn(move || {
            for _ in 0..2 {
                counted.fetch_add(1, Ordering::Release);
                theirs.notify();
            }
        });
        for least in 1..=2 {
            block_on(|cx| signal.poll(cx, || count.load(Ordering::Acquire) >= least));
        }
        other.join().unwrap();
    });
}

/// Executor of one task. A lost wake-up is a deadlock, which loom reports.
fn block_on(mut poll: impl FnMut(&mut Context<'_>) -> Poll<()>) {
    let woken = std::sync::Arc::new(Woken(Notify::new()));
    let waker = Waker::from(woken.clone());
    while poll(&mut Context::from_waker(&waker)).is_pending() {
        woken.0.wait();
    }
}

struct Woken(Notify);

impl Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.notify();
    }
}
