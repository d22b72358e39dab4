//! A bounded ring between one producer and one consumer, in which the producer may evict.
//!
//! ```text
//!            head: next to pop            tail: next to push
//!              v                            v
//!   value    | p+0 | p+1 | p+2 | ... | p+n |     |      position modulo capacity
//! ```
//!
//! **Reject**: the classic ring of one producer and one consumer. Each side writes its own index and keeps a copy of the
//! other's, which it looks up again only where the copy says full or empty: while the ring is neither, no index crosses
//! between the cores.
//!
//! **Evict**: the head is claimed by either side, so each place has a stamp beside it: `position` says free, may be filled at
//! that position; `position + 1` says filled, may be claimed. A claim moves `head` first and frees the place (stamp = position +
//! capacity) only after the value is out, so that nothing is overwritten while it is claimed. This is Vyukov's bounded queue
//! with the multi-producer half left out.

use std::mem::MaybeUninit;

use crate::sync::{Apart, Arc, AtomicBool, AtomicUsize, Ordering, UnsafeCell};

/// What a full ring allows its producer to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// Nothing: the newest value is handed back. Only the consumer pops, without a read-modify-write.
    Reject,
    /// [`Producer::evict`] may take the oldest value; consumer and producer claim it by compare-and-swap.
    Evict,
}

/// A ring of at least `capacity` values (rounded up to a power of two, at least 2).
///
/// ```
/// use grebe_ring::{Overflow, ring};
///
/// let (mut tx, mut rx) = ring(2, Overflow::Evict);
/// assert_eq!((tx.push('a'), tx.push('b'), tx.push('c')), (Ok(()), Ok(()), Err('c')));
/// assert_eq!(tx.evict(), Some('a'));
/// assert_eq!(tx.push('c'), Ok(()));
/// drop(tx);
/// assert_eq!((rx.pop(), rx.pop(), rx.pop(), rx.is_closed()), (Some('b'), Some('c'), None, true));
/// ```
pub fn ring<T: Send>(capacity: usize, overflow: Overflow) -> (Producer<T>, Consumer<T>) {
    let capacity = capacity.max(2).next_power_of_two();
    let stamps = match overflow {
        Overflow::Reject => 0,
        Overflow::Evict => capacity,
    };
    let shared = Arc::new(Shared {
        values: (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
        stamps: (0..stamps).map(AtomicUsize::new).collect(),
        overflow,
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
    /// Hands the value back where the ring is full, also while the place's last value is being moved out.
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
        match self.shared.overflow {
            Overflow::Evict => self.has_room(),
            Overflow::Reject if self.tail.wrapping_sub(self.seen_head) < self.capacity() => true,
            Overflow::Reject => {
                self.seen_head = self.shared.head.0.load(Ordering::Acquire);
                self.tail.wrapping_sub(self.seen_head) < self.capacity()
            }
        }
    }

    /// Takes the oldest value out, unless the ring is empty or the consumer is faster.
    ///
    /// # Panics
    /// Where the ring was not made with [`Overflow::Evict`].
    pub fn evict(&mut self) -> Option<T> {
        assert_eq!(self.shared.overflow, Overflow::Evict, "a ring that rejects cannot evict");
        let mut position = self.shared.head.0.load(Ordering::Relaxed);
        self.shared.claim(&mut position)
    }

    /// Whether the next push fits.
    #[inline]
    pub fn has_room(&self) -> bool {
        match self.shared.overflow {
            Overflow::Evict => self.shared.stamp(self.tail) == self.tail,
            Overflow::Reject => {
                self.tail.wrapping_sub(self.shared.head.0.load(Ordering::Acquire)) < self.capacity()
            }
        }
    }

    /// How many values are queued (a moment ago).
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many values fit.
    pub fn capacity(&self) -> usize {
        self.shared.values.len()
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
        match self.shared.overflow {
            Overflow::Evict => {
                self.head = self.shared.head.0.load(Ordering::Relaxed);
                self.shared.claim(&mut self.head)
            }
            Overflow::Reject => {
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
        }
    }

    /// Whether a value waits.
    #[inline]
    pub fn has_value(&self) -> bool {
        match self.shared.overflow {
            Overflow::Evict => {
                let position = self.shared.head.0.load(Ordering::Relaxed);
                self.shared.stamp(position) == position.wrapping_add(1)
            }
            Overflow::Reject => self.shared.tail.0.load(Ordering::Acquire) != self.head,
        }
    }

    /// How many values are queued (a moment ago).
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many values fit.
    pub fn capacity(&self) -> usize {
        self.shared.values.len()
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
    values: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// One a place where the producer evicts; else none.
    stamps: Box<[AtomicUsize]>,
    overflow: Overflow,
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
        tail.wrapping_sub(self.head.0.load(Ordering::Relaxed)).min(self.values.len())
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
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Any sequence of operations behaves as a bounded deque does.
        #[test]
        fn behaves_as_a_bounded_deque(
            capacity in 1usize..9,
            evicts: bool,
            steps in prop::collection::vec(0u8..3, 0..200),
        ) {
            let (mut tx, mut rx) = ring(capacity, if evicts { Overflow::Evict } else { Overflow::Reject });
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
                prop_assert_eq!(rx.len(), model.len());
            }
        }
    }

    #[test]
    fn what_is_left_is_dropped_once() {
        for overflow in [Overflow::Reject, Overflow::Evict] {
            let token = std::sync::Arc::new(());
            let (mut tx, mut rx) = ring(4, overflow);
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
    fn across_threads_a_ring_that_rejects_loses_nothing() {
        let (mut tx, mut rx) = ring(8, Overflow::Reject);
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
        let (mut tx, mut rx) = ring(8, Overflow::Evict);
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
}
