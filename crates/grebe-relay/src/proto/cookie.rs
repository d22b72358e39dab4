//! What proves an address: bytes that were sent there, and that only the relay which made them can check. It keeps nothing of it.

use std::net::SocketAddr;

use grebe_packet::{Reader, Writer};

use crate::error::{Error, Result};

/// A proof of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cookie {
    /// When it was made, by the relay's clock.
    pub made_us: u64,
    /// Depends on the address and the time.
    pub tag: [u8; 16],
}

/// Makes and checks cookies.
pub(crate) struct CookieMaker {
    secret: [u8; 32],
}

impl Cookie {
    pub(crate) const BYTES: usize = 8 + 16;

    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        writer.u64(self.made_us).put(&self.tag);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { made_us: reader.u64()?, tag: reader.array()? })
    }
}

impl CookieMaker {
    /// With a secret of its own: a relay that was started again takes no cookie of before.
    ///
    /// # Errors
    /// [`Error::Keys`] where the system has no random numbers.
    pub(crate) fn new() -> Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| Error::Keys { what: error.to_string() })?;
        Ok(Self { secret })
    }

    pub(crate) fn make(&self, now_us: u64, address: SocketAddr) -> Cookie {
        Cookie { made_us: now_us, tag: self.tag(now_us, address) }
    }

    pub(crate) fn accepts(&self, now_us: u64, address: SocketAddr, cookie: &Cookie) -> bool {
        let is_fresh = cookie.made_us <= now_us && now_us - cookie.made_us < COOKIE_US;
        let tag = self.tag(cookie.made_us, address);
        // In a time that does not depend on where it is wrong.
        is_fresh && tag.iter().zip(&cookie.tag).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }

    fn tag(&self, made_us: u64, address: SocketAddr) -> [u8; 16] {
        let mut bytes = [0; 16 + 2 + 8];
        let ip = match address.ip() {
            std::net::IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            std::net::IpAddr::V6(ip) => ip,
        };
        Writer::new(&mut bytes).put(&ip.octets()).u16(address.port()).u64(made_us);
        let hash = blake3::keyed_hash(&self.secret, &bytes);
        let mut tag = [0; 16];
        tag.copy_from_slice(&hash.as_bytes()[..16]);
        tag
    }
}

/// For how long a cookie is good.
const COOKIE_US: u64 = 120_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_for_its_address_and_its_time_and_at_its_relay() {
        let maker = CookieMaker::new().unwrap();
        let address: SocketAddr = "192.0.2.7:4000".parse().unwrap();
        let cookie = maker.make(5_000, address);
        assert!(
            maker.accepts(5_000, address, &cookie) && maker.accepts(5_000 + COOKIE_US - 1, address, &cookie)
        );
        assert!(maker.accepts(5_000, "[::ffff:192.0.2.7]:4000".parse().unwrap(), &cookie));
        assert!(
            !maker.accepts(4_999, address, &cookie) && !maker.accepts(5_000 + COOKIE_US, address, &cookie)
        );
        for other in ["192.0.2.8:4000", "192.0.2.7:4001"] {
            assert!(!maker.accepts(5_000, other.parse().unwrap(), &cookie));
        }
        for at in 0..16 {
            let mut forged = cookie;
            forged.tag[at] ^= 1;
            assert!(!maker.accepts(5_000, address, &forged));
        }
        assert!(!maker.accepts(5_001, address, &Cookie { made_us: 5_001, ..cookie }));
        assert!(!CookieMaker::new().unwrap().accepts(5_000, address, &cookie));
    }
}
