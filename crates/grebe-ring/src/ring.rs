//! A bounded ring between one producer and one consumer, in which the producer may evict.
//!
//! ```text
//!            head: next to pop            tail: next to push
//!              v                            v
//!   value    | p+0 | p+1 | p+2 | ... | p+n |     |      position modulo capacity
//!   stamp    |p0+1 |p1+1 |p2+1 | ... |pn+1 | pt  |      only under `drop_oldest`
//! ```
//!
//! **`block` and `drop_latest`**: the classic ring of one producer and one consumer, in which only the consumer moves the head.
//! Each side writes its own index and keeps a copy of the other's, which it looks up again only where the copy says full or
//! empty: while the ring is neither, no index crosses between the cores.
//!
//! **`drop_oldest`**: the producer may evict, so either side moves the head, and each place has a stamp beside it: `position`
//! says free, may be filled at that position; `position + 1` says filled, may be claimed. Consumer and evictor claim a value
//! by moving the head with a compare-and-swap, and free its place (stamp = position + capacity) only after the value is out:
//! nothing is overwritten while it is claimed. This is Vyukov's bounded queue with the multi-producer half left out, and with
//! twice as many places as values may wait: a push that follows an eviction has a free place although the consumer is just
//! moving a value out of another.
//!
//! The ring itself neither waits nor counts: what a full ring means to its producer is up to the queue around it.

use std::mem::MaybeUninit;

use crate::policy::Policy;
use crate::sync::{Apart, Arc, AtomicBool, AtomicUsize, Ordering, UnsafeCell};

/// A ring of at least `capacity` values (rounded up to a power of two, at least 2). Under [`Policy::DropOldest`] its producer
/// may evict.
///
/// ```
/// use grebe_ring::{Policy, ring};
///
/// let (mut tx, mut rx) = ring(2, Policy::DropOldest);
/// assert_eq!((tx.push('a'), tx.push('b'), tx.push('c')), (Ok(()), Ok(()), Err('c')));
/// assert_eq!(tx.evict(), Some('a'));
/// assert_eq!(tx.push('c'), Ok(()));
/// drop(tx);
/// assert_eq!((rx.pop(), rx.pop(), rx.pop(), rx.is_closed()), (Some('b'), Some('c'), None, true));
/// ```
pub fn ring<T: Send>(capacity: usize, policy: Policy) -> (Producer<T>, Consumer<T>) {
    let capacity = capacity.max(2).next_power_of_two();
    let evicts = policy == Policy::DropOldest;
    let (places, stamps) = if evicts { (2 * capacity, 2 * capacity) } else { (capacity, 0) };
    let shared = Arc::new(Shared {
        capacity,
        values: (0..places).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
        stamps: (0..stamps).map(AtomicUsize::new).collect(),
        evicts,
        head: Apart(AtomicUsize::new(0)),
        tail: Apart(AtomicUsize::new(0)),
        producer_gone: AtomicBool::new(false),
        consumer_gone: AtomicBool::new(false),
    });
    (Producer { shared: shared.clone(), tail: 0, seen_head: 0 }, Consumer { shared, head: 0, seen_tail: 0 })
}

/// The end that pushes. Dropping it closes the ring: the consumer drains what is there.
#[derive(Debug)]
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
    tail: usize,
    /// Where the head was when it was last looked up; of no use where the producer evicts.
    seen_head: usize,
}

/// The end that pops. Dropping it frees what is queued once the producer is gone too.
#[derive(Debug)]
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    /// Where the next value is looked for; behind `shared.head` after the producer evicted.
    head: usize,
    /// Where the tail was when it was last looked up; of no use where the producer evicts.
    seen_tail: usize,
}

impl<T> Producer<T> {
    /// Appends a value.
    ///
    /// # Errors
    /// Hands the value back where the ring is full. A ring that evicts hands it back too while the consumer, inside one
    /// [`pop`](Consumer::pop), holds up a place for as long as it takes to push a whole ring more.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        if !self.finds_room() {
            return Err(value);
        }
        let place = self.shared.place(self.tail);
        // SAFETY: the place is free at this position (its stamp says so, or the head is past what it held; both Acquire), and
        // only this producer fills places.
        self.shared.values[place].with_mut(|place| unsafe { (*place).write(value) });
        let next = self.tail.wrapping_add(1);
        if let Some(stamp) = self.shared.stamps.get(place) {
            stamp.store(next, Ordering::Release);
        }
        self.tail = next;
        self.shared.tail.0.store(next, Ordering::Release);
        Ok(())
    }

    #[inline]
    fn finds_room(&mut self) -> bool {
        if self.shared.evicts {
            return self.has_room();
        }
        if self.tail.wrapping_sub(self.seen_head) < self.capacity() {
            return true;
        }
        self.seen_head = self.shared.head.0.load(Ordering::Acquire);
        self.tail.wrapping_sub(self.seen_head) < self.capacity()
    }

    /// Takes the oldest value out, unless the ring is empty or the consumer is faster.
    ///
    /// # Panics
    /// Where the ring was not made for [`Policy::DropOldest`].
    pub fn evict(&mut self) -> Option<T> {
        assert!(self.shared.evicts, "only under drop_oldest does the producer evict");
        let mut position = self.shared.head.0.load(Ordering::Relaxed);
        self.shared.claim(&mut position)
    }

    /// Whether the next push fits.
    #[inline]
    pub fn has_room(&self) -> bool {
        let has_room = self.tail.wrapping_sub(self.shared.head.0.load(Ordering::Acquire)) < self.capacity();
        has_room && (!self.shared.evicts || self.shared.stamp(self.tail) == self.tail)
    }

    /// Whether nothing was queued a moment ago.
    pub fn is_empty(&self) -> bool {
        self.shared.len() == 0
    }

    /// How many values fit.
    pub fn capacity(&self) -> usize {
        self.shared.capacity
    }

    /// Whether the consumer is gone, so that pushing is in vain.
    pub fn is_closed(&self) -> bool {
        self.shared.consumer_gone.load(Ordering::Acquire)
    }
}

