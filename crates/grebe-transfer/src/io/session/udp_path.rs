//! The UDP path of a sender: its socket, its peer, and the lengths of datagrams that the path may carry.

use std::net::{SocketAddr, UdpSocket};

use grebe_datagram::{Options, Sender as Datagrams, route_payload_bytes, set_dont_fragment};

use crate::error::Result;

/// A socket, and the peer at its other end.
pub(super) struct UdpPath {
    pub(super) datagrams: Datagrams,
    /// Another handle on the same socket, for what the peer sends.
    pub(super) socket: UdpSocket,
    pub(super) peer: SocketAddr,
}

/// A socket for a sender at `local`, with a second handle for what the peer sends.
pub(super) fn open(local: SocketAddr) -> Result<(Datagrams, UdpSocket)> {
    let datagrams = Datagrams::unconnected(local, &Options::default())?;
    let socket = datagrams.try_clone_socket().map_err(|source| grebe_datagram::Error::Receive { source })?;
    Ok((datagrams, socket))
}

impl UdpPath {
    /// Bytes of UDP payload that the path carries for sure, and longer datagrams to probe, ascending. Those are for routes that
    /// carry them, and for systems where a datagram that is too long for a hop is lost there and not cut into fragments.
    pub(super) fn datagram_bytes(&self) -> (usize, Vec<usize>) {
        let route_bytes = route_payload_bytes(self.peer).unwrap_or(DATAGRAM_BYTES);
        let is_whole = set_dont_fragment(&self.socket).is_ok();
        let longer = [1_372, 1_424, 1_472, route_bytes].into_iter();
        let probes = longer.filter(|bytes| is_whole && *bytes <= route_bytes).collect();
        (route_bytes.min(DATAGRAM_BYTES), probes)
    }
}

/// Every path carries this.
const DATAGRAM_BYTES: usize = 1_200;
