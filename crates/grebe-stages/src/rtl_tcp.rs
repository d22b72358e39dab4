//! The protocol of `rtl_tcp`, by which an RTL-SDR is used over a network: `rtl_tcp://HOST:PORT?frequency=100M&rate=2.4M`.
//!
//! ```text
//!  server                                  client
//!    | -- RTL0, tuner, number of gains ----> |    12 bytes, once
//!    | -- I Q I Q I Q ... -----------------> |    unsigned bytes, without end
//!    | <---- command, value ---------------- |    5 bytes, whenever the client likes
//! ```

mod name;
mod receiver;
mod server;
mod wire;

pub use name::RtlTcp;
pub(crate) use receiver::receiver;
pub(crate) use server::RtlTcpServer;
pub(crate) use wire::{Command, Hello};

#[cfg(test)]
mod tests;
