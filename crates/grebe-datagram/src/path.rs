//! Packet size of a path.

use std::net::SocketAddr;

use socket2::{Domain, Socket, Type};

use crate::burst::MAX_DATAGRAM_BYTES;
use crate::sys;

/// Whether this is Linux within Windows (WSL2), whose loopback drops datagrams above 1,472 bytes.
pub fn is_wsl2() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").is_ok_and(|release| names_wsl2(&release))
}

/// Bytes of UDP payload in one packet to `peer`, by the present MTU of the route. `None` without a route, or
/// if the system does not provide it (Linux does).
pub fn route_payload_bytes(peer: SocketAddr) -> Option<usize> {
    let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, None).ok()?;
    socket.connect(&peer.into()).ok()?;
    sys::route_mtu_bytes(&socket, peer.is_ipv4()).map(|mtu_bytes| payload_for_mtu(peer, mtu_bytes))
}

/// Maximum payload of one packet of `mtu_bytes` to `peer`.
pub(crate) fn payload_for_mtu(peer: SocketAddr, mtu_bytes: usize) -> usize {
    let headers = if peer.is_ipv4() { 20 + 8 } else { 40 + 8 };
    mtu_bytes.saturating_sub(headers).min(MAX_DATAGRAM_BYTES)
}

fn names_wsl2(osrelease: &str) -> bool {
    osrelease.to_ascii_lowercase().contains("microsoft")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wsl2_is_known_by_its_kernels_name() {
        assert!(names_wsl2("5.15.167.4-microsoft-standard-WSL2"));
        assert!(!names_wsl2("6.18.0-generic"));
    }

    #[test]
    fn headers_are_taken_off_the_mtu() {
        assert_eq!(payload_for_mtu("10.0.0.1:1".parse().unwrap(), 1_500), 1_472);
        assert_eq!(payload_for_mtu("[fe80::1]:1".parse().unwrap(), 1_500), 1_452);
        assert_eq!(payload_for_mtu("127.0.0.1:1".parse().unwrap(), 65_536), 65_507);
    }
}