impl<T> Consumer<T> {
    /// Takes the oldest value.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.shared.evicts {
            self.head = self.shared.head.0.load(Ordering::Relaxed);
            return self.shared.claim(&mut self.head);
        }
        let position = self.head;
        if position == self.seen_tail {
            self.seen_tail = self.shared.tail.0.load(Ordering::Acquire);
            if position == self.seen_tail {
                return None;
            }
        }
        let value = &self.shared.values[self.shared.place(position)];
        // SAFETY: the tail is past this position (Acquire), so that the value is there; only this consumer takes
        // values, and the producer fills the place again only once the head below is past it.
        let value = value.with(|place| unsafe { (*place).assume_init_read() });
        self.head = position.wrapping_add(1);
        self.shared.head.0.store(self.head, Ordering::Release);
        Some(value)
    }

    /// Whether a value waits.
    #[inline]
    pub fn has_value(&self) -> bool {
        if self.shared.evicts {
            let position = self.shared.head.0.load(Ordering::Relaxed);
            return self.shared.stamp(position) == position.wrapping_add(1);
        }
        self.shared.tail.0.load(Ordering::Acquire) != self.head
    }

    /// Whether the producer is gone. Values pushed before may still wait: pop until `None` after this said `true`.
    pub fn is_closed(&self) -> bool {
        self.shared.producer_gone.load(Ordering::Acquire)
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        self.shared.producer_gone.store(true, Ordering::Release);
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        self.shared.consumer_gone.store(true, Ordering::Release);
    }
}

#[derive(Debug)]
struct Shared<T> {
    /// Values that may wait. There are as many places, or twice as many where the producer evicts.
    capacity: usize,
    values: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// One per place where the producer evicts; else none.
    stamps: Box<[AtomicUsize]>,
    evicts: bool,
    head: Apart<AtomicUsize>,
    /// Where the producer evicts, for `len` alone.
    tail: Apart<AtomicUsize>,
    producer_gone: AtomicBool,
    consumer_gone: AtomicBool,
}

impl<T> Shared<T> {
    #[inline]
    fn place(&self, position: usize) -> usize {
        position & (self.values.len() - 1)
    }

    #[inline]
    fn stamp(&self, position: usize) -> usize {
        self.stamps[self.place(position)].load(Ordering::Acquire)
    }

    fn len(&self) -> usize {
        let tail = self.tail.0.load(Ordering::Relaxed);
        tail.wrapping_sub(self.head.0.load(Ordering::Relaxed)).min(self.capacity)
    }

    /// Claims the value at the head for the caller alone, consumer and evictor alike.
    fn claim(&self, position: &mut usize) -> Option<T> {
        loop {
            let next = position.wrapping_add(1);
            if self.stamp(*position) != next {
                // Empty, or claimed by the other side between the two loads: look again only where the head moved.
                let head = self.head.0.load(Ordering::Relaxed);
                if head == *position {
                    return None;
                }
                *position = head;
                continue;
            }
            match self.head.0.compare_exchange_weak(*position, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    let value = self.take(*position);
                    *position = next;
                    return Some(value);
                }
                Err(head) => *position = head,
            }
        }
    }

    /// Moves the value of a claimed position out and frees its place.
    #[inline]
    fn take(&self, position: usize) -> T {
        let place = self.place(position);
        // SAFETY: the caller saw the stamp of a filled place (Acquire) and moved the head past it, so that nobody else
        // takes it; the producer does not fill it again before the stamp below.
        let value = self.values[place].with(|place| unsafe { (*place).assume_init_read() });
        self.stamps[place].store(position.wrapping_add(self.values.len()), Ordering::Release);
        value
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let tail = self.tail.0.load(Ordering::Relaxed);
        let mut position = self.head.0.load(Ordering::Relaxed);
        while position != tail {
            // SAFETY: both ends are gone (the last of them brought us here): what lies between head and tail was pushed, and
            // neither popped nor evicted.
            self.values[self.place(position)].with_mut(|place| unsafe { (*place).assume_init_drop() });
            position = position.wrapping_add(1);
        }
    }
}

// SAFETY: values cross from the producer's thread to the consumer's, each place accessed by whoever its stamp,
// or head and tail, name.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

#[cfg(all(test, not(loom)))]
mod tests;
