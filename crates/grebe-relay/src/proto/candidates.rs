//! Candidate addresses of an end: its own, IPv6 first, and the one that the relay observes.

use std::net::{IpAddr, SocketAddr};

use grebe_packet::{Reader, Writer};

use crate::error::{Error, Result};
use crate::proto::keys::PLAIN_BYTES_MAX;
use crate::proto::message::{read_address, write_address};

/// A candidate address of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) address: SocketAddr,
    /// Observed by the relay, and not one of the end's own addresses.
    pub(crate) is_observed: bool,
}

/// Candidates of an end with these addresses, best first, as many as a message holds.
pub(crate) fn candidates(own: &[SocketAddr], observed: Option<SocketAddr>) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut add = |address: SocketAddr, is_observed| {
        if found.len() < CANDIDATES_MAX && !found.iter().any(|other| other.address == address) {
            found.push(Candidate { address, is_observed });
        }
    };
    own.iter().filter(|address| address.is_ipv6()).for_each(|address| add(*address, false));
    // Before the many addresses of a host with virtual networks, because only this one leads through its NAT.
    let is_own = |address: &SocketAddr| own.contains(address);
    observed.iter().filter(|address| !is_own(address)).for_each(|address| add(*address, true));
    own.iter().filter(|address| address.is_ipv4()).for_each(|address| add(*address, false));
    found
}

pub(crate) fn encode(candidates: &[Candidate]) -> Vec<u8> {
    let mut bytes = [0; PLAIN_BYTES_MAX];
    let mut writer = Writer::new(&mut bytes);
    let mut written = 0;
    for candidate in candidates {
        writer.u8(u8::from(candidate.is_observed));
        write_address(&mut writer, candidate.address);
        let Some(so_far) = writer.written() else { break };
        written = so_far;
    }
    bytes[..written].to_vec()
}

/// # Errors
/// [`Error::Malformed`] for input that no end of this version writes.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<Candidate>> {
    let mut reader = Reader::new(bytes);
    let mut found = Vec::new();
    while !reader.is_empty() {
        let is_observed = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return Err(Error::Malformed { what: "an unknown kind of candidate" }),
        };
        let address = read_address(&mut reader)?;
        if found.len() < CANDIDATES_MAX && is_usable(address) {
            found.push(Candidate { address, is_observed });
        }
    }
    Ok(found)
}

/// Whether it can be one host's address. Nobody may make us send to a whole network, or to an invalid port.
fn is_usable(address: SocketAddr) -> bool {
    let is_one = match address.ip() {
        IpAddr::V4(ip) => !ip.is_unspecified() && !ip.is_broadcast() && !ip.is_multicast(),
        IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_multicast() && ip.to_ipv4_mapped().is_none(),
    };
    is_one && address.port() != 0
}

/// Maximum addresses of an end that the other one tries.
pub(crate) const CANDIDATES_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn addresses(text: &[&str]) -> Vec<SocketAddr> {
        text.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn ipv6_comes_first_then_what_the_relay_saw() {
        let own = addresses(&["10.0.0.1:7", "172.17.0.1:7", "[2001:db8::1]:7"]);
        let found = candidates(&own, Some("203.0.113.9:4000".parse().unwrap()));
        let listed: Vec<_> = found.iter().map(|it| (it.address.to_string(), it.is_observed)).collect();
        let expected = [("[2001:db8::1]:7", false), ("203.0.113.9:4000", true), ("10.0.0.1:7", false)];
        for (found, (address, is_observed)) in listed.iter().zip(expected) {
            assert_eq!((found.0.as_str(), found.1), (address, is_observed));
        }
        // Without a NAT the observed address is one of the end's own.
        assert!(candidates(&own, Some(own[0])).iter().all(|candidate| !candidate.is_observed));
        let many: Vec<_> = (0..99).map(|port| SocketAddr::from(([10, 0, 0, 1], 1 + port))).collect();
        assert_eq!(candidates(&many, None).len(), CANDIDATES_MAX);
    }

    #[test]
    fn addresses_that_no_host_has_are_omitted() {
        let odd = addresses(&[
            "0.0.0.0:7",
            "255.255.255.255:7",
            "224.0.0.1:7",
            "[ff02::1]:7",
            "10.0.0.1:0",
            "[::]:1",
        ]);
        let odd: Vec<_> = odd.into_iter().map(|address| Candidate { address, is_observed: false }).collect();
        assert_eq!(decode(&encode(&odd)).unwrap(), []);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            addresses in prop::collection::vec((any::<SocketAddr>(), any::<bool>()), 0..CANDIDATES_MAX),
        ) {
            let all: Vec<_> = addresses
                .into_iter()
                .map(|(address, is_observed)| {
                    Candidate { address: SocketAddr::new(address.ip(), address.port()), is_observed }
                })
                .filter(|candidate| is_usable(candidate.address))
                .collect();
            prop_assert_eq!(decode(&encode(&all)).unwrap(), all);
        }

        #[test]
        fn foreign_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(found) = decode(&bytes) {
                prop_assert!(found.len() <= CANDIDATES_MAX);
            }
        }
    }
}
