//! The protocol's core, without sockets, clocks or names. Time comes in as microseconds.

pub(crate) mod candidates;
pub(crate) mod keys;
pub(crate) mod meeting;
pub(crate) mod message;
pub(crate) mod relay;
