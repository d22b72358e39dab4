//! What samples are carried in: a pool of chunks, the lease on a chunk, a bounded ring, and a wake-up.
//!
//! This is the leaf of the workspace. It knows nothing of frames, sockets or stages; everything in it runs under
//! [loom](https://docs.rs/loom) (`RUSTFLAGS="--cfg loom" cargo test -p grebe-ring --test loom --release`).
//!
//! ```text
//!            acquire                 freeze               clone
//!   Pool  ------------>  ChunkMut  ---------->  Lease  ---------->  Lease ...
//!    ^                   (one writer)           (readers, any thread)  |
//!    |                                                                 | last drop
//!    +------------- free list, LIFO: the chunk still in cache first <--+
//! ```
//!
//! A chunk is written by one owner, then lent to any number of readers. Taking and giving back a chunk costs one
//! contended counter a *chunk*, never one a frame.

mod memory;
mod policy;
mod pool;
mod ring;
mod signal;
mod sync;

pub use memory::Memory;
pub use policy::{Policy, UnknownPolicy};
pub use pool::{ChunkMut, Import, Lease, Pool};
pub use ring::{Consumer, Overflow, Producer, ring};
pub use signal::Signal;
