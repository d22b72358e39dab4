//! A path that loses, delays, repeats and reorders.

use grebe_testing::Rng;

/// One direction.
pub(crate) struct Link {
    bits_per_s: f64,
    delay_us: u64,
    jitter_us: u64,
    queue_us: u64,
    loss: f64,
    duplicates: f64,
    free_us: u64,
    /// Nothing passes between these times.
    dark_us: (u64, u64),
}

impl Link {
    pub(crate) fn draw(random: &mut Rng) -> Self {
        let dark_us = random.u64(..8_000_000);
        let dark_for_us = if random.u64(..4) == 0 { random.u64(..4_000_000) } else { 0 };
        Self {
            bits_per_s: 0.5e6 * 200_f64.powf(random.u64(..1_000) as f64 / 1e3),
            delay_us: random.u64(..200_000),
            jitter_us: random.u64(..30_000),
            queue_us: 30_000 + random.u64(..400_000),
            loss: if random.u64(..3) == 0 { 0.0 } else { random.u64(..200) as f64 / 1e3 },
            duplicates: if random.u64(..3) == 0 { 0.05 } else { 0.0 },
            free_us: 0,
            dark_us: (dark_us, dark_us + dark_for_us),
        }
    }

    /// One that carries nothing between these times.
    pub(crate) fn with_outage(from_us: u64, until_us: u64) -> Self {
        Self {
            bits_per_s: 5e6,
            delay_us: 50_000,
            jitter_us: 0,
            queue_us: 100_000,
            loss: 0.01,
            duplicates: 0.0,
            free_us: 0,
            dark_us: (from_us, until_us),
        }
    }

    /// When a datagram arrives: never, once or twice.
    pub(crate) fn carry(&mut self, now_us: u64, datagram_bytes: usize, random: &mut Rng) -> [Option<u64>; 2] {
        let dark = (self.dark_us.0..self.dark_us.1).contains(&now_us);
        let queued_us = self.free_us.saturating_sub(now_us);
        if datagram_bytes > 1_472 || dark || queued_us > self.queue_us || random.f64() < self.loss {
            return [None, None];
        }
        let takes_us = (datagram_bytes + 28) as f64 * 8e6 / self.bits_per_s;
        self.free_us = self.free_us.max(now_us) + takes_us.ceil() as u64;
        let mut arrival_us = || self.free_us + self.delay_us + random.u64(..=self.jitter_us);
        let first = arrival_us();
        let second = arrival_us();
        [Some(first), (random.f64() < self.duplicates).then_some(second)]
    }
}
