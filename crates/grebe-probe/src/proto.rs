//! Decisions, without sockets, files or clocks. Time comes in as nanoseconds.

pub(crate) mod client;
pub(crate) mod direction;
pub(crate) mod echo;
pub(crate) mod estimate;
pub(crate) mod handler;
pub(crate) mod judge;
pub(crate) mod limits;
pub(crate) mod packet;
pub(crate) mod report;
pub(crate) mod search;
pub(crate) mod server;
pub(crate) mod signing;
#[cfg(test)]
mod tests;
pub(crate) mod tracker;
pub(crate) mod train;
pub(crate) mod verdict;
