//! Sessions: two ends that find each other by a ticket, and carry one transfer over UDP or, where no UDP passes, TCP.

mod connect;
pub(crate) mod receive;
mod receiving;
pub(crate) mod report;
pub(crate) mod send;
mod sending;
mod tcp_relay;
