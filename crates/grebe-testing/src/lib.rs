//! Shared helpers of tests and benches: a counting allocator, seeded random numbers, and streams.
//!
//! ```
//! use grebe_testing::{CountingAllocator, allocations_of_this_thread};
//!
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator;
//!
//! let before = allocations_of_this_thread();
//! drop(vec![1_u8; 100]);
//! assert_eq!(allocations_of_this_thread() - before, 1);
//! ```

#![deny(unsafe_code)]

pub mod stream;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Random numbers: the same seed gives the same numbers on every machine.
pub use fastrand::Rng;

/// The system's allocator with a counter. A test makes it its `#[global_allocator]`.
pub struct CountingAllocator;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static ALLOCATIONS_OF_THIS_THREAD: Cell<u64> = const { Cell::new(0) };
    /// Held now, the most since the peak was forgotten, and held then.
    static HELD_BYTES_OF_THIS_THREAD: Cell<(i64, i64, i64)> = const { Cell::new((0, 0, 0)) };
}

/// Allocations and reallocations of every thread since the program began.
pub fn allocations() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// Allocations and reallocations of the calling thread since it began. Other tests of the program do not disturb it.
pub fn allocations_of_this_thread() -> u64 {
    ALLOCATIONS_OF_THIS_THREAD.with(Cell::get)
}

/// Peak of the bytes held by the calling thread since `forget_peak_of_this_thread`: allocated minus freed. Memory that
/// another thread frees for it still counts.
pub fn peak_bytes_of_this_thread() -> u64 {
    HELD_BYTES_OF_THIS_THREAD.with(|held| {
        let (_, peak, from) = held.get();
        peak.saturating_sub(from).max(0) as u64
    })
}

/// Starts a new count of [`peak_bytes_of_this_thread`], beyond the bytes held now.
pub fn forget_peak_of_this_thread() {
    HELD_BYTES_OF_THIS_THREAD.with(|held| {
        let (now, ..) = held.get();
        held.set((now, now, now));
    });
}

fn hold(bytes: i64) {
    // A thread that is ending may free and allocate after its own values are gone.
    let _ = HELD_BYTES_OF_THIS_THREAD.try_with(|held| {
        let (now, peak, from) = held.get();
        let now = now.saturating_add(bytes);
        held.set((now, peak.max(now), from));
    });
}

fn count() {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    // A thread that is ending may free and allocate after its own values are gone.
    let _ = ALLOCATIONS_OF_THIS_THREAD.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call is handed to the system's allocator unchanged; counting touches none of its memory.
#[allow(unsafe_code, reason = "what an allocator is")]
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        hold(layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        hold(layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        hold(bytes as i64 - layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(memory, layout, bytes) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        hold(-(layout.size() as i64));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}
