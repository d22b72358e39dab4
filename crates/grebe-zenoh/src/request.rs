//! Requests of a reader for datagrams: messages of a line of JSON, and a datagram.
//!
//! ```text
//!   reader                                                            producer
//!   Request::Ask { at, is_near } --- grebe/udp/ID/NAME (query) ----->  Answer::Asked
//!                                <-- UDP: a probe, to each address --
//!   Request::Send { nonce } -------- grebe/udp/ID/NAME (query) ----->  Answer::Sends: to the address of that nonce
//!                                <-- UDP: frames --------------------
//!   Request::Send { nonce }, repeated while frames are wanted; Request::End { nonce }
//! ```
//!
//! Only a reader at the address can return the nonce, so nobody can direct a stream to another host. A mere claim
//! causes one probe there, shorter than the claim.

use std::collections::HashSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::random;

/// A reader's request to a producer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Datagrams, to one of these addresses.
    Ask {
        /// Addresses of the reader's host.
        at: Vec<SocketAddr>,
        /// Whether they must not cross a router.
        is_near: bool,
    },
    /// Starts or continues the stream to the address of this nonce.
    Send {
        /// From a probe.
        nonce: Nonce,
    },
    /// Stops the stream.
    End {
        /// From a probe.
        nonce: Nonce,
    },
}

/// A producer's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Probes were sent.
    Asked,
    /// The stream is being sent.
    Sends {
        /// Frames that the system accepted for this reader.
        frames: u64,
    },
    /// Unknown nonce, or an ended stream.
    Unknown,
    /// The producer has its maximum of readers.
    Full,
}

/// A number known only to the reader at one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Nonce([u8; 16]);

impl Request {
    /// As it is sent.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses a request. Drops unspecified and multicast addresses, and repeated ones.
    ///
    /// # Errors
    /// The reason why it is not a request.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        let mut request: Self = parse(json)?;
        if let Self::Ask { at, .. } = &mut request {
            let mut named = HashSet::new();
            at.retain_mut(|at| {
                at.set_ip(at.ip().to_canonical());
                is_one_host(*at) && named.insert(*at)
            });
            at.truncate(Self::ADDRESSES_MAX);
        }
        Ok(request)
    }

    /// Maximum addresses to try.
    pub const ADDRESSES_MAX: usize = 8;
}

impl Answer {
    /// As it is sent.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses an answer.
    ///
    /// # Errors
    /// The reason why it is not an answer.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        parse(json)
    }
}

impl Nonce {
    /// A new nonce.
    pub fn random() -> Self {
        Self(random::id())
    }

    /// The datagram that carries it.
    pub fn probe(&self) -> [u8; Self::PROBE_BYTES] {
        let mut probe = [0; Self::PROBE_BYTES];
        probe[..MAGIC.len()].copy_from_slice(MAGIC);
        probe[MAGIC.len()..].copy_from_slice(&self.0);
        probe
    }

    /// The content of a datagram, if it is a probe.
    pub fn of_probe(datagram: &[u8]) -> Option<Self> {
        datagram.strip_prefix(MAGIC)?.try_into().ok().map(Self)
    }

    /// Bytes of a probe.
    pub const PROBE_BYTES: usize = MAGIC.len() + 16;
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl From<Nonce> for String {
    fn from(nonce: Nonce) -> Self {
        nonce.to_string()
    }
}

impl TryFrom<String> for Nonce {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(&text, 16).ok().filter(|_| is_hex);
        number.map(|number| Self(number.to_be_bytes())).ok_or("a nonce has 32 hexadecimal digits")
    }
}

fn parse<T: for<'de> Deserialize<'de>>(json: &[u8]) -> Result<T, String> {
    if json.len() > JSON_BYTES_MAX {
        return Err(format!("has {} bytes; the limit is {JSON_BYTES_MAX}", json.len()));
    }
    serde_json::from_slice(json).map_err(|error| error.to_string())
}

