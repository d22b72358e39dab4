//! Files over long distances: every byte, encrypted, at the path's rate, whatever the round trip and the loss.
mod error;
mod io;
mod proto;

pub use error::{Error, Result};
pub use io::{
    Arrival, Cancel, Notice, ReceiveListener, ReceiveOptions, Received, SendListener, SendOptions,
    SendReport, Source, receive, send,
};
pub use proto::arrivals::{Arrivals, RunsDown};
pub use proto::congestion::{Mode, Phase, PhaseCost};
pub use proto::flight::Item;
pub use proto::handshake::{INIT_BYTES, Initiator, REPLY_BYTES, Responder, Role, Session};
pub use proto::index::{Entry, INDEX_BYTES_MAX, Index};
pub use proto::ranges::RangeSet;
pub use proto::receiver::{Arrived, Receiver};
pub use proto::seal::{Opener, Sealer};
pub use proto::sender::{Limit, Progress, Sender, SenderCounters, SenderOptions, Transmit};
pub use proto::ticket::{Key, Ticket};
pub use proto::{sim, wire};
