//! Files over long distances: every byte, encrypted, at the path's rate, whatever the round trip and the loss.
mod arrivals;
mod error;
mod filter;
mod flight;
mod ranges;
mod rate;
mod receiver;
mod sender;
pub mod sim;
pub mod wire;

pub use arrivals::{Arrivals, RunsDown};
pub use error::{Error, Result};
pub use flight::Item;
pub use ranges::RangeSet;
pub use rate::{Mode, Phase, PhaseCost};
pub use receiver::{Arrived, Receiver};
pub use sender::{Limit, Progress, Sender, SenderCounters, SenderOptions, Transmit};
