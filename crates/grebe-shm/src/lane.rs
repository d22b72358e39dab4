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

use std::sync::Arc;

use crate::Policy;
use crate::sync::{AtomicU64, Ordering, Words, fence};

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

/// The producer's end. `L` is the lease that keeps a chunk from being reused.
#[derive(Debug)]
pub struct Lender<L> {
    words: Words,
    shape: Shape,
    policy: Policy,
    quota: u32,
    tail: u64,
    /// Last seen; never moves back.
    head: u64,
    /// The chunk at each position of the queue.
    queued: Box<[u32]>,
    /// What is out, by chunk.
    lent: Box<[Option<Lent<L>>]>,
    out: u32,
    returned: u64,
    /// Flags set so far: each is answered by one knock at most.
    armed: u64,
}

#[derive(Debug)]
struct Lent<L> {
    lease: L,
    position: u64,
}

/// What became of a lease that was offered.
#[derive(Debug)]
#[must_use]
pub enum Offer<L> {
    /// It is queued; under `drop_oldest` perhaps at the cost of an older one.
    Queued(Option<L>),
    /// It was dropped.
    Dropped(L),
    /// There is no room, and the policy is to wait.
    Full(L),
}

impl<L> Lender<L> {
    /// An empty lane in zeroed `words`, for a pool of `chunks`.
    pub fn new(words: Words, shape: Shape, policy: Policy, quota: u32, chunks: u32) -> Self {
        assert!(words.len() >= shape.words(), "the words hold the lane");
        for position in 0..shape.returns {
            let old = (position + 1).wrapping_sub(shape.returns) << 32;
            words.at(shape.ret(position)).store(old, Ordering::Relaxed);
        }
        words.at(WAKE_AT_HEAD).store(NEVER, Ordering::Relaxed);
        words.at(WAKE_AT_RETURN).store(NEVER, Ordering::Release);
        Self {
            words,
            shape,
            policy,
            quota,
            tail: 0,
            head: 0,
            queued: vec![0; shape.queue as usize].into(),
            lent: (0..chunks).map(|_| None).collect(),
            out: 0,
            returned: 0,
            armed: 0,
        }
    }

    /// Offers a chunk under the lane's policy; never waits.
    ///
    /// # Errors
    /// The consumer wrote what cannot be: it is to be cut off.
    pub fn offer(&mut self, lease: L, what: Descriptor) -> Result<Offer<L>, Violation> {
        self.look()?;
        if self.has_room() {
            return Ok(self.push(lease, what));
        }
        match self.policy {
            Policy::Block => Ok(Offer::Full(lease)),
            Policy::DropLatest => Ok(Offer::Dropped(lease)),
            Policy::DropOldest => {
                let mut evicted = None;
                // Ends: each turn moves the head, and nothing is queued meanwhile.
                while !self.has_room() {
                    if self.head == self.tail {
                        // The consumer holds its whole quota: nothing that waits could make room.
                        return Ok(Offer::Dropped(lease));
                    }
                    evicted = self.evict()?.or(evicted);
                }
                match self.push(lease, what) {
                    Offer::Queued(_) => Ok(Offer::Queued(evicted)),
                    refused => Ok(refused),
                }
            }
        }
    }

    /// Takes back what the consumer returned, each through `home`; how many there were.
    ///
    /// # Errors
    /// As for [`offer`](Self::offer).
    pub fn reap(&mut self, mut home: impl FnMut(L)) -> Result<u32, Violation> {
        let mut count = 0;
        loop {
            let word = self.words.at(self.shape.ret(self.returned)).load(Ordering::Acquire);
            let new = (self.returned + 1) as u32;
            if (word >> 32) as u32 != new {
                let old = new.wrapping_sub(self.shape.returns as u32);
                return if (word >> 32) as u32 == old { Ok(count) } else { Err(Violation::Return { word }) };
            }
            let chunk = word as u32;
            let not_lent = Violation::NotLent { chunk };
            let position = self.lent.get(chunk as usize).and_then(Option::as_ref).ok_or(not_lent)?.position;
            if position >= self.head {
                // An honest consumer moves the head first.
                self.look()?;
                if position >= self.head {
                    return Err(Violation::NotTaken { chunk });
                }
            }
            self.returned += 1;
            home(self.release(chunk).ok_or(not_lent)?);
            count += 1;
        }
    }

    /// Reads where the consumer is.
    ///
    /// # Errors
    /// As for [`offer`](Self::offer).
    pub fn look(&mut self) -> Result<(), Violation> {
        let head = self.words.at(HEAD).load(Ordering::Acquire);
        if head.wrapping_sub(self.head) > self.tail - self.head {
            return Err(Violation::Head { head });
        }
        self.head = head;
        Ok(())
    }

    /// Whether the next offer fits, as far as was seen.
    pub fn has_room(&self) -> bool {
        self.tail - self.head < self.shape.queue && self.out < self.quota
    }

