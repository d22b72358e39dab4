//! Benchmarks of grebe's ways to move samples.
//!
//! A number without its baseline is not a result: every run prints the machine's mood before and after ([`canary`]), the
//! same scenario over the plainest technique measured in between, the ratio of the two, and the loss. Every frame is checked
//! for being the right one, on both sides of every comparison.
#![forbid(unsafe_code)]

pub mod canary;
mod clock;
mod error;
pub mod flow;
pub mod shm;
pub mod transfer;
pub mod udp;

pub use error::{Error, Result};
