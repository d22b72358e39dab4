//! Wire format of packets. `docs/transfer-protocol.md` has the tables.
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
    frame::Frame,
    header::{HEADER_BYTES, Header, Stamp, TAG_BYTES},
};
pub(crate) use self::{
    frame::{DATA_HEADER_BYTES, data_header},
    header::{TRAIN_MARKS, decode_rtt, encode_rtt, expand_number},
};
pub use crate::error::Verdict;

/// Bytes of IPv4 and UDP headers per datagram.
pub const UDP_IP_BYTES: usize = 28;

/// Overhead of a data packet beside its payload.
pub(crate) const OVERHEAD_BYTES: usize = HEADER_BYTES + DATA_HEADER_BYTES + TAG_BYTES;

/// Window before the first report of the receiver.
pub(crate) const INITIAL_WINDOW_BYTES: u64 = 1 << 20;

/// Maximum receive window beyond the first missing byte, because the receiver may have to hold as much in
/// memory. A path of 10 Gbit/s and 400 ms needs this much.
pub(crate) const WINDOW_BYTES_MAX: u64 = 1 << 30;

/// Maximum bytes beyond the first unconfirmed byte, whatever the receiver says.
pub(crate) const SENT_AHEAD_BYTES_MAX: u64 = 4 << 30;
pub(crate) const IN_FLIGHT_BYTES_MAX: u64 = 1 << 30;

/// Exceeds any possible stream of a connection, and stands for an unknown length.
pub(crate) const STREAM_BYTES_MAX: u64 = (1 << 48) - 1;

/// Maximum silence of a peer that has answered once.
pub(crate) const SILENCE_US_MAX: u64 = 60_000_000;

/// Maximum report interval. Usually the receiver reports eight times per round trip.
pub(crate) const REPORT_INTERVAL_US_MAX: u64 = 25_000;

/// Report interval of the receiver on a path with this round trip.
pub(crate) fn report_interval_us(rtt_us: u64) -> u64 {
    (rtt_us / 8).clamp(1_000, REPORT_INTERVAL_US_MAX)
}
