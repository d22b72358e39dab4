//! What can this path carry?
#![forbid(unsafe_code)]

mod error;
mod interval;
mod key;
mod replay;
mod search;
#[cfg(test)]
mod simulated;
mod tracker;
mod train;
mod wire;

pub use error::{Error, Result};
pub use interval::{Estimate, mean, quantile, share};
pub use key::{Key, Ticket};
pub use search::{BaseLoss, Found, Limit, Search, Step, Trial, judge};
pub use tracker::{Summary, Tracker};
pub use train::{Train, packet_bits};