    /// Whether the consumer sleeps and is to be woken. To be asked after an offer was queued.
    #[inline]
    pub fn must_wake(&self) -> bool {
        fence(Ordering::SeqCst);
        let flag = self.words.at(CONSUMER_SLEEPS);
        flag.load(Ordering::Relaxed) != 0 && {
            flag.store(0, Ordering::Relaxed);
            true
        }
    }

    /// Asks for a knock once there is room for a while; to be followed by [`look`](Self::look) and a last try.
    pub fn arm(&mut self) {
        if self.tail - self.head >= self.shape.queue {
            self.words.at(WAKE_AT_HEAD).store(self.head + self.shape.queue / 2, Ordering::Relaxed);
            self.armed += 1;
        }
        if self.out >= self.quota {
            self.words
                .at(WAKE_AT_RETURN)
                .store(self.returned + u64::from(self.quota / 4).max(1), Ordering::Relaxed);
            self.armed += 1;
        }
        fence(Ordering::SeqCst);
    }

    /// Asks for no knock any more. One may be on its way.
    pub fn disarm(&self) {
        self.words.at(WAKE_AT_HEAD).store(NEVER, Ordering::Relaxed);
        self.words.at(WAKE_AT_RETURN).store(NEVER, Ordering::Relaxed);
    }

    /// Counts a knock.
    ///
    /// # Errors
    /// It was not asked for.
    pub fn knocked(&mut self) -> Result<(), Violation> {
        self.armed = self.armed.checked_sub(1).ok_or(Violation::Knock)?;
        Ok(())
    }

    /// Says that nothing will follow, with the header that ends the stream, if there is one.
    pub fn end(&self, header: Option<&[u8; 64]>) {
        if let Some(header) = header {
            for (index, bytes) in header.chunks_exact(8).enumerate() {
                let word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
                self.words.at(END_HEADER + index).store(word, Ordering::Relaxed);
            }
        }
        let state = if header.is_some() { ENDED_WITH_HEADER } else { ENDED };
        self.words.at(STATE).store(state, Ordering::Release);
    }

    /// Tells the consumer how many frames were dropped for it so far.
    pub fn say_dropped(&self, frames: u64) {
        self.words.at(DROPPED).store(frames, Ordering::Relaxed);
    }

    /// Chunks out: queued, or held by the consumer.
    pub fn out(&self) -> u32 {
        self.out
    }

    /// Chunks that wait in the queue, as far as was seen.
    pub fn queued(&self) -> u32 {
        (self.tail - self.head) as u32
    }

    fn push(&mut self, lease: L, what: Descriptor) -> Offer<L> {
        let Some(place @ None) = self.lent.get_mut(what.chunk as usize) else {
            // No such chunk, or offered twice: what is out already cannot be lent again.
            return Offer::Dropped(lease);
        };
        *place = Some(Lent { lease, position: self.tail });
        self.out += 1;
        let slot = self.shape.slot(self.tail);
        self.queued[(self.tail & (self.shape.queue - 1)) as usize] = what.chunk;
        let [one, two] = what.words();
        // The head is past the slot's last content (`has_room`), seen with Acquire: whoever claimed that has read it.
        self.words.at(slot).store(one, Ordering::Relaxed);
        self.words.at(slot + 1).store(two, Ordering::Relaxed);
        self.tail += 1;
        self.words.at(TAIL).store(self.tail, Ordering::Release);
        Offer::Queued(None)
    }

    /// Claims the oldest that waits; `None` where the consumer was faster.
    fn evict(&mut self) -> Result<Option<L>, Violation> {
        let claim = self.words.at(HEAD).compare_exchange(
            self.head,
            self.head + 1,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if claim.is_err() {
            let before = self.head;
            self.look()?;
            // Or it would be tried for ever.
            return if self.head == before { Err(Violation::Head { head: before }) } else { Ok(None) };
        }
        let chunk = self.queued[(self.head & (self.shape.queue - 1)) as usize];
        let at = self.lent[chunk as usize].as_ref().map(|lent| lent.position);
        if at != Some(self.head) {
            return Err(Violation::NotTaken { chunk });
        }
        self.head += 1;
        Ok(self.release(chunk))
    }

    fn release(&mut self, chunk: u32) -> Option<L> {
        let lent = self.lent.get_mut(chunk as usize)?.take()?;
        self.out -= 1;
        Some(lent.lease)
    }
}

/// The consumer's end.
#[derive(Debug)]
pub struct Borrower {
    returns: Arc<Returns>,
    policy: Policy,
    head: u64,
}

/// Where chunks go back, from any thread of the consumer.
#[derive(Debug)]
pub struct Returns {
    words: Words,
    shape: Shape,
    /// Only a producer that may wait is ever to be woken.
    knocks: bool,
    count: AtomicU64,
}

impl Borrower {
    /// The consumer's end of a lane that a [`Lender`] was made for.
    pub fn new(words: Words, shape: Shape, policy: Policy) -> Self {
        let knocks = policy == Policy::Block;
        Self {
            returns: Arc::new(Returns { words, shape, knocks, count: AtomicU64::new(0) }),
            policy,
            head: 0,
        }
    }

