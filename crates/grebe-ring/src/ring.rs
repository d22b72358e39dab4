//! A bounded ring between one producer and one consumer, in which the producer may evict.
//!
//! ```text
//!             head: next to pop (claimed by consumer, and by the producer when it evicts)
//!               v
//!   slot   | p+0 | p+1 | p+2 | ... | p+n |      stamp = position      free, may be filled at that position
//!                             ^                 stamp = position + 1  filled, may be claimed
//!                           tail: next to push
//! ```
//!
//! A claim moves `head` first and frees the slot (stamp = position + capacity) only after the value is out, so that
//! nothing is overwritten while it is claimed. This is Vyukov's bounded queue with the multi-producer half left out,
//! and without any contended read-modify-write where the producer does not evict.

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
    let slots = (0..capacity)
        .map(|position| Slot {
            stamp: AtomicUsize::new(position),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        })
        .collect();
    let shared = Arc::new(Shared {
        slots,
        overflow,
        head: Apart(AtomicUsize::new(0)),
        tail: Apart(AtomicUsize::new(0)),
        producer_gone: AtomicBool::new(false),
        consumer_gone: AtomicBool::new(false),
    });
    (Producer { shared: shared.clone(), tail: 0 }, Consumer { shared, head: 0 })
}

/// The end that pushes. Dropping it closes the ring: the consumer drains what is there.
#[derive(Debug)]
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
    tail: usize,
}

/// The end that pops. Dropping it frees what is queued once the producer is gone too.
#[derive(Debug)]
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    /// Where the next value is looked for; behind `shared.head` after the producer evicted.
    head: usize,
}

impl<T> Producer<T> {
    /// Appends a value.
    ///
    /// # Errors
    /// Hands the value back where the ring is full, also while the slot's last value is being moved out.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        let slot = self.shared.slot(self.tail);
        if slot.stamp.load(Ordering::Acquire) != self.tail {
            return Err(value);
        }
        // SAFETY: the stamp says that the slot is free at this position, and only this producer fills slots.
        slot.value.with_mut(|place| unsafe { (*place).write(value) });
        slot.stamp.store(self.tail.wrapping_add(1), Ordering::Release);
        self.tail = self.tail.wrapping_add(1);
        self.shared.tail.0.store(self.tail, Ordering::Relaxed);
        Ok(())
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
        self.shared.slot(self.tail).stamp.load(Ordering::Acquire) == self.tail
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
        self.shared.slots.len()
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
                let slot = self.shared.slot(position);
                if slot.stamp.load(Ordering::Acquire) != position.wrapping_add(1) {
                    return None;
                }
                self.head = position.wrapping_add(1);
                self.shared.head.0.store(self.head, Ordering::Relaxed);
                Some(self.shared.take(position))
            }
        }
    }

    /// Whether a value waits.
    #[inline]
    pub fn has_value(&self) -> bool {
        let position = self.shared.head.0.load(Ordering::Relaxed);
        self.shared.slot(position).stamp.load(Ordering::Acquire) == position.wrapping_add(1)
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
        self.shared.slots.len()
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
    slots: Box<[Slot<T>]>,
    overflow: Overflow,
    head: Apart<AtomicUsize>,
    /// For `len` alone: the producer works from its own copy.
    tail: Apart<AtomicUsize>,
    producer_gone: AtomicBool,
    consumer_gone: AtomicBool,
}

#[derive(Debug)]
struct Slot<T> {
    stamp: AtomicUsize,
    value: UnsafeCell<MaybeUninit<T>>,
}

impl<T> Shared<T> {
    #[inline]
    fn slot(&self, position: usize) -> &Slot<T> {
        &self.slots[position & (self.slots.len() - 1)]
    }

    fn len(&self) -> usize {
        let tail = self.tail.0.load(Ordering::Relaxed);
        tail.wrapping_sub(self.head.0.load(Ordering::Relaxed)).min(self.slots.len())
    }

    /// Claims the value at the head for the caller alone, consumer and evictor alike.
    fn claim(&self, position: &mut usize) -> Option<T> {
        loop {
            let next = position.wrapping_add(1);
            if self.slot(*position).stamp.load(Ordering::Acquire) != next {
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

    /// Moves the value of a claimed position out and frees its slot.
    #[inline]
    fn take(&self, position: usize) -> T {
        let slot = self.slot(position);
        // SAFETY: the caller saw the stamp of a filled slot (Acquire) and moved the head past it, so that nobody else
        // takes it; the producer does not fill it again before the stamp below.
        let value = slot.value.with(|place| unsafe { (*place).assume_init_read() });
        slot.stamp.store(position.wrapping_add(self.slots.len()), Ordering::Release);
        value
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let mut position = self.head.0.load(Ordering::Relaxed);
        while self.slot(position).stamp.load(Ordering::Relaxed) == position.wrapping_add(1) {
            drop(self.take(position));
            position = position.wrapping_add(1);
        }
    }
}

// SAFETY: values cross from the producer's thread to the consumer's, each slot accessed by whoever its stamp names.
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
        fn behaves_as_a_bounded_deque(capacity in 1usize..9, steps in prop::collection::vec(0u8..3, 0..200)) {
            let (mut tx, mut rx) = ring(capacity, Overflow::Evict);
            let mut model = VecDeque::new();
            for (value, step) in steps.into_iter().enumerate() {
                match step {
                    0 => {
                        let fits = model.len() < tx.capacity();
                        prop_assert_eq!(tx.has_room(), fits);
                        prop_assert_eq!(tx.push(value).is_ok(), fits);
                        if fits { model.push_back(value) }
                    }
                    1 => prop_assert_eq!(tx.evict(), model.pop_front()),
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
        let token = std::sync::Arc::new(());
        let (mut tx, mut rx) = ring(4, Overflow::Reject);
        for _ in 0..3 {
            tx.push(token.clone()).unwrap();
        }
        drop(rx.pop());
        assert_eq!(std::sync::Arc::strong_count(&token), 3);
        drop((tx, rx));
        assert_eq!(std::sync::Arc::strong_count(&token), 1);
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
