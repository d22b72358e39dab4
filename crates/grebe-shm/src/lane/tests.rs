use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;

use grebe_ring::Policy;

use super::layout::{HEAD, TAIL};
use super::*;
use crate::sync::{Ordering, Words};

const CHUNKS: u32 = 12;

fn lane(queue: u32, quota: u32, policy: Policy) -> (Lender<Arc<()>>, Borrower, Words, Shape) {
    let shape = Shape::new(queue, quota);
    let words = Words::alone(shape.words()).unwrap();
    let lender = Lender::new(words.clone(), shape, policy, quota, CHUNKS);
    (lender, Borrower::new(words.clone(), shape, policy), words, shape)
}

fn policies() -> impl Strategy<Value = Policy> {
    prop::sample::select(Policy::ALL.to_vec())
}

proptest! {
    /// Any sequence of steps of an honest consumer behaves like a bounded deque with a quota.
    #[test]
    fn behaves_as_a_bounded_deque_with_a_quota(
        policy in policies(), queue in 1u32..6, quota in 1u32..9, steps in prop::collection::vec(0u8..4, 0..200),
    ) {
        let (mut lender, mut borrower, _, shape) = lane(queue, quota, policy);
        let (mut waiting, mut held, mut free) = (VecDeque::new(), VecDeque::new(), (0..CHUNKS).collect::<VecDeque<_>>());
        for step in steps {
            match step {
                0 | 1 => {
                    lender.reap(drop).unwrap();
                    let Some(chunk) = free.pop_front() else { continue };
                    let fits = waiting.len() < shape.queue() as usize && waiting.len() + held.len() < quota as usize;
                    let what = Descriptor { chunk, frames: chunk + 1, first: 64, stride: 128 };
                    match lender.offer(Arc::new(()), what).unwrap() {
                        Offer::Queued(evicted) => {
                            prop_assert_eq!(evicted.is_none(), fits);
                            if evicted.is_some() {
                                prop_assert_eq!(policy, Policy::DropOldest);
                                free.extend(waiting.pop_front());
                            }
                            waiting.push_back(chunk);
                        }
                        Offer::Dropped(_) => {
                            prop_assert!(!fits && (policy == Policy::DropLatest || waiting.is_empty()));
                            free.push_back(chunk);
                        }
                        Offer::Full(_) => {
                            prop_assert!(!fits && policy == Policy::Block);
                            free.push_back(chunk);
                        }
                    }
                }
                2 => {
                    let next = borrower.pop().unwrap();
                    prop_assert_eq!(next.map(|what| (what.chunk, what.frames)), waiting.front().map(|&c| (c, c + 1)));
                    held.extend(waiting.pop_front());
                }
                _ => if let Some(chunk) = held.pop_back() {
                    borrower.returns().give_back(chunk);
                    free.push_back(chunk);
                }
            }
            lender.refresh().unwrap();
            prop_assert_eq!(lender.queued() as usize, waiting.len());
            prop_assert!(lender.out() as usize >= waiting.len() + held.len());
        }
        lender.reap(drop).unwrap();
        prop_assert_eq!(lender.out() as usize, waiting.len() + held.len());
    }

    /// Arbitrary writes of a consumer into its own lane cause no panic. At most its quota is on loan, and every lease
    /// returns when it is cut off.
    #[test]
    fn a_consumer_that_writes_garbage_harms_nobody(
        policy in policies(),
        steps in prop::collection::vec((0u8..6, any::<usize>(), garbage()), 1..120),
    ) {
        hostile::harms_nobody(policy, steps);
    }
}

/// Plausible and implausible words.
fn garbage() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..16,
        any::<u64>(),
        (0u64..16, 0u64..16).prop_map(|(low, high)| low | high << 32),
        Just(u64::MAX)
    ]
}

fn descriptor(chunk: u32) -> Descriptor {
    Descriptor { chunk, frames: 1, first: 0, stride: 64 }
}

#[test]
fn each_lie_has_its_name() {
    let returned = |position: u64, chunk: u64| (position + 1) << 32 | chunk;
    let lie = |write: &dyn Fn(&Words, Shape)| {
        let (mut lender, mut borrower, words, shape) = lane(4, 4, Policy::DropOldest);
        for chunk in 0..3 {
            assert!(matches!(lender.offer(Arc::new(()), descriptor(chunk)), Ok(Offer::Queued(None))));
        }
        borrower.pop().unwrap();
        lender.refresh().unwrap();
        write(&words, shape);
        lender.reap(drop).and_then(|_| lender.refresh()).unwrap_err()
    };
    assert_eq!(lie(&|words, _| words.at(HEAD).store(0, Ordering::Relaxed)), Violation::Head { head: 0 });
    assert_eq!(lie(&|words, _| words.at(HEAD).store(4, Ordering::Relaxed)), Violation::Head { head: 4 });
    let word = returned(7, 0);
    assert_eq!(lie(&|w, s| w.at(s.ret(0)).store(word, Ordering::Relaxed)), Violation::Return { word });
    let back = |chunk| lie(&|w, s| w.at(s.ret(0)).store(returned(0, chunk), Ordering::Relaxed));
    assert_eq!(back(3), Violation::NotLent { chunk: 3 });
    assert_eq!(back(1 << 20), Violation::NotLent { chunk: 1 << 20 });
    assert_eq!(back(1), Violation::NotTaken { chunk: 1 });
}

#[test]
fn a_wake_up_that_was_not_asked_for_is_a_lie() {
    let (mut lender, _borrower, _, _) = lane(2, 2, Policy::Block);
    assert_eq!(lender.woken(), Err(Violation::WakeUp));
    for chunk in 0..2 {
        assert!(matches!(lender.offer(Arc::new(()), descriptor(chunk)), Ok(Offer::Queued(None))));
    }
    lender.arm();
    assert_eq!(lender.woken(), Ok(()));
}

#[test]
fn the_end_carries_its_header() {
    let (lender, borrower, _, _) = lane(2, 2, Policy::Block);
    assert_eq!(borrower.end(), None);
    let header = std::array::from_fn(|index| index as u8);
    lender.end(Some(&header));
    assert_eq!(borrower.end(), Some(Some(header)));
}

#[test]
fn a_tail_that_cannot_be_is_noticed_by_the_consumer() {
    let (_lender, mut borrower, words, _) = lane(2, 2, Policy::Block);
    words.at(TAIL).store(3, Ordering::Relaxed);
    assert_eq!(borrower.pop(), Err(Violation::Tail { tail: 3 }));
}
