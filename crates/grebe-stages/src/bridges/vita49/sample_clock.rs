//! Times of the sent samples, counted from the time of the first.
//!
//! Follows the samples and not this machine's clock, as a device's clock does, because receivers take a jump of the
//! time for a gap.

use std::time::{SystemTime, UNIX_EPOCH};

use super::stamp::{Fraction, PS_PER_S, Seconds, Stamp};
use super::uri::Time;

/// The clock of one stream.
#[derive(Debug, Clone)]
pub(crate) struct SampleClock {
    kind: Time,
    /// Of the first sample, since 1970.
    seconds: u64,
    picoseconds: u64,
    first_index: u64,
    rate_hz: f64,
    /// Start of the last packet, and the expected next one: avoids a division per packet.
    latest: Latest,
}

/// Times as whole seconds, and picoseconds of which the lower 32 bits are a fraction.
#[derive(Debug, Clone, Copy, Default)]
struct Latest {
    index: u64,
    seconds: u64,
    picoseconds_q32: u128,
    step_samples: u64,
    step_q32: u128,
}

impl Default for SampleClock {
    fn default() -> Self {
        Self::new(Time::None, UNIX_EPOCH, 0, 0.0)
    }
}

impl SampleClock {
    /// A clock that shows `time` at sample `first_index`.
    pub(crate) fn new(kind: Time, time: SystemTime, first_index: u64, rate_hz: f64) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (seconds, picoseconds) = (since.as_secs(), u64::from(since.subsec_nanos()) * 1_000);
        let latest = Latest {
            index: first_index,
            seconds,
            picoseconds_q32: u128::from(picoseconds) << 32,
            ..Latest::default()
        };
        Self { kind, seconds, picoseconds, first_index, rate_hz, latest }
    }

    /// The stamp of a packet that begins with this sample, in increasing order.
    #[inline]
    pub(crate) fn stamp_at(&mut self, index: u64) -> Stamp {
        let clock = match self.kind {
            Time::None => return Stamp::default(),
            Time::Samples => {
                return Stamp { kind: Fraction::FreeRunning, fraction: index, ..Stamp::default() };
            }
            Time::Utc => Seconds::Utc,
            Time::Gps => Seconds::Gps,
        };
        let samples = index.wrapping_sub(self.latest.index);
        if samples != self.latest.step_samples {
            self.jump(index, samples);
        } else {
            self.latest.picoseconds_q32 += self.latest.step_q32;
            while self.latest.picoseconds_q32 >= SECOND_Q32 {
                self.latest.picoseconds_q32 -= SECOND_Q32;
                self.latest.seconds += 1;
            }
            self.latest.index = index;
        }
        Stamp::at(clock, self.latest.seconds, (self.latest.picoseconds_q32 >> 32) as u64)
    }

    /// The stamp of any sample.
    pub(crate) fn time_of(&self, index: u64) -> Stamp {
        let mut other = self.clone();
        other.latest.step_samples = u64::MAX;
        other.stamp_at(index)
    }

    #[cold]
    fn jump(&mut self, index: u64, step_samples: u64) {
        let samples = index.saturating_sub(self.first_index) as f64;
        let whole = (samples / self.rate_hz).floor();
        let rest = (samples - whole * self.rate_hz).max(0.0) / self.rate_hz;
        let picoseconds = u128::from(self.picoseconds) << 32;
        let picoseconds = picoseconds + (rest * SECOND_Q32 as f64) as u128;
        let step_q32 = step_samples as f64 / self.rate_hz * SECOND_Q32 as f64;
        self.latest = Latest {
            index,
            seconds: self.seconds + whole as u64 + (picoseconds / SECOND_Q32) as u64,
            picoseconds_q32: picoseconds % SECOND_Q32,
            step_samples,
            step_q32: step_q32 as u128,
        };
    }
}

const SECOND_Q32: u128 = (PS_PER_S as u128) << 32;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn kinds_of_time_are_those_that_were_asked_for() {
        let time = UNIX_EPOCH + Duration::from_secs(1_704_067_200);
        let of = |kind| SampleClock::new(kind, time, 1_000, 1_000.0).stamp_at(2_500);
        assert_eq!(of(Time::Utc), Stamp::at(Seconds::Utc, 1_704_067_201, PS_PER_S / 2));
        assert_eq!(of(Time::Gps), Stamp::at(Seconds::Gps, 1_704_067_201, PS_PER_S / 2));
        assert_eq!(
            of(Time::Samples),
            Stamp { kind: Fraction::FreeRunning, fraction: 2_500, ..Stamp::default() }
        );
        assert_eq!(of(Time::None), Stamp::default());
    }

    proptest! {
        /// After millions of packets the time equals one multiplication to a picosecond.
        #[test]
        fn steps_do_not_drift(step in 1u64..10_000, rate in 1_000u64..10_000_000_000, nanos in 0u32..1_000_000_000) {
            let time = UNIX_EPOCH + Duration::new(1_700_000_000, nanos);
            let mut clock = SampleClock::new(Time::Utc, time, 7, rate as f64);
            let mut stamp = Stamp::default();
            (0..20_000u64).for_each(|packet| stamp = clock.stamp_at(7 + packet * step));
            let samples = u128::from(19_999 * step);
            let exact = u128::from(nanos) * 1_000 + samples * u128::from(PS_PER_S) / u128::from(rate);
            let got = u128::from(stamp.seconds - 1_700_000_000) * u128::from(PS_PER_S) + u128::from(stamp.fraction);
            // A float holds a part of a second to a tenth of a femtosecond.
            prop_assert!(got.abs_diff(exact) <= 2, "{got} {exact}");
            prop_assert_eq!(clock.time_of(7 + 19_999 * step).seconds, stamp.seconds);
        }
    }
}
