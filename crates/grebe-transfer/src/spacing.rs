//! How far apart the first packets arrive, which tells the rate of the path.

use crate::wire::Train;

/// Numbers and times of the arrivals, summed up for the line that fits them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spacing {
    packets: u64,
    highest: u64,
    overtaken: u64,
    last_us: u64,
    bytes: u64,
    number_sum: f64,
    time_sum: f64,
    number_square_sum: f64,
    time_square_sum: f64,
    product_sum: f64,
}

impl Spacing {
    /// Takes an arrival, `at_us` after the first.
    pub fn add(&mut self, number: u64, at_us: u64, wire_bytes: u64) {
        self.packets += 1;
        self.overtaken += u64::from(number < self.highest);
        self.highest = self.highest.max(number);
        self.last_us = at_us;
        self.bytes += if at_us > 0 { wire_bytes } else { 0 };
        let (number, at) = (number as f64, at_us as f64);
        self.number_sum += number;
        self.time_sum += at;
        self.number_square_sum += number * number;
        self.time_square_sum += at * at;
        self.product_sum += number * at;
    }

    pub fn packets(&self) -> u64 {
        self.packets
    }

    pub fn train(&self) -> Train {
        let plain = Train { span_us: self.last_us as u32, bytes: self.bytes as u32, jitter_us: 0 };
        if self.overtaken < OVERTAKEN_MIN || self.packets < 3 * OVERTAKEN_MIN {
            return plain;
        }
        let packets = self.packets as f64;
        let numbers = self.number_square_sum - self.number_sum * self.number_sum / packets;
        let times = self.time_square_sum - self.time_sum * self.time_sum / packets;
        let both = self.product_sum - self.number_sum * self.time_sum / packets;
        if numbers <= 0.0 {
            return plain;
        }
        let slope_us = (both / numbers).max(0.0);
        let scatter_us = ((times - slope_us * both) / (packets - 2.0)).max(0.0).sqrt();
        let span_us = (slope_us + 0.5 * scatter_us / numbers.sqrt()) * (packets - 1.0);
        // Evenly spread delays are as far apart as 3.5 times their standard deviation.
        let jitter_us = (3.5 * scatter_us).clamp(1.0, self.last_us as f64);
        Train { span_us: (span_us as u32).min(plain.span_us), jitter_us: jitter_us as u32, ..plain }
    }
}

/// So many packets that came after a later one: jitter spread them as much as the path's rate.
const OVERTAKEN_MIN: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn train(times_us: impl Iterator<Item = (u64, u64)>) -> Train {
        let mut arrivals: Vec<(u64, u64)> = times_us.map(|(number, at_us)| (at_us, number)).collect();
        arrivals.sort_unstable();
        let mut spacing = Spacing::default();
        for (at_us, number) in &arrivals {
            spacing.add(*number, at_us - arrivals[0].0, 1_000);
        }
        spacing.train()
    }

    #[test]
    fn packets_in_order_are_as_far_apart_as_they_came() {
        let train = train((0..32).map(|number| (number, number * 100)));
        assert_eq!(train, Train { span_us: 3_100, bytes: 31_000, jitter_us: 0 });
    }

    #[test]
    fn jitter_is_told_from_the_rate() {
        // Delays that no order is in, up to 20 ms.
        let late_us = |number: u64| number * 7_919 % 20_000;
        let train = train((0..32).map(|number| (number, number * 100 + late_us(number))));
        assert!((1_500..9_000).contains(&train.span_us), "{train:?}");
        assert!((15_000..25_000).contains(&train.jitter_us), "{train:?}");
    }
}
