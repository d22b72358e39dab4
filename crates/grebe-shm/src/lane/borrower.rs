//! Consumer's end of a lane.

use std::sync::Arc;

use grebe_ring::Policy;

use super::layout::{
    CONSUMER_SLEEPS, CUT_OFF, DROPPED, Descriptor, END_HEADER, ENDED, ENDED_WITH_HEADER, HEAD, NEVER, STATE,
    Shape, TAIL, Violation, WAKE_AT_HEAD, WAKE_AT_RETURN,
};
use crate::sync::{AtomicU64, Ordering, Words, fence};

/// Consumer's end.
#[derive(Debug)]
pub(crate) struct Borrower {
    returns: Arc<Returns>,
    policy: Policy,
    head: u64,
}

/// Returns chunks, from any thread of the consumer.
#[derive(Debug)]
pub(crate) struct Returns {
    words: Words,
    shape: Shape,
    /// Only a producer under `block` ever needs a wake-up.
    wakes_producer: bool,
    count: AtomicU64,
}

impl Borrower {
    /// Makes the consumer's end of a lane with an existing [`Lender`](super::Lender).
    pub(crate) fn new(words: Words, shape: Shape, policy: Policy) -> Self {
        let wakes_producer = policy == Policy::Block;
        Self {
            returns: Arc::new(Returns { words, shape, wakes_producer, count: AtomicU64::new(0) }),
            policy,
            head: 0,
        }
    }

    pub(crate) fn returns(&self) -> &Arc<Returns> {
        &self.returns
    }

    /// Takes the oldest waiting descriptor; `None` after this consumer was cut off.
    pub(crate) fn pop(&mut self) -> Result<Option<Descriptor>, Violation> {
        let (words, shape) = (&self.returns.words, self.returns.shape);
        if self.is_cut_off() {
            return Ok(None);
        }
        if self.policy == Policy::DropOldest {
            self.head = words.at(HEAD).load(Ordering::Acquire);
        }
        loop {
            let tail = words.at(TAIL).load(Ordering::Acquire);
            match tail.wrapping_sub(self.head) {
                0 => return Ok(None),
                waiting if waiting > shape.queue => {
                    // Evicted since, so the producer has advanced.
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
                // Release: the words were read before the slot is given up. A failed claim means that
                // overwritten words were read.
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

    pub(crate) fn has_value(&self) -> bool {
        let words = &self.returns.words;
        !self.is_cut_off() && words.at(TAIL).load(Ordering::Acquire) != words.at(HEAD).load(Ordering::Acquire)
    }

    /// Whether the producer has cut this consumer off.
    #[inline]
    pub(crate) fn is_cut_off(&self) -> bool {
        self.returns.words.at(STATE).load(Ordering::Acquire) == CUT_OFF
    }

    /// Whether the producer waits for the descriptor just taken, and needs a wake-up.
    pub(crate) fn must_wake(&self) -> bool {
        self.returns.wakes_producer && self.returns.is_due(WAKE_AT_HEAD, self.head)
    }

    /// Sets the sleeping flag. Then check once more ([`has_value`](Self::has_value)) and call
    /// [`end_sleep`](Self::end_sleep). Returns whether the producer must be woken first, because it waits for
    /// this consumer.
    pub(crate) fn prepare_sleep(&self) -> bool {
        let words = &self.returns.words;
        words.at(CONSUMER_SLEEPS).store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.returns.wakes_producer
            && (self.returns.is_due(WAKE_AT_HEAD, NEVER - 1) | self.returns.is_due(WAKE_AT_RETURN, NEVER - 1))
    }

    /// Clears the sleeping flag.
    pub(crate) fn end_sleep(&self) {
        self.returns.words.at(CONSUMER_SLEEPS).store(0, Ordering::Relaxed);
    }

    /// End of the stream, with its final header. Earlier batches may still be queued.
    pub(crate) fn end(&self) -> Option<Option<[u8; 64]>> {
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
    pub(crate) fn dropped_frames(&self) -> u64 {
        self.returns.words.at(DROPPED).load(Ordering::Relaxed)
    }
}

impl Returns {
    /// Returns a chunk. Returns whether the producer waits for it and must be woken.
    #[inline]
    pub(crate) fn give_back(&self, chunk: u32) -> bool {
        let position = self.count.fetch_add(1, Ordering::Relaxed);
        let word = u64::from(chunk) | (position + 1) << 32;
        // Its last content was read, because no more chunks are out than there are words.
        self.words.at(self.shape.ret(position)).store(word, Ordering::Release);
        self.wakes_producer && self.is_due(WAKE_AT_RETURN, position + 1)
    }

    fn is_due(&self, word: usize, reached: u64) -> bool {
        fence(Ordering::SeqCst);
        let flag = self.words.at(word);
        // Only one of several threads wakes the producer.
        flag.load(Ordering::Relaxed) <= reached && flag.swap(NEVER, Ordering::Relaxed) <= reached
    }
}
