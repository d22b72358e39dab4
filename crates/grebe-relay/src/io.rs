//! The relay's sockets, and the page with its figures.

mod metrics;
pub(crate) mod server;
pub(crate) mod streams;
