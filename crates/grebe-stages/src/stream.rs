//! What sources share: how many samples make a frame, when a sample is due, and where a stream is cut.

mod block;
mod limit;
mod pace;

pub use block::block_length;
pub(crate) use block::{CHUNK_BYTES, DATAGRAM_BYTES, DATAGRAM_BYTES_MAX, check_datagram_bytes};
pub(crate) use limit::Limit;
pub(crate) use pace::{LOOK_INTERVAL, Pacer};
