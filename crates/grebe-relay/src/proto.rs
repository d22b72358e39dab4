//! Decides, and knows no socket, clock or name: time comes in as microseconds.

pub(crate) mod candidates;
pub(crate) mod keys;
pub(crate) mod meeting;
pub(crate) mod message;
pub(crate) mod relay;
