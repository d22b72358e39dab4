//! Bounded ring between one producer and one consumer, with optional eviction by the producer.
//!
//! ```text
//!            head: next to pop            tail: next to push
//!              v                            v
//!   value    | p+0 | p+1 | p+2 | ... | p+n |     |      position modulo capacity
//!   stamp    |p0+1 |p1+1 |p2+1 | ... |pn+1 | pt  |      only under `drop_oldest`
//! ```
//!
//! **`block` and `drop_latest`**: the classic single-producer, single-consumer ring, in which only the
//! consumer moves the head. Each side writes its own index and keeps a copy of the other's. It refreshes the
//! copy only when that says full or empty. While the ring is neither, no index crosses between the cores.
//!
//! **`drop_oldest`**: the producer may evict, so either side moves the head, and each place has a stamp.
//! `position` means free, to be filled at that position. `position + 1` means filled, to be claimed. Consumer
//! and evictor claim a value by moving the head with a compare-and-swap. They free its place (stamp =
//! position + capacity) only after moving the value out, so nothing is overwritten while it is claimed. This
//! is Vyukov's bounded queue without the multi-producer half. It has twice as many places as values. So a
//! push after an eviction finds a free place even while the consumer moves a value out of another.
//!
//! The ring itself neither waits nor counts. The queue around it decides what happens when it is full.

use std::mem::MaybeUninit;

use crate::policy::Policy;
use crate::sync::{Arc, AtomicBool, AtomicUsize, CachePadded, Ordering, UnsafeCell};

/// Makes a ring for at least `capacity` values (rounded up to a power of two, at least 2). Under
/// [`Policy::DropOldest`] its producer may evict.
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
        head: CachePadded(AtomicUsize::new(0)),
        tail: CachePadded(AtomicUsize::new(0)),
        producer_gone: AtomicBool::new(false),
        consumer_gone: AtomicBool::new(false),
    });
    (Producer { shared: shared.clone(), tail: 0, seen_head: 0 }, Consumer { shared, head: 0, seen_tail: 0 })
}

/// Producer's end. Dropping it closes the ring: the consumer drains the remaining values.
#[derive(Debug)]
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
    tail: usize,
    /// Last known head; unused if the producer evicts.
    seen_head: usize,
}

/// Consumer's end. After both ends are dropped, remaining values are freed.
#[derive(Debug)]
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    /// Position of the next value; behind `shared.head` after an eviction.
    head: usize,
    /// Last known tail; unused if the producer evicts.
    seen_tail: usize,
}

impl<T> Producer<T> {
    /// Appends a value.
    ///
    /// # Errors
    /// Returns the value if the ring is full. An evicting ring also returns it while the consumer, inside one
    /// [`pop`](Consumer::pop), occupies a place for the time of a whole ring of pushes.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        if !self.finds_room() {
            return Err(value);
        }
        let place = self.shared.place(self.tail);
        // SAFETY: the place is free at this position (its stamp says so, or the head is past its content;
        // both Acquire), and only this producer fills places.
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

    /// Removes the oldest value, unless the ring is empty or the consumer is faster.
    ///
    /// # Panics
    /// If the ring was not made for [`Policy::DropOldest`].
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

    /// Whether the ring was empty a moment ago.
    pub fn is_empty(&self) -> bool {
        self.shared.len() == 0
    }

    /// Maximum number of values.
    pub fn capacity(&self) -> usize {
        self.shared.capacity
    }

    /// Whether the consumer is gone, so that pushing is useless.
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
        // SAFETY: the tail is past this position (Acquire), so the value exists. Only this consumer takes
        // values, and the producer refills the place only once the head below is past it.
        let value = value.with(|place| unsafe { (*place).assume_init_read() });
        self.head = position.wrapping_add(1);
        self.shared.head.0.store(self.head, Ordering::Release);
        Some(value)
    }

    /// Whether a value is queued.
    #[inline]
    pub fn has_value(&self) -> bool {
        if self.shared.evicts {
            let position = self.shared.head.0.load(Ordering::Relaxed);
            return self.shared.stamp(position) == position.wrapping_add(1);
        }
        self.shared.tail.0.load(Ordering::Acquire) != self.head
    }

    /// Whether the producer is gone. Earlier values may still be queued: after `true`, pop until `None`.
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
    /// Maximum number of values. There are as many places, or twice as many if the producer evicts.
    capacity: usize,
    values: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// One per place if the producer evicts; otherwise empty.
    stamps: Box<[AtomicUsize]>,
    evicts: bool,
    head: CachePadded<AtomicUsize>,
    /// If the producer evicts, only for `len`.
    tail: CachePadded<AtomicUsize>,
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

    /// Claims the value at the head, for consumer and evictor alike.
    fn claim(&self, position: &mut usize) -> Option<T> {
        loop {
            let next = position.wrapping_add(1);
            if self.stamp(*position) != next {
                // Empty, or claimed by the other side between the two loads: retry only if the head moved.
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
        // SAFETY: the caller saw the stamp of a filled place (Acquire) and moved the head past it, so nobody
        // else takes it. The producer does not refill it before the stamp below.
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
            // SAFETY: both ends are gone (the last one called this), so the values between head and tail were
            // pushed, and neither popped nor evicted.
            self.values[self.place(position)].with_mut(|place| unsafe { (*place).assume_init_drop() });
            position = position.wrapping_add(1);
        }
    }
}

// SAFETY: values cross from the producer's thread to the consumer's. Stamps, or head and tail, name the side
// that accesses a place.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

#[cfg(all(test, not(loom)))]
mod tests;
