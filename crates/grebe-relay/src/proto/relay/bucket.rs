//! Rate limits: token buckets.

use std::net::IpAddr;

use crate::error::{Error, Result};

/// A rate, and the tokens gathered so far.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    per_us: f64,
    burst: f64,
    level: f64,
    at_us: u64,
}

/// One bucket for each of a fixed number of host groups. Memory is bounded, and nobody can choose a host's
/// bucket.
pub(crate) struct HostBuckets {
    buckets: Vec<Bucket>,
    secret: [u8; 32],
}

impl Bucket {
    /// Bucket of bytes, at a rate in bits per second.
    pub(crate) fn of_bits(bits_per_s: f64) -> Self {
        let bytes_per_s = bits_per_s / 8.0;
        Self::new(bytes_per_s, (bytes_per_s * BURST_S).max(BURST_BYTES_MIN))
    }

    /// Bucket of messages, with a burst of one second.
    pub(crate) fn of_messages(per_s: u32) -> Self {
        Self::new(per_s.into(), per_s.into())
    }

    fn new(per_s: f64, burst: f64) -> Self {
        Self { per_us: per_s / 1e6, burst, level: burst, at_us: 0 }
    }

    /// Tokens available now.
    #[inline]
    pub(crate) fn room(&mut self, now_us: u64) -> u64 {
        let passed_us = now_us.saturating_sub(self.at_us);
        self.level = (self.level + passed_us as f64 * self.per_us).min(self.burst);
        self.at_us = self.at_us.max(now_us);
        self.level as u64
    }

    /// Takes at most the tokens that [`room`](Self::room) returned.
    #[inline]
    pub(crate) fn take(&mut self, amount: u64) {
        self.level -= amount as f64;
    }

    pub(crate) fn take_one(&mut self, now_us: u64) -> bool {
        let is_there = self.room(now_us) > 0;
        if is_there {
            self.take(1);
        }
        is_there
    }
}

impl HostBuckets {
    /// # Errors
    /// [`Error::Keys`] if the system has no random numbers.
    pub(crate) fn new(per_s: u32) -> Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| Error::Keys { what: error.to_string() })?;
        Ok(Self { buckets: vec![Bucket::of_messages(per_s); GROUPS], secret })
    }

    pub(crate) fn take_one(&mut self, now_us: u64, host: IpAddr) -> bool {
        let ip = match host {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let hash = blake3::keyed_hash(&self.secret, &ip.octets());
        let [a, b, ..] = *hash.as_bytes();
        self.buckets[usize::from(u16::from_be_bytes([a, b])) % GROUPS].take_one(now_us)
    }
}

/// Burst after a pause. A policer with a smaller bucket would break up the trains that measure a path.
const BURST_S: f64 = 0.25;
/// Four buffers of coalesced datagrams.
const BURST_BYTES_MIN: f64 = 262_144.0;
const GROUPS: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_passes_than_the_rate_and_what_has_gathered() {
        let mut bucket = Bucket::of_bits(80e6);
        let mut passed = 0;
        for now_us in (0..2_000_000).step_by(100) {
            let taken = bucket.room(now_us).min(65_536);
            bucket.take(taken);
            passed += taken;
        }
        let most = 2 * 10_000_000 + 2_500_000;
        assert!((most - 100_000..=most).contains(&passed), "{passed} of {most}");
        assert_eq!(bucket.room(0), bucket.room(1_999_900), "a clock that goes back gives nothing");
    }

    #[test]
    fn a_host_that_asks_too_much_takes_nothing_from_another() {
        let mut buckets = HostBuckets::new(10).unwrap();
        let (loud, calm) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let asked = (0..1_000).filter(|_| buckets.take_one(0, loud)).count();
        assert_eq!(asked, 10);
        // Two hosts share a group once in 4,096 times.
        let again = || HostBuckets::new(10).is_ok_and(|mut other| other.take_one(0, calm));
        assert!(buckets.take_one(0, calm) || again());
        assert!(buckets.take_one(1_000_000, loud), "a second later there is room again");
    }
}
