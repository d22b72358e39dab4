//! Packet trains: send times, and the spacing on arrival, which the bottleneck of the path sets.

use crate::proto::wire::{TRAIN_US_MAX, Train, UDP_IP_BYTES};

/// A train as received.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrainReport {
    pub(crate) train: Train,
    /// Time that it took to send, and its bytes on the wire.
    pub(crate) sent_span_us: u64,
    pub(crate) sent_bytes: u64,
}

/// Packets of the first train of a transfer, and of the train in a handshake.
pub const FIRST_PACKETS: u64 = 32;

/// Time from the first packet of a handshake to its train. Addresses are resolved and radios awake by then, and a
/// near peer has answered.
pub const HANDSHAKE_TRAIN_AFTER_US: u64 = 10_000;

/// Arrivals of a handshake's first packet and of the train after it.
#[derive(Debug, Default)]
pub struct HandshakeTrain {
    /// Arrival of the packet before the train.
    first_us: Option<u64>,
    /// Arrived places of the train, as bits.
    places: u32,
    /// Arrival of the newest packet.
    came_us: u64,
    dispersion: TrainDispersion,
}

impl HandshakeTrain {
    /// Takes the packet at this place of the train, from 1; 0: the packet before the train.
    pub fn take(&mut self, now_us: u64, place: u8, datagram_bytes: usize) {
        if place == 0 {
            self.first_us.get_or_insert(now_us);
            return;
        }
        let bit = 1_u32.checked_shl(u32::from(place) - 1).unwrap_or(0);
        if bit & !self.places != 0 {
            self.places |= bit;
            self.came_us = now_us;
            self.dispersion.take(1, place.into(), now_us, (datagram_bytes + UDP_IP_BYTES) as u64);
        }
    }

    /// The measurement, once the train has arrived. `None` if less than half of it did, or if the path held the
    /// packets back and released them together.
    pub fn measured(&self, now_us: u64) -> Option<Train> {
        let TrainDispersion { packets, highest, overtaken, first_us, .. } = self.dispersion;
        let is_whole = packets == FIRST_PACKETS || highest == FIRST_PACKETS && overtaken == 0;
        if 2 * packets < FIRST_PACKETS || !is_whole && now_us < self.came_us + HANDSHAKE_QUIET_US {
            return None;
        }
        let train = self.dispersion.reported_at(self.came_us, highest)?;
        let is_steady = self.first_us.is_some_and(|us| first_us >= us + HANDSHAKE_TRAIN_AFTER_US * 3 / 4);
        (is_steady || train.jitter_us > 0).then_some(train)
    }
}

/// Pause that ends a handshake's train.
const HANDSHAKE_QUIET_US: u64 = 10_000;

/// Arrivals of the newest train: sums over their numbers and times, for a least-squares line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TrainDispersion {
    /// Mark of the train; 0 before the first train.
    mark: u8,
    first: u64,
    first_us: u64,
    /// A packet from after the train has arrived.
    passed: bool,
    packets: u64,
    highest: u64,
    overtaken: u64,
    last_us: u64,
    /// Bytes that arrived after the first packet, and bytes that arrived after it in the same microsecond.
    bytes: u64,
    at_once_bytes: u64,
    number_sum: f64,
    time_sum: f64,
    number_square_sum: f64,
    time_square_sum: f64,
    product_sum: f64,
}

impl TrainDispersion {
    /// Takes a packet with the mark of a train; 0: outside of a train. The first packet with a new mark
    /// begins the next train, and later packets of the old one are ignored.
    pub(crate) fn take(&mut self, mark: u8, number: u64, now_us: u64, wire_bytes: u64) {
        if mark == 0 {
            return;
        }
        if mark != self.mark && (self.mark == 0 || number > self.highest) {
            *self = Self { mark, first: number, first_us: now_us, highest: number, ..Self::default() };
        }
        if mark == self.mark {
            self.add(number, now_us - self.first_us, wire_bytes);
        }
    }

    /// Takes a packet outside of a train. Returns whether it is the first that was sent after this train.
    pub(crate) fn end_with(&mut self, number: u64) -> bool {
        let ends = self.mark > 0 && !self.passed && number > self.highest;
        self.passed |= ends;
        ends
    }

    /// Train for a report at this time about packets up to `highest`. `None` once enough reports had it, or
    /// if it was interrupted too long to measure anything.
    pub(crate) fn reported_at(&self, now_us: u64, highest: u64) -> Option<Train> {
        let is_fresh = now_us <= self.first_us + self.last_us + REPORTED_US
            || highest < self.highest.saturating_add(REPORTED_PACKETS);
        let measures = self.mark > 0 && self.last_us <= u64::from(TRAIN_US_MAX);
        (measures && is_fresh).then(|| self.train())
    }

    fn add(&mut self, number: u64, at_us: u64, wire_bytes: u64) {
        self.packets += 1;
        self.overtaken += u64::from(number < self.highest);
        self.highest = self.highest.max(number);
        self.last_us = at_us;
        if at_us > 0 {
            self.bytes += wire_bytes;
        } else if self.packets > 1 {
            self.at_once_bytes += wire_bytes;
        }
        // Negative for a packet that the first arrival of the train overtook.
        let (number, at) = (number as f64 - self.first as f64, at_us as f64);
        self.number_sum += number;
        self.time_sum += at;
        self.number_square_sum += number * number;
        self.time_square_sum += at * at;
        self.product_sum += number * at;
    }

    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    fn train(&self) -> Train {
        // If all packets arrived at once, the rate is unknown and only the existence of the train is certain.
        let bytes = if self.last_us > 0 { self.bytes } else { self.at_once_bytes };
        let plain =
            Train { mark: self.mark, span_us: self.last_us as u32, bytes: bytes as u32, jitter_us: 0 };
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
        // Adds the standard error of the slope. Too low a rate costs less than too high a rate, which fills a
        // queue for a round trip.
        let error_us = scatter_us / numbers.sqrt();
        let span_us = (slope_us + 0.5 * error_us).max(error_us) * (packets - 1.0);
        // The range of a uniform distribution is 3.5 times its standard deviation.
        let jitter_us = (3.5 * scatter_us).clamp(1.0, self.last_us as f64);
        Train { span_us: (span_us as u32).min(plain.span_us), jitter_us: jitter_us as u32, ..plain }
    }
}

