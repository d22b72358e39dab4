//! Batched UDP at the speed of the machine.
//!
//! A [`Sender`] gathers `[header, payload]` pairs in place and passes many datagrams to the kernel in one
//! call. A [`Receiver`] fills the caller's buffers and moves each full one out. So no payload is copied in
//! user space. On Linux a batch is `sendmmsg` of GSO messages and `recvmmsg` of GRO buffers. Other systems do
//! what they can behind the same interface, down to one datagram per call.
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
//! # Counters
//! No loss is silent. [`SendCounters`] counts copies, backoffs and system calls.
//! [`RecvOutcome::kernel_drops`] counts the kernel buffers dropped since the socket was opened because the
//! receive buffer was full. One kernel buffer can be many datagrams. So sequence numbers in the payload show
//! the amount of loss, and this counter its place.
//!
//! # Sockets of other crates
//! [`wait_readable`], [`wait_either_readable`], [`set_dont_fragment`] and [`route_payload_bytes`] offer parts
//! of [`Receiver`] and [`Sender`] for a plain `UdpSocket` or `TcpStream`, on every system.
//!
//! # Tokio
//! With the feature `tokio`, `AsyncReceiver` and `AsyncSender` carry the same batches in a runtime; see
//! `examples/async_receive.rs`.

#![deny(unsafe_code)]

mod burst;
mod error;
#[cfg(feature = "tokio")]
mod in_tokio;
mod local;
mod options;
mod path;
mod receive;
mod received;
mod send;
mod side;
mod socket;
#[allow(unsafe_code, reason = "system calls and their structs, nothing else")]
mod sys;

pub use burst::{MAX_BURST_DATAGRAMS, MAX_DATAGRAM_BYTES};
pub use error::{Error, Result};
#[cfg(feature = "tokio")]
pub use in_tokio::{AsyncReceiver, AsyncSender};
pub use local::{bind_with_tcp, listen_anywhere, outgoing_addresses, own_addresses};
pub use options::{Granted, Interface, Options, UnknownInterface};
pub use path::{is_wsl2, route_payload_bytes};
pub use receive::{Congestion, Receiver, RecvOutcome};
pub use received::{Received, Segments};
pub use send::{Gso, SendBatch, SendCounters, Sender};
pub use side::Side;
pub use socket::{listen_tcp, set_dont_fragment, wait_either_readable, wait_readable};
