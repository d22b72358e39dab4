//! Sockets, clocks and threads. They move bytes to and from `proto`, which decides.

pub(crate) mod client;
mod endpoint;
pub(crate) mod server;
mod tcp;
