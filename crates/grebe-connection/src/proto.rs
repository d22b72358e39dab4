//! The protocol's core, without sockets, files, clocks or file paths. Time comes in as a number.
//!
//! ```text
//!  sender ---> trains, sent_packets --+                  +-- received_packets, train <--- receiver
//!    |                                +---> wire <-------+
//!    +-------> congestion
//!
//!  connection: a sender and a receiver at each end, with stream_buffer between them and the bytes
//! ```

pub(crate) mod congestion;
pub(crate) mod connection;
pub(crate) mod handshake;
mod packet_protection;
pub(crate) mod ranges;
pub(crate) mod receiver;
pub(crate) mod sender;
pub(crate) mod sent_packets;
pub(crate) mod stream_buffer;
pub(crate) mod train;
pub(crate) mod wire;
