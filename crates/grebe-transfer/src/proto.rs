//! The protocol's core: it knows no socket, no file, no clock and no path of a file system. Time comes in as a number.

pub mod arrivals;
pub mod congestion;
pub mod filter;
pub mod flight;
pub mod handshake;
pub mod index;
pub mod ranges;
pub mod receiver;
pub mod seal;
pub mod sender;
pub mod sim;
pub mod spacing;
pub mod ticket;
pub mod wire;
