//! A path that loses, delays, repeats and reorders.

/// xorshift64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub fn chance(&mut self, share: f64) -> bool {
        (self.next() as f64) < share * (1_u64 << 53) as f64
    }
}

/// One direction.
pub struct Link {
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
    pub fn draw(random: &mut Random) -> Self {
        let dark_us = random.below(8_000_000);
        let dark_for_us = if random.below(4) == 0 { random.below(4_000_000) } else { 0 };
        Self {
            bits_per_s: 0.5e6 * 200_f64.powf(random.below(1_000) as f64 / 1e3),
            delay_us: random.below(200_000),
            jitter_us: random.below(30_000),
            queue_us: 30_000 + random.below(400_000),
            loss: if random.below(3) == 0 { 0.0 } else { random.below(200) as f64 / 1e3 },
            duplicates: if random.below(3) == 0 { 0.05 } else { 0.0 },
            free_us: 0,
            dark_us: (dark_us, dark_us + dark_for_us),
        }
    }

    /// When a datagram arrives: never, once or twice.
    pub fn carry(&mut self, now_us: u64, datagram_bytes: usize, random: &mut Random) -> [Option<u64>; 2] {
        let dark = (self.dark_us.0..self.dark_us.1).contains(&now_us);
        let queued_us = self.free_us.saturating_sub(now_us);
        if datagram_bytes > 1_472 || dark || queued_us > self.queue_us || random.chance(self.loss) {
            return [None, None];
        }
        let takes_us = (datagram_bytes + 28) as f64 * 8e6 / self.bits_per_s;
        self.free_us = self.free_us.max(now_us) + takes_us.ceil() as u64;
        let mut arrival_us = || self.free_us + self.delay_us + random.below(self.jitter_us + 1);
        let first = arrival_us();
        let second = arrival_us();
        [Some(first), random.chance(self.duplicates).then_some(second)]
    }
}
