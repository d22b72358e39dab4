//! The relay's socket, and the page with its figures.

mod metrics;
pub(crate) mod server;
