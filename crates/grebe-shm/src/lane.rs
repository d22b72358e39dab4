//! What a producer and one consumer share beside the samples: descriptors on their way there, chunks on their way back.
//!
//! ```text
//!   words   | tail, end | head | consumer's flag | producer's flags | descriptors: 2 words each | returns: 1 word each |
//!             producer    both   both              both               producer                    consumer
//!
//!   descriptors   ... | p | p+1 | ...        claimed by moving `head` from p to p + 1: by the consumer, and under
//!                                            `drop_oldest` by the producer that evicts, each by compare-and-swap
//!   returns       ... | count, chunk | ...   the upper half counts, so that a word says by itself whether it is new
//! ```
//!
//! A descriptor is read *before* it is claimed. The producer overwrites a slot only after the head has passed it, so that a
//! claim that succeeds proves the words that were read, and a slot needs no state of its own.
//!
//! **The producer trusts none of these words.** Which chunk lies at which position, and which chunks are out, it knows from its
//! own memory; a word that cannot be is a [`Violation`], for which its consumer is cut off. A consumer that lies within what can be harms
//! itself alone: a chunk it says to have returned is written again while it reads on.

mod borrower;
mod lender;

pub use borrower::Borrower;
pub use lender::{Lender, Offer};

/// The number of slots either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    queue: u64,
    returns: u64,
}

impl Shape {
    /// Room for `queue` descriptors that wait and `quota` chunks that are out; each rounded up to a power of two, at least 2.
    pub fn new(queue: u32, quota: u32) -> Self {
        let round = |count: u32| u64::from(count.clamp(2, 1 << 30).next_power_of_two());
        Self { queue: round(queue), returns: round(quota) }
    }

    /// Descriptors that fit.
    pub fn queue(&self) -> u32 {
        self.queue as u32
    }

    /// Words in all.
    pub fn words(&self) -> usize {
        SLOTS + 2 * self.queue as usize + self.returns as usize
    }

    fn slot(&self, position: u64) -> usize {
        SLOTS + 2 * (position & (self.queue - 1)) as usize
    }

    fn ret(&self, position: u64) -> usize {
        SLOTS + 2 * self.queue as usize + (position & (self.returns - 1)) as usize
    }
}

/// Where the frames of a lent chunk are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Descriptor {
    /// The chunk.
    pub chunk: u32,
    /// How many frames it holds.
    pub frames: u32,
    /// Offset of the first.
    pub first: u32,
    /// From one frame to the next; 0: their offsets stand in the chunk's table.
    pub stride: u32,
}

impl Descriptor {
    fn words(self) -> [u64; 2] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        [pair(self.chunk, self.frames), pair(self.first, self.stride)]
    }

    fn of([one, two]: [u64; 2]) -> Self {
        Self { chunk: one as u32, frames: (one >> 32) as u32, first: two as u32, stride: (two >> 32) as u32 }
    }
}

/// What an honest other side cannot have written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The head moved back, or past what was queued.
    #[error("its head is at {head}, outside of what is queued")]
    Head {
        /// The word.
        head: u64,
    },
    /// The tail moved back, or further than there are slots.
    #[error("its tail is at {tail}, outside of what can be queued")]
    Tail {
        /// The word.
        tail: u64,
    },
    /// A word of the returns is neither new nor old.
    #[error("a returned word is {word:#x}, neither new nor old")]
    Return {
        /// The word.
        word: u64,
    },
    /// A chunk came back that was not out.
    #[error("it returned chunk {chunk}, which it was not lent")]
    NotLent {
        /// The chunk.
        chunk: u32,
    },
    /// A chunk came back that still waits in the queue.
    #[error("it returned chunk {chunk}, which it has not taken")]
    NotTaken {
        /// The chunk.
        chunk: u32,
    },
    /// More messages than there was reason for.
    #[error("it knocked without a reason")]
    Knock,
}

