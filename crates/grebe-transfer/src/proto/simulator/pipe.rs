//! One direction of the emulated path.

use super::path::Link;
use crate::proto::wire::UDP_IP_BYTES;

/// A bottleneck with a drop-tail queue, then delay, loss and jitter.
pub(super) struct Pipe {
    pub(super) link: Link,
    /// When the queue will be empty.
    free_us: u64,
    /// The part of a microsecond that the last packet's time on the wire left over.
    fraction: f64,
    burst_left: u32,
    random: u64,
}

impl Pipe {
    pub(super) fn new(link: Link, seed: u64) -> Self {
        Self {
            link,
            free_us: 0,
            fraction: 0.0,
            burst_left: 0,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    /// How long a packet that is sent now waits in the queue.
    pub(super) fn queue_us(&self, now_us: u64) -> u64 {
        self.free_us.saturating_sub(now_us)
    }

    /// Sends a datagram; `arrive` is called with the time of each arrival: never, once, or twice.
    pub(super) fn send(&mut self, now_us: u64, datagram_bytes: usize, mut arrive: impl FnMut(u64)) {
        if datagram_bytes > self.link.datagram_bytes_max || self.is_lost() {
            return;
        }
        let wire_bytes = (datagram_bytes + UDP_IP_BYTES) as f64;
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
            arrive(left_us + self.link.delay_us + late_us);
        }
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

    /// Evenly distributed from 0 to below 1: xorshift64, because the published tables are of this sequence.
    fn draw(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }
}
