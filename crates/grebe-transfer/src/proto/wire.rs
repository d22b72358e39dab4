//! What packets say. `docs/transfer-protocol.md` has the tables.
//!
//! ```text
//!  datagram = header (9 bytes, authenticated) + frame (encrypted) + tag (16 bytes)
//! ```

mod feedback;
mod frame;
mod header;
mod held;
mod kind;
mod stamp;

pub use feedback::{Feedback, RunBytes, Train};
pub(crate) use frame::{DATA_HEADER_BYTES, data_header};
pub use frame::{Frame, Offer};
pub(crate) use header::expand_number;
pub use header::{HEADER_BYTES, Header, TAG_BYTES};
pub use held::HeldRanges;
pub use stamp::Stamp;
pub(crate) use stamp::{TRAIN_MARKS, decode_rtt, encode_rtt};

/// Bytes that IPv4 and UDP put before each datagram.
pub(crate) const UDP_IP_BYTES: usize = 28;

/// Bytes of a datagram that carries data, beside its payload.
pub(crate) const OVERHEAD_BYTES: usize = HEADER_BYTES + DATA_HEADER_BYTES + TAG_BYTES;

/// What may be sent before the receiver has said how much it takes.
pub(crate) const INITIAL_WINDOW_BYTES: u64 = 1 << 20;
