//! What acts: sockets, clocks and threads. It moves bytes between them and `proto`.

pub(crate) mod client;
mod endpoint;
pub(crate) mod server;
mod tcp;
