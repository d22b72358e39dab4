//! Limits of a probe: rate, bytes and duration.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::error::{Error, Result};

/// Limits set by the user of one side. The default for `None` depends on the other side's address, which a
/// server knows only once a client arrives.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bounds {
    /// Bits of IP packets per second.
    pub rate_max_bps: Option<f64>,
    /// Bytes of IP packets of one probe, both ways together.
    pub bytes_max: Option<u64>,
    /// Maximum duration of one probe.
    pub duration_max: Option<Duration>,
    /// Allows more than 1 Gbit/s to a public address.
    pub allow_fast_public: bool,
}

impl Bounds {
    /// Limits for a path to `peer`.
    pub(crate) fn for_peer(&self, peer: IpAddr) -> Limits {
        let usual = Limits::for_peer(peer);
        Limits {
            rate_max_bps: self.rate_max_bps.unwrap_or(usual.rate_max_bps),
            bytes_max: self.bytes_max.unwrap_or(usual.bytes_max),
            duration_max: self.duration_max.unwrap_or(usual.duration_max),
        }
    }

    /// Limits of a server: at most 1 Gbit/s for a client outside private networks, unless more is allowed.
    pub(crate) fn for_client(&self, client: IpAddr) -> Limits {
        let limits = self.for_peer(client);
        let most = if self.allow_fast_public || is_private(client) { f64::INFINITY } else { PUBLIC_RATE_BPS };
        Limits { rate_max_bps: limits.rate_max_bps.min(most), ..limits }
    }
}

/// Limits of one side of a probe. The smaller limit of both sides applies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limits {
    /// Bits of IP packets per second.
    pub(crate) rate_max_bps: f64,
    /// Bytes of IP packets of one probe, both ways together.
    pub(crate) bytes_max: u64,
    /// Maximum duration of one probe.
    pub(crate) duration_max: Duration,
}

impl Limits {
    /// Default maximum duration.
    pub(crate) const DURATION_MAX: Duration = Duration::from_secs(28);

    /// Defaults for a path to `peer`: 1 Gbit/s and 500 MB, or 40 Gbit/s and 8 GB within private networks.
    pub(crate) fn for_peer(peer: IpAddr) -> Self {
        let (rate_max_bps, bytes_max) =
            if is_private(peer) { (40e9, 8_000_000_000) } else { (PUBLIC_RATE_BPS, 500_000_000) };
        Self { rate_max_bps, bytes_max, duration_max: Self::DURATION_MAX }
    }

    /// Checks the limits for a probe of `peer`.
    ///
    /// # Errors
    /// [`Error::Limit`] for more than 1 Gbit/s outside private networks, and for less than any probe needs.
    pub(crate) fn check(&self, peer: SocketAddr, allow_fast_public: bool) -> Result<()> {
        let wrong = |what: String| Err(Error::Limit { what });
        if self.rate_max_bps > PUBLIC_RATE_BPS && !is_private(peer.ip()) && !allow_fast_public {
            return wrong(format!(
                "{} is not a private address: more than 1 Gbit/s to it may disturb others; say --yes if it may be, or lower \
                 --max-rate",
                peer.ip()
            ));
        }
        if self.rate_max_bps.is_nan() || self.rate_max_bps < RATE_MIN_BPS {
            return wrong(format!("a probe needs a --max-rate of at least {} kbit/s", RATE_MIN_BPS / 1e3));
        }
        if self.bytes_max < BYTES_MIN {
            return wrong(format!("a probe needs --max-bytes of at least {} kB", BYTES_MIN / 1_000));
        }
        if self.duration_max < DURATION_MIN {
            return wrong(format!("a probe needs a --duration of at least {} s", DURATION_MIN.as_secs()));
        }
        Ok(())
    }

    /// The smaller of each limit.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            rate_max_bps: self.rate_max_bps.min(other.rate_max_bps),
            bytes_max: self.bytes_max.min(other.bytes_max),
            duration_max: self.duration_max.min(other.duration_max),
        }
    }
}

/// Whether an address belongs to this host or a private network.
fn is_private(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            let shared = ip.octets()[0] == 100 && ip.octets()[1] & 0xC0 == 64;
            // 198.18.0.0/15 is reserved for benchmarks (RFC 2544).
            let bench = ip.octets()[0] == 198 && ip.octets()[1] & 0xFE == 18;
            ip.is_private() || ip.is_loopback() || ip.is_link_local() || shared || bench
        }
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

const PUBLIC_RATE_BPS: f64 = 1e9;
const RATE_MIN_BPS: f64 = 1e5;
const BYTES_MIN: u64 = 1_000_000;
const DURATION_MIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_an_address_of_its_family_from_any_server() {
        let (home, world) = ([192, 168, 1, 7].into(), [203, 0, 113, 9].into());
        let open = Bounds::default();
        assert_eq!(
            (open.for_client(home), open.for_client(world)),
            (Limits::for_peer(home), Limits::for_peer(world))
        );
        let fast = Bounds { rate_max_bps: Some(5e9), ..open };
        assert_eq!((fast.for_client(home).rate_max_bps, fast.for_client(world).rate_max_bps), (5e9, 1e9));
        assert_eq!(Bounds { allow_fast_public: true, ..fast }.for_client(world).rate_max_bps, 5e9);
    }

    #[test]
    fn much_traffic_to_strangers_needs_consent() {
        let (stranger, friend) = ("203.0.113.9:1".parse().unwrap(), "10.0.0.9:1".parse().unwrap());
        let fast = Limits { rate_max_bps: 2e9, ..Limits::for_peer("203.0.113.9".parse().unwrap()) };
        assert!(fast.check(stranger, false).unwrap_err().to_string().contains("--yes"));
        assert!(fast.check(stranger, true).is_ok() && fast.check(friend, false).is_ok());
        for peer in [stranger, friend, "[::1]:1".parse().unwrap(), "[2001:db8::1]:1".parse().unwrap()] {
            Limits::for_peer(peer.ip()).check(peer, false).unwrap();
        }
        let bounds = Bounds { bytes_max: Some(2_000_000), ..Bounds::default() };
        let usual = Limits::for_peer(friend.ip());
        assert_eq!(bounds.for_peer(friend.ip()), Limits { bytes_max: 2_000_000, ..usual });
        let none = Limits { bytes_max: 1, ..fast };
        assert!(none.check(friend, false).unwrap_err().to_string().contains("--max-bytes"));
    }
}
