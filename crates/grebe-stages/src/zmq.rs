//! ZeroMQ as GNU Radio's blocks speak it: `zmq://HOST:PORT?type=sub&format=cf32&rate=1M`.
//!
//! The protocol is ZMTP 3.0 without encryption, which is small for these four types of sockets, so there is no library:
//!
//! ```text
//!  both ends                     greeting (64 bytes), READY with the type of the socket
//!  SUB -> PUB                    what it wants to get: the first bytes of messages
//!  PUB -> SUB, PUSH -> PULL      messages: a flag, a length, the bytes; a message may have several parts
//!
//!  a message of GNU Radio's      [key] ([header with tags] samples)
//! ```

mod meet;
mod name;
mod reader;
mod sink;
mod tags;
mod wire;

pub(crate) use name::Socket;
pub use name::Zmq;
pub(crate) use reader::source;
pub(crate) use sink::ZmqSink;
#[cfg(fuzzing)]
pub(crate) use {reader::fuzz as fuzz_messages, tags::fuzz as fuzz_tags, wire::fuzz as fuzz_wire};

#[cfg(test)]
mod tests;
