//! Emulated path: a bottleneck, a delay and losses in each direction.

use grebe_connection::internals::UDP_IP_BYTES;

/// One direction of a path: a policer, a bottleneck with a queue, then a delay.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Bits per second; 0: no limit.
    pub rate_bits_per_s: f64,
    /// Propagation delay of this direction.
    pub delay_us: u64,
    /// Maximum extra delay per packet, uniformly distributed, so that packets are reordered.
    pub jitter_us: u64,
    /// Capacity of the bottleneck's queue in bytes.
    pub queue_bytes: u64,
    /// Policer before the bottleneck: drops packets beyond its rate, and delays none.
    pub policer: Option<Policer>,
    /// Share of lost packets, 0 to 1.
    pub loss: f64,
    /// Length of loss runs in packets; `loss` stays their share.
    pub burst: u32,
    /// Share of duplicated packets, 0 to 1.
    pub duplicates: f64,
    /// Maximum datagram length in bytes of UDP payload; longer ones are lost.
    pub datagram_bytes_max: usize,
    /// Stalls in which nothing enters or arrives, followed by everything at once.
    pub stalls: Option<Stalls>,
}

/// Stalls of a forwarding host: by its load, its hypervisor, or a sleeping radio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stalls {
    /// One stall begins in each interval of this length, in its first half.
    pub every_us: u64,
    /// Duration; at most half of the interval.
    pub for_us: u64,
    /// Seed of the start times.
    pub seed: u64,
}

/// Token bucket: packets pass while there are tokens for their bytes, otherwise they are dropped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policer {
    /// Token rate in bits per second.
    pub rate_bits_per_s: f64,
    /// Capacity in bytes, which is the burst after a pause.
    pub bucket_bytes: u64,
}

/// Both directions of a path, and their changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Path {
    /// From the sender to the receiver.
    pub forward: Link,
    /// From the receiver to the sender.
    pub back: Link,
    /// Times of changes, ascending, with the new directions.
    pub changes: Vec<(u64, Link, Link)>,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            rate_bits_per_s: 0.0,
            delay_us: 0,
            jitter_us: 0,
            queue_bytes: 1 << 20,
            policer: None,
            loss: 0.0,
            burst: 1,
            duplicates: 0.0,
            datagram_bytes_max: 1_472,
            stalls: None,
        }
    }
}

impl Stalls {
    /// Actual time of an event that is due at this time.
    pub(super) fn let_through_us(&self, at_us: u64) -> u64 {
        let stretch = at_us / self.every_us;
        let chance = (stretch + self.seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        let from_us = stretch * self.every_us + chance % (self.every_us / 2).max(1);
        if (from_us..from_us + self.for_us).contains(&at_us) { from_us + self.for_us } else { at_us }
    }
}

impl Path {
    /// Makes a path with the same link in both directions, and with loss only on the forward one.
    pub fn symmetric(link: Link) -> Self {
        Self { back: Link { loss: 0.0, ..link.clone() }, forward: link, changes: Vec::new() }
    }
}

/// Policer, bottleneck with a drop-tail queue, then delay, loss and jitter.
pub(super) struct Pipe {
    pub(super) link: Link,
    /// Time at which the queue will be empty.
    free_us: u64,
    /// Remaining fraction of a microsecond of the last packet's time on the wire.
    fraction: f64,
    /// Missing tokens in the policer's bucket, and the time of that state.
    spent_bytes: f64,
    spent_us: u64,
    burst_left: u32,
    random: u64,
}

impl Pipe {
    pub(super) fn new(link: Link, seed: u64) -> Self {
        Self {
            link,
            free_us: 0,
            fraction: 0.0,
            spent_bytes: 0.0,
            spent_us: 0,
            burst_left: 0,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    /// Queue delay of a packet sent now.
    pub(super) fn queue_us(&self, now_us: u64) -> u64 {
        self.free_us.saturating_sub(now_us)
    }

    /// Sends a datagram. Calls `arrive` with the time of each arrival: never, once, or twice.
    pub(super) fn send(&mut self, now_us: u64, datagram_bytes: usize, mut arrive: impl FnMut(u64)) {
        let stalls = self.link.stalls;
        if datagram_bytes > self.link.datagram_bytes_max || self.is_lost() {
            return;
        }
        let wire_bytes = (datagram_bytes + UDP_IP_BYTES) as f64;
        if !self.is_conforming(now_us, wire_bytes) {
            return;
        }
        let through_us = |at_us| stalls.map_or(at_us, |stalls| stalls.let_through_us(at_us));
        let now_us = through_us(now_us);
        let mut left_us = now_us;
        if self.link.rate_bits_per_s > 0.0 {
            let waits_us = self.queue_us(now_us);
            if waits_us as f64 * self.link.rate_bits_per_s / 8e6 + wire_bytes > self.link.queue_bytes as f64 {
                return;
            }
            let takes_us = wire_bytes * 8e6 / self.link.rate_bits_per_s + self.fraction;
            self.fraction = takes_us.fract();
            self.free_us = self.free_us.max(now_us) + takes_us as u64;
            left_us = self.free_us;
        }
        let copies = if self.draw() < self.link.duplicates { 2 } else { 1 };
        for _ in 0..copies {
            let late_us = (self.draw() * self.link.jitter_us as f64) as u64;
            arrive(through_us(left_us + self.link.delay_us + late_us));
        }
    }

    /// Whether the policer has tokens for a packet, and takes them.
    fn is_conforming(&mut self, now_us: u64, wire_bytes: f64) -> bool {
        let Some(policer) = self.link.policer else { return true };
        let came_bytes = (now_us - self.spent_us) as f64 * policer.rate_bits_per_s / 8e6;
        (self.spent_bytes, self.spent_us) = ((self.spent_bytes - came_bytes).max(0.0), now_us);
        let conforms = self.spent_bytes + wire_bytes <= policer.bucket_bytes as f64;
        self.spent_bytes += if conforms { wire_bytes } else { 0.0 };
        conforms
    }

    fn is_lost(&mut self) -> bool {
        if self.burst_left > 0 {
            self.burst_left -= 1;
            return true;
        }
        let burst = self.link.burst.max(1);
        let lost = self.draw() < self.link.loss / f64::from(burst);
        self.burst_left = if lost { burst - 1 } else { 0 };
        lost
    }

    /// Uniform from 0 to below 1: xorshift64, because the published tables use this sequence.
    fn draw(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policer_passes_its_bucket_at_once_and_its_rate_ever_after() {
        let policer = Policer { rate_bits_per_s: 12e6, bucket_bytes: 30_000 };
        let mut pipe = Pipe::new(Link { policer: Some(policer), ..Link::default() }, 1);
        let mut passed = |now_us: u64| {
            let mut packets = 0;
            (0..100).for_each(|_| pipe.send(now_us, 1_472, |_| packets += 1));
            packets
        };
        assert_eq!(passed(0), 20, "the bucket, at once");
        assert_eq!(passed(5_000), 5, "a packet takes a millisecond");
        assert_eq!(passed(1_000_000), 20, "it holds no more than the bucket");
    }
}
