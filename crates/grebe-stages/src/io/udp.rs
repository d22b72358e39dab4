//! `udp://`: one datagram per frame.

mod intake;
mod sink;
mod source;

pub use {sink::UdpSink, source::UdpSource};
