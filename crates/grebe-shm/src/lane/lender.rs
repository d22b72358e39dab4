//! Producer's end of a lane.

use grebe_ring::Policy;

use super::layout::{
    CONSUMER_SLEEPS, CUT_OFF, DROPPED, Descriptor, END_HEADER, ENDED, ENDED_WITH_HEADER, HEAD, NEVER, STATE,
    Shape, TAIL, Violation, WAKE_AT_HEAD, WAKE_AT_RETURN,
};
use crate::sync::{Ordering, Words, fence};

/// Producer's end. `L` is the lease that keeps a chunk from being reused. Drop it only after the consumer has
/// hung up, because the consumer may read its chunks until then.
#[derive(Debug)]
pub(crate) struct Lender<L> {
    words: Words,
    shape: Shape,
    policy: Policy,
    quota: u32,
    tail: u64,
    /// Last known head; never moves back.
    head: u64,
    /// Chunk at each position of the queue.
    queued: Box<[u32]>,
    /// Lent chunks, by index.
    lent: Box<[Option<Lent<L>>]>,
    out: u32,
    returned: u64,
    /// Flags set so far; each allows at most one wake-up.
    armed: u64,
}

#[derive(Debug)]
struct Lent<L> {
    lease: L,
    position: u64,
}

/// Result of offering a lease.
#[derive(Debug)]
#[must_use]
pub(crate) enum Offer<L> {
    /// Queued; under `drop_oldest` possibly at the cost of an older one.
    Queued(Option<L>),
    /// Dropped.
    Dropped(L),
    /// Returned: the lane is full and the policy is to wait.
    Full(L),
}

impl<L> Lender<L> {
    /// Makes an empty lane in zeroed `words`, for a pool of `chunks`.
    pub(crate) fn new(words: Words, shape: Shape, policy: Policy, quota: u32, chunks: u32) -> Self {
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
    pub(crate) fn offer(&mut self, lease: L, what: Descriptor) -> Result<Offer<L>, Violation> {
        self.refresh()?;
        if self.has_room() {
            return Ok(self.push(lease, what));
        }
        match self.policy {
            Policy::Block => Ok(Offer::Full(lease)),
            Policy::DropLatest => Ok(Offer::Dropped(lease)),
            Policy::DropOldest => {
                let mut evicted = None;
                // Terminates: each turn moves the head, and nothing is queued meanwhile.
                while !self.has_room() {
                    if self.head == self.tail {
                        // The consumer holds its whole quota, and evicting cannot make room.
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

    /// Takes returned chunks and passes each to `home`. Returns their number.
    pub(crate) fn reap(&mut self, mut home: impl FnMut(L)) -> Result<u32, Violation> {
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
                self.refresh()?;
                if position >= self.head {
                    return Err(Violation::NotTaken { chunk });
                }
            }
            self.returned += 1;
            home(self.release(chunk).ok_or(not_lent)?);
            count += 1;
        }
    }

    /// Reads the consumer's head.
    pub(crate) fn refresh(&mut self) -> Result<(), Violation> {
        let head = self.words.at(HEAD).load(Ordering::Acquire);
        if head.wrapping_sub(self.head) > self.tail - self.head {
            return Err(Violation::Head { head });
        }
        self.head = head;
        Ok(())
    }

    /// Whether the next offer fits, by the last known head.
    pub(crate) fn has_room(&self) -> bool {
        self.tail - self.head < self.shape.queue && self.out < self.quota
    }

    /// Whether the consumer sleeps and must be woken. Call it after queueing an offer.
    #[inline]
    pub(crate) fn must_wake(&self) -> bool {
        fence(Ordering::SeqCst);
        let flag = self.words.at(CONSUMER_SLEEPS);
        flag.load(Ordering::Relaxed) != 0 && {
            flag.store(0, Ordering::Relaxed);
            true
        }
    }

    /// Requests a wake-up once there is room for a while. Then call [`refresh`](Self::look) and try once more.
    pub(crate) fn arm(&mut self) {
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

    /// Cancels the request. A wake-up may be in transit.
    pub(crate) fn disarm(&self) {
        self.words.at(WAKE_AT_HEAD).store(NEVER, Ordering::Relaxed);
        self.words.at(WAKE_AT_RETURN).store(NEVER, Ordering::Relaxed);
    }

    /// Counts a wake-up.
    pub(crate) fn woken(&mut self) -> Result<(), Violation> {
        self.armed = self.armed.checked_sub(1).ok_or(Violation::WakeUp)?;
        Ok(())
    }

    /// Ends the stream, with its final header if there is one.
    pub(crate) fn end(&self, header: Option<&[u8; 64]>) {
        if let Some(header) = header {
            for (index, bytes) in header.chunks_exact(8).enumerate() {
                let word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
                self.words.at(END_HEADER + index).store(word, Ordering::Relaxed);
            }
        }
        let state = if header.is_some() { ENDED_WITH_HEADER } else { ENDED };
        self.words.at(STATE).store(state, Ordering::Release);
    }

    /// Cuts the consumer off: it takes nothing more. Its chunks stay lent as long as the lender exists.
    pub(crate) fn cut_off(&self) {
        self.words.at(STATE).store(CUT_OFF, Ordering::Release);
    }

    /// Updates the consumer's count of frames dropped for it.
    pub(crate) fn say_dropped(&self, frames: u64) {
        self.words.at(DROPPED).store(frames, Ordering::Relaxed);
    }

    /// Chunks out: queued, or held by the consumer.
    pub(crate) fn out(&self) -> u32 {
        self.out
    }

    /// Queued chunks, by the last known head.
    pub(crate) fn queued(&self) -> u32 {
        (self.tail - self.head) as u32
    }

    fn push(&mut self, lease: L, what: Descriptor) -> Offer<L> {
        let Some(place @ None) = self.lent.get_mut(what.chunk as usize) else {
            // No such chunk, or offered twice: a chunk that is out cannot be lent again.
            return Offer::Dropped(lease);
        };
        *place = Some(Lent { lease, position: self.tail });
        self.out += 1;
        let slot = self.shape.slot(self.tail);
        self.queued[(self.tail & (self.shape.queue - 1)) as usize] = what.chunk;
        let [one, two] = what.words();
        // The head is past the slot's last content (`has_room`), seen with Acquire, so its claimer has read
        // it.
        self.words.at(slot).store(one, Ordering::Relaxed);
        self.words.at(slot + 1).store(two, Ordering::Relaxed);
        self.tail += 1;
        self.words.at(TAIL).store(self.tail, Ordering::Release);
        Offer::Queued(None)
    }

    /// Claims the oldest queued descriptor; `None` if the consumer was faster.
    fn evict(&mut self) -> Result<Option<L>, Violation> {
        let claim = self.words.at(HEAD).compare_exchange(
            self.head,
            self.head + 1,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if claim.is_err() {
            let before = self.head;
            self.refresh()?;
            // Otherwise this would retry for ever.
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
