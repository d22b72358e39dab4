//! The sending half of a transfer, without sockets, threads or a clock of its own.
//!
//! `state` holds what the sender knows; `transmit` chooses the next packet from it, `feedback` changes it by what the receiver
//! reports. The controller in `congestion` answers how fast to send and how much may be in flight.

mod datagram_sizes;
mod feedback;
mod progress;
mod state;
mod trains;
mod transmit;

pub use self::{
    progress::{Limit, SendCounters, SendProgress, SenderOptions},
    state::Sender,
    transmit::Transmit,
};
