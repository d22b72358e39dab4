//! Files over long distances: every byte, encrypted, at the path's rate, whatever the round trip and the loss.
mod arrivals;
mod error;
mod filter;
mod flight;
mod handshake;
mod index;
mod io;
mod ranges;
mod rate;
mod receiver;
mod seal;
mod sender;
pub mod sim;
mod spacing;
mod ticket;
pub mod wire;

pub use arrivals::{Arrivals, RunsDown};
pub use error::{Error, Result};
pub use flight::Item;
pub use handshake::{INIT_BYTES, Initiator, REPLY_BYTES, Responder, Role, Session};
pub use index::{Entry, INDEX_BYTES_MAX, Index};
pub use io::{
    Arrival, Cancel, Notice, ReceiveListener, ReceiveOptions, Received, SendListener, SendOptions,
    SendReport, Source, receive, send,
};
pub use ranges::RangeSet;
pub use rate::{Mode, Phase, PhaseCost};
pub use receiver::{Arrived, Receiver};
pub use seal::{Opener, Sealer};
pub use sender::{Limit, Progress, Sender, SenderCounters, SenderOptions, Transmit};
pub use ticket::{Key, Ticket};
