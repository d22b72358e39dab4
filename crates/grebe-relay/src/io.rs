//! Sockets of the relay, and its metrics page.

mod metrics;
pub(crate) mod server;
pub(crate) mod streams;