// Words that different sides write lie 128 bytes apart: adjacent lines are fetched in pairs.
const TAIL: usize = 0;
const STATE: usize = 1;
const DROPPED: usize = 2;
const END_HEADER: usize = 3;
const HEAD: usize = 16;
const CONSUMER_SLEEPS: usize = 32;
const WAKE_AT_HEAD: usize = 48;
const WAKE_AT_RETURN: usize = 49;
const SLOTS: usize = 64;

const ENDED: u64 = 1;
const ENDED_WITH_HEADER: u64 = 2;
const NEVER: u64 = u64::MAX;

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::Policy;
    use crate::sync::{Ordering, Words};

    const CHUNKS: u32 = 12;

    fn lane(queue: u32, quota: u32, policy: Policy) -> (Lender<Arc<()>>, Borrower, Words, Shape) {
        let shape = Shape::new(queue, quota);
        let words = Words::alone(shape.words()).unwrap();
        let lender = Lender::new(words.clone(), shape, policy, quota, CHUNKS);
        (lender, Borrower::new(words.clone(), shape, policy), words, shape)
    }

    fn policies() -> impl Strategy<Value = Policy> {
        prop::sample::select(vec![Policy::Block, Policy::DropOldest, Policy::DropLatest])
    }

    proptest! {
        /// Any sequence of steps of an honest consumer behaves as a bounded deque with a quota does.
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
                lender.look().unwrap();
                prop_assert_eq!(lender.queued() as usize, waiting.len());
                prop_assert!(lender.out() as usize >= waiting.len() + held.len());
            }
            lender.reap(drop).unwrap();
            prop_assert_eq!(lender.out() as usize, waiting.len() + held.len());
        }

        /// Whatever a consumer writes into its own lane: no panic, no more out than its quota, and every lease comes home when
        /// it is cut off.
        #[test]
        fn a_consumer_that_writes_garbage_harms_nobody(
            policy in policies(),
            steps in prop::collection::vec((0u8..6, any::<prop::sample::Index>(), garbage()), 1..120),
        ) {
            let (mut lender, mut borrower, words, _) = lane(4, 4, policy);
            let mut tokens = (0..CHUNKS).map(|_| Arc::new(())).collect::<Vec<_>>();
            for (step, index, word) in steps {
                let result = match step {
                    0 | 1 => {
                        // As a pool does: only what nobody holds is offered.
                        let Some(chunk) = tokens.iter().position(|token| Arc::strong_count(token) == 1) else { break };
                        let what = Descriptor { chunk: chunk as u32, frames: 1, first: 0, stride: 64 };
                        lender.offer(tokens[chunk].clone(), what).map(drop)
                    }
                    2 => lender.reap(drop).map(drop),
                    3 => { let _ = borrower.pop(); Ok(()) }
                    4 => { borrower.returns().give_back(word as u32 % CHUNKS); Ok(()) }
                    _ => { words.at(index.index(words.len())).store(word, Ordering::Relaxed); Ok(()) }
                };
                prop_assert!(lender.out() <= 4);
                lender.arm();
                lender.must_wake();
                if result.is_err() { break }
            }
            let _ = borrower.pop();
            drop(lender);
            prop_assert!(tokens.iter_mut().all(|token| Arc::get_mut(token).is_some()));
        }
    }

    /// Words near what is plausible, and words that are not.
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
            lender.look().unwrap();
            write(&words, shape);
            lender.reap(drop).and_then(|_| lender.look()).unwrap_err()
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
    fn a_knock_that_was_not_asked_for_is_a_lie() {
        let (mut lender, _borrower, _, _) = lane(2, 2, Policy::Block);
        assert_eq!(lender.knocked(), Err(Violation::Knock));
        for chunk in 0..2 {
            assert!(matches!(lender.offer(Arc::new(()), descriptor(chunk)), Ok(Offer::Queued(None))));
        }
        lender.arm();
        assert_eq!(lender.knocked(), Ok(()));
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
}
