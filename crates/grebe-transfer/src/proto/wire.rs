//! What packets say. `docs/transfer-protocol.md` has the tables.
//!
//! ```text
//!  datagram = header (9 bytes, authenticated) + frame (encrypted) + tag (16 bytes)
//! ```

mod feedback;
mod frame;
mod header;

pub(crate) use self::feedback::TRAIN_US_MAX;
pub use self::{
    feedback::{Feedback, ReceivedPackets, RunBytes, Train},
    frame::{Frame, Verdict},
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

/// The most that a receiver lets a sender run ahead of the first missing byte: it may have to hold as much in
/// memory. A path of 10 Gbit/s and 400 ms needs as much.
pub(crate) const WINDOW_BYTES_MAX: u64 = 1 << 30;

/// The most that a sender runs ahead of the first byte that is not confirmed, and has in flight, whatever the receiver says.
pub(crate) const SENT_AHEAD_BYTES_MAX: u64 = 4 << 30;
pub(crate) const IN_FLIGHT_BYTES_MAX: u64 = 1 << 30;

/// Bytes that the stream of a connection cannot have: its length is not known yet.
pub(crate) const STREAM_BYTES_MAX: u64 = (1 << 48) - 1;

/// For how long a peer that was there may be silent.
pub(crate) const SILENCE_US_MAX: u64 = 60_000_000;

/// The receiver reports eight times per round trip, and at least this often.
pub(crate) const REPORT_INTERVAL_US_MAX: u64 = 25_000;

/// How often the receiver reports on a path with this round trip.
pub(crate) fn report_interval_us(rtt_us: u64) -> u64 {
    (rtt_us / 8).clamp(1_000, REPORT_INTERVAL_US_MAX)
}