/// Time and number of packets after a train for which reports repeat it. A report may be lost, and a sender
/// that waits for it sends little else.
const REPORTED_US: u64 = 150_000;
const REPORTED_PACKETS: u64 = 32;

/// With this many packets overtaken, jitter spread the train as much as the path's rate did.
const OVERTAKEN_MIN: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn train(times_us: impl Iterator<Item = (u64, u64)>) -> Train {
        let mut arrivals: Vec<(u64, u64)> = times_us.map(|(number, at_us)| (at_us, number)).collect();
        arrivals.sort_unstable();
        let mut dispersion = TrainDispersion::default();
        for (at_us, number) in &arrivals {
            dispersion.take(1, *number, *at_us, 1_000);
        }
        dispersion.train()
    }

    /// First packet at 0, then a train after 10 ms, with 100 us between its packets.
    fn handshake(places: impl Iterator<Item = u8>) -> HandshakeTrain {
        let mut train = HandshakeTrain::default();
        train.take(0, 0, 1_200);
        places.for_each(|place| train.take(10_000 + 100 * u64::from(place), place, 1_200));
        train
    }

    #[test]
    fn the_train_of_a_handshake_is_measured_when_it_has_arrived() {
        let train = handshake(1..=32).measured(13_200).unwrap();
        assert_eq!((train.span_us, train.bytes, train.jitter_us), (3_100, 31 * 1_228, 0));
        let tail_is_lost = handshake((1..=31).chain(1..=31));
        assert_eq!(tail_is_lost.measured(13_200), None, "the last may come");
        assert_eq!(tail_is_lost.measured(23_200).map(|train| train.span_us), Some(3_000), "each counts once");
        assert_eq!(handshake(1..=15).measured(1_000_000), None, "too few");
        assert_eq!(handshake((33..=255).chain(1..=15)).measured(1_000_000), None, "no places");
    }

    #[test]
    fn a_handshake_that_the_path_held_back_measures_nothing() {
        let mut held = HandshakeTrain::default();
        (0..=32).for_each(|place| held.take(9_000 + 100 * u64::from(place), place, 1_200));
        assert_eq!(held.measured(1_000_000), None);
    }

    #[test]
    fn packets_in_order_are_as_far_apart_as_they_came() {
        let train = train((0..32).map(|number| (number, number * 100)));
        assert_eq!(train, Train { mark: 1, span_us: 3_100, bytes: 31_000, jitter_us: 0 });
    }

    #[test]
    fn packets_that_came_all_at_once_are_a_train_too() {
        let train = train((0..32).map(|number| (number, 500)));
        assert_eq!(train, Train { mark: 1, span_us: 0, bytes: 31_000, jitter_us: 0 });
    }

    #[test]
    fn a_train_that_the_path_interrupted_for_minutes_is_not_reported() {
        let mut dispersion = TrainDispersion::default();
        dispersion.take(1, 0, 0, 1_000);
        dispersion.take(1, 1, 60_000_000, 1_000);
        assert_eq!(dispersion.reported_at(60_000_000, 1).map(|train| train.span_us), Some(60_000_000));
        dispersion.take(1, 2, 60_000_001, 1_000);
        assert_eq!(dispersion.reported_at(60_000_001, 2), None);
    }

    #[test]
    fn jitter_is_told_apart_from_the_rate() {
        // Pseudo-random delays of up to 20 ms.
        let late_us = |number: u64| number * 7_919 % 20_000;
        let train = train((0..32).map(|number| (number, number * 100 + late_us(number))));
        assert!((1_500..9_000).contains(&train.span_us), "{train:?}");
        assert!((15_000..25_000).contains(&train.jitter_us), "{train:?}");
    }

    #[test]
    fn the_next_train_takes_the_place_of_the_one_before() {
        let mut dispersion = TrainDispersion::default();
        assert_eq!(dispersion.reported_at(0, 0), None);
        dispersion.take(1, 0, 1_000, 1_000);
        dispersion.take(1, 1, 1_100, 1_000);
        assert!(dispersion.end_with(2), "the first packet after it");
        assert!(!dispersion.end_with(3), "only the first");
        dispersion.take(2, 10, 9_000, 1_000);
        dispersion.take(1, 1, 9_050, 1_000);
        dispersion.take(2, 11, 9_200, 1_000);
        let train = Train { mark: 2, span_us: 200, bytes: 1_000, jitter_us: 0 };
        assert_eq!(dispersion.reported_at(9_300, 11), Some(train));
        assert_eq!(dispersion.reported_at(10_000_000, 20), Some(train), "for a sender that waits for it");
        assert_eq!(dispersion.reported_at(10_000_000, 2_000), None);
        dispersion.take(3, u64::MAX, 10_000_000, 1_000);
        assert!(dispersion.reported_at(20_000_000, 2_000).is_some(), "whatever number a peer writes");
    }
}
