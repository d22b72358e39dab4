//! Proof of an address: bytes sent there that only the server can verify. The server keeps no state for it.

use std::net::{IpAddr, SocketAddr};

use crate::{Reader, Result, Writer};

/// Proof of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cookie {
    /// Creation time by the server's clock.
    pub made_us: u64,
    /// Depends on address, time and context.
    pub tag: [u8; 16],
}

/// Makes and verifies cookies.
pub struct CookieMaker {
    secret: [u8; 32],
}

impl Cookie {
    /// Length of a cookie in a packet.
    pub const BYTES: usize = 8 + 16;

    /// Writes the cookie to a packet.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u64(self.made_us).put(&self.tag);
    }

    /// Reads the cookie from a packet.
    ///
    /// # Errors
    /// [`Error::Malformed`](crate::Error::Malformed) if the packet is too short.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { made_us: reader.u64()?, tag: reader.array()? })
    }
}

impl CookieMaker {
    /// Makes a new secret. A restarted server rejects earlier cookies.
    ///
    /// # Errors
    /// [`Error::Random`](crate::Error::Random) if the system has no random numbers.
    pub fn new() -> Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Self { secret })
    }

    /// Makes a cookie for an address, valid for [two minutes](Self::accepts). The same context must come back
    /// with it.
    pub fn make(&self, now_us: u64, address: SocketAddr, context: &[u8]) -> Cookie {
        Cookie { made_us: now_us, tag: self.tag(now_us, address, context) }
    }

    /// Whether this maker made the cookie for that address and context within the last two minutes.
    pub fn accepts(&self, now_us: u64, address: SocketAddr, context: &[u8], cookie: &Cookie) -> bool {
        let is_fresh = cookie.made_us <= now_us && now_us - cookie.made_us < COOKIE_US;
        let tag = self.tag(cookie.made_us, address, context);
        // Constant-time comparison.
        is_fresh && tag.iter().zip(&cookie.tag).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }

    fn tag(&self, made_us: u64, address: SocketAddr, context: &[u8]) -> [u8; 16] {
        let ip = match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        hasher.update(&ip.octets()).update(&address.port().to_be_bytes());
        hasher.update(&made_us.to_be_bytes()).update(context);
        let mut tag = [0; 16];
        tag.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        tag
    }
}

/// Validity of a cookie.
const COOKIE_US: u64 = 120_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_for_its_address_its_time_and_its_context_and_at_its_server() {
        let maker = CookieMaker::new().unwrap();
        let address: SocketAddr = "192.0.2.7:4000".parse().unwrap();
        let cookie = maker.make(5_000, address, b"x");
        let accepts = |now_us, address: &str, context: &[u8], cookie| {
            maker.accepts(now_us, address.parse().unwrap(), context, &cookie)
        };
        let own = "192.0.2.7:4000";
        assert!(accepts(5_000, own, b"x", cookie) && accepts(5_000 + COOKIE_US - 1, own, b"x", cookie));
        assert!(accepts(5_000, "[::ffff:192.0.2.7]:4000", b"x", cookie));
        assert!(!accepts(4_999, own, b"x", cookie) && !accepts(5_000 + COOKIE_US, own, b"x", cookie));
        assert!(
            !accepts(5_000, "192.0.2.8:4000", b"x", cookie)
                && !accepts(5_000, "192.0.2.7:4001", b"x", cookie)
        );
        assert!(!accepts(5_000, own, b"y", cookie) && !accepts(5_000, own, b"", cookie));
        for at in 0..16 {
            let mut forged = cookie;
            forged.tag[at] ^= 1;
            assert!(!accepts(5_000, own, b"x", forged));
        }
        assert!(!accepts(5_001, own, b"x", Cookie { made_us: 5_001, ..cookie }));
        assert!(!CookieMaker::new().unwrap().accepts(5_000, address, b"x", &cookie));
    }
}
