//! What packets say. `docs/transfer-protocol.md` has the tables.
//!
//! ```text
//!  datagram = header (9 bytes, authenticated) + frame (encrypted) + tag (16 bytes)
//! ```

mod feedback;
mod frame;
mod header;

pub use self::{
    feedback::{Feedback, ReceivedPackets, RunBytes, Train},
    frame::{Frame, HeldRanges, Offer, Verdict},
    header::{HEADER_BYTES, Header, Stamp, TAG_BYTES},
};
pub(crate) use self::{
    frame::{DATA_HEADER_BYTES, data_header},
    header::{TRAIN_MARKS, decode_rtt, encode_rtt, expand_number},
};

/// Bytes that IPv4 and UDP put before each datagram.
pub(crate) const UDP_IP_BYTES: usize = 28;

/// Bytes of a datagram that carries data, beside its payload.
pub(crate) const OVERHEAD_BYTES: usize = HEADER_BYTES + DATA_HEADER_BYTES + TAG_BYTES;

/// What may be sent before the receiver has said how much it takes.
pub(crate) const INITIAL_WINDOW_BYTES: u64 = 1 << 20;

/// For how long a peer that was there may be silent.
pub(crate) const SILENCE_US_MAX: u64 = 60_000_000;
