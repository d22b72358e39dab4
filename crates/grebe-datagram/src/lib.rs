//! Batched UDP at the speed of the machine.
//!
//! A [`Sender`] gathers `[header, payload]` pairs from where they lie and hands many datagrams to the kernel in one call; a
//! [`Receiver`] fills buffers that the caller owns and moves each one out as it fills, so that a payload is never copied in
//! user space. On Linux a batch is `sendmmsg` of GSO messages and `recvmmsg` of GRO buffers; other systems do what they can
//! behind the same interface, down to one datagram a call.
//!
//! ```text
//!   push(header, payload) --+                                       +--> deliver(slot, Received { segment_bytes, .. })
//!   push(header, payload) --+--> [ batch ] -- flush --> ~~~ --> recv +--> deliver(slot, ..)
//!   push_run(bytes, 1400) --+   one system call               ^
//!                                                             +----- refill() -> Option<slot>   (the caller's pool)
//! ```
//!
//! ```
//! use grebe_datagram::{Options, Receiver, Sender};
//!
//! # fn main() -> Result<(), grebe_datagram::Error> {
//! let options = Options::default();
//! let mut receiver = Receiver::bind("127.0.0.1:0".parse().unwrap(), &options)?;
//! let mut sender = Sender::connect(receiver.local_addr()?, &options)?;
//!
//! let samples = [7_u8; 1_336];
//! let mut batch = sender.batch();
//! for sequence in 0..100_u64 {
//!     batch.push_copied(&sequence.to_le_bytes(), &samples)?;
//! }
//! batch.flush()?;
//! drop(batch);
//!
//! let mut datagrams = 0;
//! while datagrams < 100 {
//!     receiver.recv(
//!         || Some(vec![0_u8; 65_536]), // a real program takes these from a pool
//!         |slot, received| {
//!             for range in received.segments() {
//!                 assert_eq!(slot[range].len(), 1_344);
//!                 datagrams += 1;
//!             }
//!             Some(slot) // back into the receiver; `None` keeps it
//!         },
//!     )?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What is counted
//! Nothing is lost in silence: [`SendCounters`] counts copies, backoffs and system calls; [`RecvOutcome::kernel_drops`] says
//! how many kernel buffers found the receive buffer full since the socket was opened (one buffer can be many datagrams:
//! sequence numbers in the payload are the truth about loss, this counter says where it happened).

#[cfg(feature = "tokio")]
mod async_receive;
#[cfg(feature = "tokio")]
mod async_send;
mod drops;
mod error;
mod flush;
mod gso;
mod options;
mod path;
mod plan;
mod ready;
mod receive;
mod send;
mod setup;
mod sys;
mod wait;

#[cfg(feature = "tokio")]
pub use async_receive::AsyncReceiver;
#[cfg(feature = "tokio")]
pub use async_send::AsyncSender;
pub use drops::Congestion;
pub use error::{Error, Result};
pub use gso::Gso;
pub use options::{Interface, Options};
pub use path::{datagram_bytes_for, is_wsl2, route_payload_bytes, set_dont_fragment};
pub use plan::{MAX_BURST_DATAGRAMS, MAX_DATAGRAM_BYTES};
pub use ready::wait_readable;
pub use receive::{Received, Receiver, RecvOutcome, Segments};
pub use send::{SendBatch, SendCounters, Sender};
pub use setup::{Granted, Side};
