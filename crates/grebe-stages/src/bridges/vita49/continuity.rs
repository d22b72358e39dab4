//! Packets missing before a packet: by its count, which has four bits, and by its time if there is one.

use super::stamp::{Fraction, Stamp};

/// Follows the packets of one stream.
#[derive(Debug, Clone)]
pub(crate) struct Continuity {
    before: Option<Before>,
    /// Bit k: the packet k places before the newest is missing.
    missing: u64,
    late_in_a_row: u32,
    /// Whether a fraction that should count samples counts packets, as FlexRadio's does.
    counts_packets: bool,
    /// Whether a count of samples that should begin anew with each second goes on.
    counts_on: bool,
    /// Whether gaps come from the count alone.
    ignores_time: bool,
}

#[derive(Debug, Clone, Copy)]
struct Before {
    count: u8,
    stamp: Stamp,
    samples: u32,
}

/// Relation of a packet to the previous ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The next packet.
    Next(Missing),
    /// A missing packet, `back` places before the newest.
    Late {
        /// 1: the one before the newest.
        back: u64,
    },
    /// A repeated packet.
    Duplicate,
    /// The device restarted: the number of missing packets is unknown.
    Restart,
}

/// Missing before a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Missing {
    pub(crate) packets: u64,
    /// Per channel, in total.
    pub(crate) samples: u64,
    /// The part that the device never sent, because its packet counts have no gap.
    pub(crate) device_samples: u64,
}

impl Continuity {
    pub(crate) fn new(ignores_time: bool) -> Self {
        Self {
            before: None,
            missing: 0,
            late_in_a_row: 0,
            counts_packets: false,
            counts_on: false,
            ignores_time,
        }
    }

    /// The next packet is of another sender: none is missing before it.
    pub(crate) fn forget(&mut self) {
        *self = Self::new(self.ignores_time);
    }

    /// Handles the next packet, of `samples` samples per channel.
    #[inline]
    pub(crate) fn step(&mut self, count: u8, stamp: Stamp, samples: u32, rate_hz: f64) -> Step {
        self.counts_packets |= self.before.as_ref().is_some_and(|before| before.is_by_packet(count, &stamp));
        // More samples than a second has.
        let is_beyond = rate_hz > 0.0 && stamp.fraction as f64 >= rate_hz + f64::from(samples);
        let goes_on = self.before.is_some_and(|before| before.stamp.fraction < stamp.fraction);
        self.counts_on = stamp.kind == Fraction::SampleCount && goes_on && (is_beyond || self.counts_on);
        let mut step = match &self.before {
            None => Step::Next(Missing::default()),
            Some(before) => self.after(before, count, &stamp, rate_hz),
        };
        match step {
            Step::Next(Missing { packets, .. }) => {
                self.late_in_a_row = 0;
                // Shifts the window. The packets in between are missing.
                let shift = packets.saturating_add(1).min(64) as u32;
                let gone = (1u64 << packets.min(63)) - 1;
                self.missing = self.missing.checked_shl(shift).unwrap_or(0) | gone << 1;
            }
            Step::Late { .. } | Step::Duplicate if self.late_in_a_row + 1 < LATE_MAX => {
                self.late_in_a_row += 1;
                if let Step::Late { back } = step {
                    self.missing &= !(1 << back);
                }
                return step;
            }
            _ => {
                self.forget();
                step = Step::Restart;
            }
        }
        self.before = Some(Before { count, stamp, samples });
        step
    }

    fn after(&self, before: &Before, count: u8, stamp: &Stamp, rate_hz: f64) -> Step {
        let ahead = u64::from(count.wrapping_sub(before.count).wrapping_sub(1) & 15);
        let length = f64::from(before.samples);
        let by_count = |packets: u64| {
            Step::Next(Missing { packets, samples: packets * u64::from(before.samples), device_samples: 0 })
        };
        if self.counts_packets
            && let Some(packets) = before.packets_between(stamp, ahead)
        {
            return by_count(packets);
        }
        let is_blind = self.ignores_time || self.counts_packets;
        let counted = |stamp: &Stamp| match self.counts_on {
            true => Stamp { kind: Fraction::FreeRunning, ..*stamp },
            false => *stamp,
        };
        let elapsed = if is_blind { None } else { counted(stamp).since(&counted(&before.stamp), rate_hz) };
        let Some(elapsed) = elapsed else {
            // One of the packets missing is more likely than nearly sixteen lost in a row.
            let back = 15 - ahead;
            let was_missing = back >= 1 && self.missing >> back & 1 == 1;
            return if was_missing && ahead > 0 { self.behind(back) } else { by_count(ahead) };
        };
        // Times are rounded, counts of samples are exact.
        let tolerance = if elapsed.is_count { 0.5 } else { length / 2.0 };
        let gap = elapsed.samples - length;
        if gap.abs() <= tolerance {
            return Step::Next(Missing::default());
        }
        if gap < 0.0 {
            // Packets whose counts are in order are in order, although the clock jumps.
            return if ahead == 0 {
                by_count(0)
            } else {
                self.behind(((-gap / length).round() as u64).saturating_sub(1))
            };
        }
        let limit = if rate_hz > 0.0 { rate_hz * GAP_S_MAX } else { GAP_SAMPLES_MAX };
        if gap > limit {
            return if ahead == 0 { by_count(0) } else { Step::Restart };
        }
        let rounds = ((gap / length - ahead as f64) / 16.0).round().max(0.0) as u64;
        let packets = ahead + 16 * rounds;
        let sent = packets * u64::from(before.samples);
        let samples = if (gap - sent as f64).abs() <= tolerance { sent } else { gap.round() as u64 };
        Step::Next(Missing { packets, samples, device_samples: samples.saturating_sub(sent) })
    }