/// Whether a reader on another host can have this address. The host's own addresses are excluded, because the producer
/// would talk to itself.
fn is_one_host(at: SocketAddr) -> bool {
    let is_unicast = match at.ip() {
        IpAddr::V4(ip) => !ip.is_broadcast() && !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_unicast_link_local(),
    };
    let ip = at.ip();
    at.port() != 0 && is_unicast && !ip.is_unspecified() && !ip.is_multicast() && !ip.is_loopback()
}

const MAGIC: &[u8; 8] = b"grebe?\r\n";
const JSON_BYTES_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_round_trip() {
        let nonce = Nonce::random();
        let at = vec!["192.0.2.7:5000".parse().unwrap(), "[2001:db8::7]:5000".parse().unwrap()];
        for request in [Request::Ask { at, is_near: true }, Request::Send { nonce }, Request::End { nonce }] {
            assert_eq!(Request::parse(request.to_json().as_bytes()), Ok(request));
        }
        for answer in [Answer::Asked, Answer::Sends { frames: 7 }, Answer::Unknown, Answer::Full] {
            assert_eq!(Answer::parse(answer.to_json().as_bytes()), Ok(answer));
        }
        assert_eq!(Answer::Asked.to_json(), "\"asked\"");
    }

    #[test]
    fn a_probe_carries_its_nonce_and_nothing_else_is_one() {
        let nonce = Nonce::random();
        let probe = nonce.probe();
        assert_eq!(Nonce::of_probe(&probe), Some(nonce));
        let longer = [&probe[..], b"x"].concat();
        for other in [&probe[1..], &probe[..23], &longer, b"GFH2", b""] {
            assert_eq!(Nonce::of_probe(other), None);
        }
        let claim = Request::Ask { at: vec!["192.0.2.7:5000".parse().unwrap()], is_near: true };
        assert!(probe.len() < claim.to_json().len(), "nobody is sent more than was claimed");
    }

    #[test]
    fn group_broadcast_and_loopback_addresses_get_no_probe() {
        let claimed = [
            "0.0.0.0:5000",
            "127.0.0.1:5000",
            "255.255.255.255:5000",
            "169.254.1.1:5000",
            "239.1.2.3:5000",
            "192.0.2.7:0",
            "[::]:5000",
            "[::1]:5000",
            "[::ffff:127.0.0.1]:5000",
            "[fe80::1]:5000",
            "[ff02::1]:5000",
            "[::ffff:192.0.2.7]:5000",
        ];
        let at = claimed.iter().map(|at| at.parse().unwrap()).collect();
        let read = Request::parse(Request::Ask { at, is_near: false }.to_json().as_bytes());
        let kept = vec!["192.0.2.7:5000".parse().unwrap()];
        assert_eq!(read, Ok(Request::Ask { at: kept, is_near: false }));
        let kept = |at: Vec<SocketAddr>| {
            let read = Request::parse(Request::Ask { at, is_near: false }.to_json().as_bytes());
            if let Ok(Request::Ask { at, .. }) = read { at.len() } else { panic!("{read:?}") }
        };
        let at = |port| SocketAddr::from(([192, 0, 2, 7], port));
        assert_eq!(kept((1..=20).map(at).collect()), Request::ADDRESSES_MAX);
        let mapped = "[::ffff:192.0.2.7]:1".parse().unwrap();
        assert_eq!(kept(vec![at(1), at(1), mapped]), 1, "one claim brings one probe there");
    }

    #[test]
    fn an_invalid_request_is_refused() {
        let long = format!("{{\"send\":{{\"nonce\":\"{}\"}}}}", "0".repeat(5_000));
        let signed = format!("{{\"send\":{{\"nonce\":\"+{}\"}}}}", "0".repeat(31));
        for bad in ["", "\"ask\"", "{\"send\":{\"nonce\":\"12\"}}", "{\"ask\":{}}", &long, &signed] {
            assert!(Request::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Request::parse(&bytes), Answer::parse(&bytes), Nonce::of_probe(&bytes));
        }
    }
}