    /// Where chunks go back.
    pub fn returns(&self) -> &Arc<Returns> {
        &self.returns
    }

    /// Takes the oldest that waits.
    ///
    /// # Errors
    /// The producer's memory is damaged.
    pub fn pop(&mut self) -> Result<Option<Descriptor>, Violation> {
        let (words, shape) = (&self.returns.words, self.returns.shape);
        if self.policy == Policy::DropOldest {
            self.head = words.at(HEAD).load(Ordering::Acquire);
        }
        loop {
            let tail = words.at(TAIL).load(Ordering::Acquire);
            match tail.wrapping_sub(self.head) {
                0 => return Ok(None),
                waiting if waiting > shape.queue => {
                    // Evicted since: the producer is that much further.
                    let head = words.at(HEAD).load(Ordering::Acquire);
                    if head == self.head {
                        return Err(Violation::Tail { tail });
                    }
                    self.head = head;
                    continue;
                }
                _ => {}
            }
            let slot = shape.slot(self.head);
            let content =
                [words.at(slot).load(Ordering::Relaxed), words.at(slot + 1).load(Ordering::Relaxed)];
            let next = self.head.wrapping_add(1);
            if self.policy == Policy::DropOldest {
                // Release: the words were read before the slot is given up. A claim that fails read what was overwritten.
                let claim =
                    words.at(HEAD).compare_exchange(self.head, next, Ordering::AcqRel, Ordering::Acquire);
                if let Err(head) = claim {
                    self.head = head;
                    continue;
                }
            } else {
                words.at(HEAD).store(next, Ordering::Release);
            }
            self.head = next;
            return Ok(Some(Descriptor::of(content)));
        }
    }

    /// Whether a descriptor waits.
    pub fn has_value(&self) -> bool {
        let words = &self.returns.words;
        words.at(TAIL).load(Ordering::Acquire) != words.at(HEAD).load(Ordering::Acquire)
    }

    /// Whether the producer waits for what was taken just now, and is to be knocked up.
    pub fn must_knock(&self) -> bool {
        self.returns.knocks && self.returns.is_due(WAKE_AT_HEAD, self.head)
    }

    /// Sets the sleeping flag; to be followed by a last look ([`has_value`](Self::has_value)), then by
    /// [`wakes`](Self::wakes). Answers whether the producer is to be knocked up first: it waits for this consumer.
    pub fn sleeps(&self) -> bool {
        let words = &self.returns.words;
        words.at(CONSUMER_SLEEPS).store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.returns.knocks
            && (self.returns.is_due(WAKE_AT_HEAD, NEVER - 1) | self.returns.is_due(WAKE_AT_RETURN, NEVER - 1))
    }

    /// Clears the sleeping flag.
    pub fn wakes(&self) {
        self.returns.words.at(CONSUMER_SLEEPS).store(0, Ordering::Relaxed);
    }

    /// Whether the stream has ended, and the header that ended it. What was queued before may still wait.
    pub fn end(&self) -> Option<Option<[u8; 64]>> {
        let words = &self.returns.words;
        match words.at(STATE).load(Ordering::Acquire) {
            ENDED => Some(None),
            ENDED_WITH_HEADER => {
                let mut header = [0; 64];
                for (index, bytes) in header.chunks_exact_mut(8).enumerate() {
                    bytes
                        .copy_from_slice(&words.at(END_HEADER + index).load(Ordering::Relaxed).to_le_bytes());
                }
                Some(Some(header))
            }
            _ => None,
        }
    }

    /// Frames that the producer dropped for this consumer.
    pub fn dropped_frames(&self) -> u64 {
        self.returns.words.at(DROPPED).load(Ordering::Relaxed)
    }
}

impl Returns {
    /// Gives a chunk back; whether the producer waits for it, and is to be knocked up.
    #[inline]
    pub fn give_back(&self, chunk: u32) -> bool {
        let position = self.count.fetch_add(1, Ordering::Relaxed);
        let word = u64::from(chunk) | (position + 1) << 32;
        // Its last content was read: no more chunks are out than there are words.
        self.words.at(self.shape.ret(position)).store(word, Ordering::Release);
        self.knocks && self.is_due(WAKE_AT_RETURN, position + 1)
    }

    fn is_due(&self, word: usize, reached: u64) -> bool {
        fence(Ordering::SeqCst);
        let flag = self.words.at(word);
        // Only one of several threads knocks.
        flag.load(Ordering::Relaxed) <= reached && flag.swap(NEVER, Ordering::Relaxed) <= reached
    }
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

    use proptest::prelude::*;

    use super::*;

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
