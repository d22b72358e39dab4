//! `udp://`: one datagram per frame.

mod intake;
mod sink;
mod source;

pub use sink::UdpSink;
pub use source::UdpSource;
