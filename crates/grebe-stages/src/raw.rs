//! Samples and nothing else, as other programs send and take them: over a pipe, TCP, UDP or a serial
//! port. What they are stands in the name of the
//! stream: `pipe:?format=cu8&rate=2.4M`.

mod again;
mod byte_stream;
mod carrier;
mod layout;
mod link;
mod outgoing;
mod outlet;
mod tcp;
mod udp_sink;
mod udp_source;

pub(crate) use again::{Again, is_absent};
pub(crate) use byte_stream::{RawSink, RawSource, Retune, Retuned, interleaved};
pub(crate) use carrier::Carrier;
pub use layout::RawStream;
pub(crate) use layout::encoding;
pub(crate) use link::{Heard, Link, Wait};
pub(crate) use outgoing::{Outgoing, Written};
pub(crate) use outlet::{Outlet, drain};
pub(crate) use tcp::{Connector, TcpEnd};
pub(crate) use udp_sink::RawUdpSink;
pub(crate) use udp_source::RawUdpSource;
#[cfg(fuzzing)]
pub(crate) use udp_source::fuzz;