    /// A packet `back` places before the newest.
    fn behind(&self, back: u64) -> Step {
        if back < 64 && self.missing >> back & 1 == 1 { Step::Late { back } } else { Step::Duplicate }
    }
}

impl Before {
    /// Whether the next packet's fraction counts packets, although it should count samples.
    fn is_by_packet(&self, count: u8, stamp: &Stamp) -> bool {
        let ahead = u64::from(count.wrapping_sub(self.count).wrapping_sub(1) & 15);
        u64::from(self.samples) > ahead + 1 && self.packets_between(stamp, ahead) == Some(ahead)
    }

    /// Packets up to the next, if the fractions count packets and match both counts.
    fn packets_between(&self, stamp: &Stamp, ahead: u64) -> Option<u64> {
        let is_count = matches!(stamp.kind, Fraction::SampleCount | Fraction::FreeRunning);
        if !is_count || (stamp.kind, stamp.clock) != (self.stamp.kind, self.stamp.clock) {
            return None;
        }
        let packets = stamp.fraction.checked_sub(self.stamp.fraction)?.checked_sub(1)?;
        (packets & 15 == ahead && packets <= PACKETS_MAX).then_some(packets)
    }
}

/// After this many late packets in a row, the device has restarted its count.
const LATE_MAX: u32 = 32;
/// A larger jump is not a gap: the clock was set.
const GAP_S_MAX: f64 = 600.0;
/// More packets are not a gap: the device has restarted.
const PACKETS_MAX: u64 = 1 << 20;
/// The same for an unknown rate.
const GAP_SAMPLES_MAX: f64 = (1u64 << 40) as f64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::stamp::{PS_PER_S, Seconds};
    use super::*;

    const LENGTH: u32 = 640;
    const RATE_HZ: f64 = 7.68e6;

    fn next(packets: u64, samples: u64, device_samples: u64) -> Step {
        Step::Next(Missing { packets, samples, device_samples })
    }

    /// The stamp of a sample.
    fn stamp(kind: Fraction, index: u64) -> Stamp {
        let rate = RATE_HZ as u64;
        let (seconds, samples) = (index / rate, index % rate);
        let fraction = match kind {
            Fraction::None => 0,
            Fraction::SampleCount => samples,
            Fraction::Picoseconds => (u128::from(samples) * u128::from(PS_PER_S) / u128::from(rate)) as u64,
            Fraction::FreeRunning => index,
        };
        let clock = if kind == Fraction::FreeRunning { Seconds::None } else { Seconds::Utc };
        Stamp { clock, seconds: seconds as u32, kind, fraction }
    }

    /// Feeds packets by number, each at its sample index.
    fn steps(kind: Fraction, numbers: &[u64]) -> Vec<Step> {
        let mut continuity = Continuity::new(false);
        let step = |number: &u64| {
            let index = number * u64::from(LENGTH);
            continuity.step((number % 16) as u8, stamp(kind, index), LENGTH, RATE_HZ)
        };
        numbers.iter().map(step).collect()
    }

    #[test]
    fn without_times_a_count_of_four_bits_is_all() {
        let one = next(0, 0, 0);
        let gap = |packets| next(packets, packets * 640, 0);
        assert_eq!(steps(Fraction::None, &[14, 15, 16, 20]), [one, one, one, gap(3)]);
        assert_eq!(steps(Fraction::None, &[0, 16, 33]), [one, gap(15), one], "sixteen cannot be seen");
        assert_eq!(steps(Fraction::None, &[5, 7, 6, 8]), [one, gap(1), Step::Late { back: 1 }, one]);
    }

    #[test]
    fn late_frames_and_duplicates_are_distinguished() {
        let (one, late) = (next(0, 0, 0), |back| Step::Late { back });
        for kind in [Fraction::SampleCount, Fraction::Picoseconds, Fraction::FreeRunning] {
            let gap = next(2, 1_280, 0);
            let order = [5, 8, 7, 7, 6, 8, 9];
            let expected = [one, gap, late(1), Step::Duplicate, late(2), Step::Duplicate, one];
            assert_eq!(steps(kind, &order), expected, "{kind:?}");
        }
    }

    #[test]
    fn samples_that_the_device_skipped_are_not_network_loss() {
        let mut continuity = Continuity::new(false);
        let mut step =
            |count, index| continuity.step(count, stamp(Fraction::FreeRunning, index), LENGTH, 0.0);
        assert_eq!(step(3, 1_000), next(0, 0, 0));
        assert_eq!(step(4, 1_700), next(0, 60, 60), "the count goes on");
        assert_eq!(step(6, 3_000), next(1, 660, 20));
        let mut counted = Continuity::new(true);
        counted.step(3, stamp(Fraction::FreeRunning, 1_000), LENGTH, 0.0);
        let step = counted.step(4, stamp(Fraction::FreeRunning, 1_700), LENGTH, 0.0);
        assert_eq!(step, next(0, 0, 0), "times are not asked");
    }

    #[test]
    fn a_clock_that_is_set_or_stands_still_makes_no_gap() {
        let mut continuity = Continuity::new(false);
        let mut step = |count, seconds| {
            let stamp = Stamp { clock: Seconds::Utc, seconds, kind: Fraction::Picoseconds, fraction: 0 };
            continuity.step(count, stamp, LENGTH, RATE_HZ)
        };
        let steps = [step(1, 5), step(2, 1_700_000_000), step(3, 1_700_000_000), step(4, 6)];
        assert_eq!(steps, [next(0, 0, 0); 4]);
        let back: Vec<Step> = (0..LATE_MAX).map(|_| step(9, 1)).collect();
        assert_eq!(back.last(), Some(&Step::Restart), "it counts anew");
        assert_eq!(step(10, 1), next(0, 0, 0));
    }

    #[test]
    fn a_packet_count_instead_of_a_sample_count_makes_no_gap() {
        // FlexRadio: the seconds are right, and the fraction counts packets, per second or without end.
        for is_reset in [true, false] {
            let mut continuity = Continuity::new(false);
            let per_second = 375u64;
            let mut step = |number: u64| {
                let fraction = if is_reset { number % per_second } else { number };
                let (clock, seconds) = (Seconds::Utc, 1_700_000_000 + (number / per_second) as u32);
                let stamp = Stamp { clock, seconds, kind: Fraction::SampleCount, fraction };
                continuity.step((number % 16) as u8, stamp, 512, 192e3)
            };
            for number in (0..2_000).filter(|number| *number != 700) {
                let expected = if number == 701 { next(1, 512, 0) } else { next(0, 0, 0) };
                assert_eq!(step(number), expected, "{number} {is_reset}");
            }
        }
    }

    #[test]
    fn a_count_of_samples_that_goes_on_over_seconds_makes_no_gap() {
        let mut continuity = Continuity::new(false);
        let mut step = |number: u64| {
            let (clock, seconds) = (Seconds::Utc, 1_700_000_000 + (number * 512 / 192_000) as u32);
            let stamp =
                Stamp { clock, seconds, kind: Fraction::SampleCount, fraction: 777_777 + number * 512 };
            continuity.step((number % 16) as u8, stamp, 512, 192e3)
        };
        for number in (0..2_000).filter(|number| !(700..740).contains(number)) {
            let expected = if number == 740 { next(40, 40 * 512, 0) } else { next(0, 0, 0) };
            assert_eq!(step(number), expected, "{number}");
        }
    }

    proptest! {
        /// With times, every loss is counted exactly, however long.
        #[test]
        fn with_times_every_loss_is_counted(
            kind in prop::sample::select(vec![Fraction::SampleCount, Fraction::Picoseconds, Fraction::FreeRunning]),
            gaps in prop::collection::vec(prop_oneof![4 => Just(0u64), 2 => 1u64..40, 1 => 1u64..100_000], 1..60),
            first in 0u64..1_000_000,
        ) {
            let mut numbers = vec![first];
            gaps.iter().for_each(|gap| numbers.push(numbers[numbers.len() - 1] + 1 + gap));
            for (step, gap) in steps(kind, &numbers)[1..].iter().zip(&gaps) {
                prop_assert_eq!(*step, next(*gap, gap * 640, 0));
            }
        }

        #[test]
        fn nothing_panics(packets in prop::collection::vec((any::<u8>(), any::<u32>(), 0u32..4, any::<u64>(), 1u32..70_000), 0..100), rate_hz in prop_oneof![Just(0.0), 1.0..1e10f64]) {
            let mut continuity = Continuity::new(false);
            for (count, seconds, kind, fraction, samples) in packets {
                let stamp = Stamp { clock: Seconds::Utc, seconds, kind: Fraction::read(kind), fraction };
                continuity.step(count & 15, stamp, samples, rate_hz);
            }
        }
    }
}
