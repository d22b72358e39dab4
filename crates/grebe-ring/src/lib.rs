//! Memory and wake-ups for samples: a pool of chunks, leases on chunks, a bounded ring, and a signal.
//!
//! This crate is the leaf of the workspace, without frames, sockets or stages. All of it runs under
//! [loom](https://docs.rs/loom), which tries every interleaving of two threads (`RUSTFLAGS="--cfg loom" cargo
//! test -p grebe-ring --test loom --release`).
//!
//! ```text
//!            acquire                 freeze               clone
//!   Pool  ------------>  ChunkMut  ---------->  Lease  ---------->  Lease ...
//!    ^                   (one writer)           (readers, any thread)  |
//!    |                                                                 | last drop
//!    +------------- free list, LIFO: the chunk still in cache first <--+
//! ```
//!
//! One owner writes a chunk and then lends it to any number of readers. Taking a chunk and giving it back
//! costs one contended counter per *chunk*, never one per frame. Nothing is allocated once the pool exists. A
//! [`ring()`] passes leases from one thread to the next. A [`Signal`] wakes the thread that waits at either
//! end.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use grebe_ring::{Lease, Policy, Pool, Signal, ring};
//!
//! let mut pool = Pool::new(4, 64, || ());
//! let (mut tx, mut rx) = ring::<Lease<()>>(4, Policy::Block);
//! let (wake_consumer, wake_producer) = (Arc::new(Signal::new()), Arc::new(Signal::new()));
//! // The producer sleeps when all chunks are lent, and is woken by the lease that is dropped last.
//! pool.wake_on_return(wake_producer.clone());
//!
//! let signal = wake_consumer.clone();
//! let consumer = std::thread::spawn(move || {
//!     let mut sum = 0;
//!     loop {
//!         signal.wait(Duration::from_secs(1), || rx.has_value() || rx.is_closed());
//!         let is_closed = rx.is_closed();
//!         match rx.pop() {
//!             Some(lease) => sum += u32::from(lease.bytes()[0]),
//!             None if is_closed => return sum,
//!             None => {}
//!         }
//!     }
//! });
//!
//! for value in 0..100 {
//!     let mut chunk = loop {
//!         wake_producer.wait(Duration::from_secs(1), || pool.has_free());
//!         if let Some(chunk) = pool.acquire() {
//!             break chunk;
//!         }
//!     };
//!     chunk.bytes_mut()[0] = value;
//!     tx.push(chunk.freeze()).expect("the ring holds as many leases as there are chunks");
//!     wake_consumer.notify();
//! }
//! drop(tx);
//! wake_consumer.notify();
//! assert_eq!(consumer.join().unwrap(), (0..100).sum());
//! ```
#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "owns raw memory")]
mod memory;
mod policy;
#[allow(unsafe_code, reason = "hands out references into raw memory, counted by hand")]
mod pool;
#[allow(unsafe_code, reason = "moves values into and out of places that two threads share")]
mod ring;
mod signal;
mod sync;

pub use memory::{Memory, MemoryMut};
pub use policy::{Policy, UnknownPolicy};
pub use pool::{ChunkMut, Lease, Pool, TrustedImport};
pub use ring::{Consumer, Producer, ring};
pub use signal::{Cancel, Signal};

/// The examples of README.md run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
