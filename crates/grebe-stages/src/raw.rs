//! Samples and nothing else, as other programs send and take them: over a pipe, TCP or UDP. What they are stands in the name of the
//! stream: `pipe:?format=cu8&rate=2.4M`.

mod again;
mod byte_stream;
mod datagrams;
mod layout;
mod outlet;
mod tcp;

pub(crate) use again::Again;
pub(crate) use byte_stream::{RawSink, RawSource, Retune, Retuned, interleaved};
pub(crate) use datagrams::{RawUdpSink, RawUdpSource};
pub(crate) use layout::Carrier;
pub use layout::RawStream;
pub(crate) use outlet::{Outlet, drain};
pub(crate) use tcp::{Connector, TcpEnd};
