//! Files over long distances: every byte, encrypted, at the path's rate, whatever the round trip and the loss.
mod error;
mod io;
mod proto;

pub use error::{Error, Result};
pub use grebe_packet::{Cancel, Purpose, Ticket};
pub use io::disk::source::Source;
pub use io::session::receive::{ReceiveListener, ReceiveOptions, receive};
pub use io::session::report::{Notice, ReceiveProgress, ReceiveReport, SendReport};
pub use io::session::send::{SendListener, SendOptions, send};
pub use proto::congestion::{Mode, Phase, PhaseCost};
pub use proto::sender::{Limit, SendCounters, SendProgress};
pub use proto::verdict::Verdict;

/// The protocol's core for this workspace's benchmarks, fuzz targets and tests. It may change in any release.
#[doc(hidden)]
pub mod internals {
    pub use crate::proto::handshake::{INIT_BYTES, Initiator, Responder, Role, Session};
    pub use crate::proto::index::{Entry, Index};
    pub use crate::proto::ranges::RangeSet;
    pub use crate::proto::received_packets::ReceivedPackets;
    pub use crate::proto::receiver::{Arrived, Receiver};
    pub use crate::proto::sender::{Sender, SenderOptions, Transmit};
    pub use crate::proto::sent_packets::Item;
    pub use crate::proto::wire::{
        Feedback, Frame, HEADER_BYTES, Header, HeldRanges, Offer, RunBytes, Stamp, TAG_BYTES, Train,
    };

    /// Transfers over an emulated path in virtual time.
    pub mod simulator {
        pub use crate::proto::simulator::{
            Congestion, Flow, FlowReport, Link, Path, TcpFlow, TcpReport, simulate, simulate_beside,
        };
    }
}
