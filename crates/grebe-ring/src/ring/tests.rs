use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

proptest! {
    /// Any sequence of operations behaves like a bounded deque.
    #[test]
    fn behaves_as_a_bounded_deque(
        capacity in 1usize..9,
        evicts: bool,
        steps in prop::collection::vec(0u8..3, 0..200),
    ) {
        let (mut tx, mut rx) = ring(capacity, if evicts { Policy::DropOldest } else { Policy::Block });
        let mut model = VecDeque::new();
        for (value, step) in steps.into_iter().enumerate() {
            match step {
                0 => {
                    let fits = model.len() < tx.capacity();
                    prop_assert_eq!(tx.has_room(), fits);
                    prop_assert_eq!(tx.push(value).is_ok(), fits);
                    if fits { model.push_back(value) }
                }
                1 if evicts => prop_assert_eq!(tx.evict(), model.pop_front()),
                _ => {
                    prop_assert_eq!(rx.has_value(), !model.is_empty());
                    prop_assert_eq!(rx.pop(), model.pop_front());
                }
            }
            prop_assert_eq!(rx.shared.len(), model.len());
            prop_assert_eq!(tx.is_empty(), model.is_empty());
        }
    }
}

#[test]
fn remaining_elements_are_dropped_once() {
    for policy in Policy::ALL {
        let token = std::sync::Arc::new(());
        let (mut tx, mut rx) = ring(4, policy);
        for _ in 0..3 {
            tx.push(token.clone()).unwrap();
        }
        drop(rx.pop());
        assert_eq!(std::sync::Arc::strong_count(&token), 3);
        drop((tx, rx));
        assert_eq!(std::sync::Arc::strong_count(&token), 1);
    }
}

#[test]
fn each_end_sees_that_the_other_is_gone_and_not_before() {
    for policy in Policy::ALL {
        let (tx, rx) = ring::<u8>(2, policy);
        assert!(!tx.is_closed() && !rx.is_closed());
        drop(rx);
        assert!(tx.is_closed());
        let (tx, rx) = ring::<u8>(2, policy);
        drop(tx);
        assert!(rx.is_closed());
    }
}

#[test]
fn across_threads_a_ring_that_does_not_evict_loses_nothing() {
    let (mut tx, mut rx) = ring(8, Policy::Block);
    let count = 200_000u64;
    let producer = std::thread::spawn(move || {
        for value in 0..count {
            let mut value = Box::new(value);
            while let Err(back) = tx.push(value) {
                value = back;
                std::thread::yield_now();
            }
        }
    });
    let mut expected = 0;
    while expected < count {
        match rx.pop() {
            Some(value) => {
                assert_eq!(*value, expected);
                expected += 1;
            }
            None => std::thread::yield_now(),
        }
    }
    producer.join().unwrap();
    assert!(rx.is_closed() && rx.pop().is_none());
}

#[test]
fn across_threads_every_value_is_popped_or_evicted_once_and_in_order() {
    let (mut tx, mut rx) = ring(8, Policy::DropOldest);
    let count = 200_000u64;
    let producer = std::thread::spawn(move || {
        let mut evicted = Vec::new();
        for value in 0..count {
            let mut value = value;
            while let Err(back) = tx.push(value) {
                value = back;
                evicted.extend(tx.evict());
            }
        }
        evicted
    });
    let mut popped = Vec::new();
    loop {
        let closed = rx.is_closed();
        match rx.pop() {
            Some(value) => popped.push(value),
            None if closed => break,
            None => std::thread::yield_now(),
        }
    }
    let evicted = producer.join().unwrap();
    assert!(popped.windows(2).all(|pair| pair[0] < pair[1]));
    let mut all: Vec<u64> = popped.into_iter().chain(evicted).collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..count));
}

#[test]
fn policies_are_read_by_the_names_they_are_written_with() {
    for policy in Policy::ALL {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    let error = "newest".parse::<Policy>().unwrap_err().to_string();
    assert_eq!(error, "unknown queue policy 'newest': use block, drop_oldest or drop_latest");
}
