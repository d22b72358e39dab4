//! Building blocks of bridges: addresses, reconnecting connections, connections to many readers, UDP sockets.

mod byte_stream;
mod carrier;
mod datagrams;
mod host_port;
mod link;
mod multicast;
mod outgoing;
mod outlet;
mod patience;
mod reconnect;
mod second_sender;
pub(crate) mod standard;
mod tcp;

pub(crate) use {
    byte_stream::ByteStream,
    carrier::{Carrier, is_text},
    datagrams::{listen, reachable, send_to},
    link::{Link, ReadResult, Wait},
    outgoing::{Outgoing, Written},
    outlet::{Outlet, drain},
    patience::Patience,
    reconnect::{Reconnect, is_absent},
    tcp::{Connector, TcpEnd},
};
pub use {host_port::HostPort, second_sender::SecondSender};
