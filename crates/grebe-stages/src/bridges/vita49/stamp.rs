//! Time of a packet's first sample in VITA-49: whole seconds of a clock, and a fraction that is a time or a count.

use std::fmt;

/// Epoch of the whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub(crate) enum Seconds {
    #[default]
    None = 0,
    /// Since 1970, in UTC.
    Utc = 1,
    /// Since 6 January 1980, without leap seconds.
    Gps = 2,
    /// An epoch of the device.
    Other = 3,
}

/// Type of the fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub(crate) enum Fraction {
    #[default]
    None = 0,
    /// Samples since the start of the second.
    SampleCount = 1,
    /// Picoseconds since the start of the second.
    Picoseconds = 2,
    /// Samples since an arbitrary start, independent of seconds.
    FreeRunning = 3,
}

/// A packet's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamp {
    pub(crate) clock: Seconds,
    pub(crate) seconds: u32,
    pub(crate) kind: Fraction,
    pub(crate) fraction: u64,
}

/// Difference of two stamps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Elapsed {
    pub(crate) samples: f64,
    /// Whether it is an exact count. Otherwise it is a rounded time.
    pub(crate) is_count: bool,
}

impl Seconds {
    /// By the lowest two bits.
    pub(crate) fn read(bits: u32) -> Self {
        match bits & 3 {
            0 => Self::None,
            1 => Self::Utc,
            2 => Self::Gps,
            _ => Self::Other,
        }
    }
}

impl Fraction {
    /// By the lowest two bits.
    pub(crate) fn read(bits: u32) -> Self {
        match bits & 3 {
            0 => Self::None,
            1 => Self::SampleCount,
            2 => Self::Picoseconds,
            _ => Self::FreeRunning,
        }
    }
}

impl Stamp {
    /// A time in UTC, in nanoseconds since 1970.
    pub(crate) fn unix_time_ns(&self) -> Option<u64> {
        let second = match self.clock {
            Seconds::Utc => u64::from(self.seconds),
            Seconds::Gps => u64::from(self.seconds) + GPS_EPOCH_S - GPS_AHEAD_S,
            Seconds::None | Seconds::Other => return None,
        };
        match self.kind {
            Fraction::Picoseconds if self.fraction < PS_PER_S => {
                Some(second * NS_PER_S + self.fraction / 1_000)
            }
            _ => None,
        }
    }

    /// The stamp of a UTC time, given as whole seconds since 1970 and picoseconds. Truncates seconds to the field.
    pub(crate) fn at(clock: Seconds, unix_time_s: u64, picoseconds: u64) -> Self {
        let seconds = match clock {
            Seconds::Gps => (unix_time_s + GPS_AHEAD_S).saturating_sub(GPS_EPOCH_S),
            _ => unix_time_s,
        };
        Self { clock, seconds: seconds as u32, kind: Fraction::Picoseconds, fraction: picoseconds }
    }

    /// Samples since another stamp of the same stream, if both allow it. `rate_hz` is 0 if unknown.
    #[inline]
    pub(crate) fn since(&self, before: &Stamp, rate_hz: f64) -> Option<Elapsed> {
        if (self.clock, self.kind) != (before.clock, before.kind) {
            return None;
        }
        let seconds = f64::from(self.seconds) - f64::from(before.seconds);
        let fraction = self.fraction.wrapping_sub(before.fraction) as i64 as f64;
        match self.kind {
            Fraction::None => None,
            Fraction::FreeRunning => Some(Elapsed { samples: fraction, is_count: true }),
            Fraction::SampleCount if seconds == 0.0 => Some(Elapsed { samples: fraction, is_count: true }),
            _ if rate_hz <= 0.0 => None,
            Fraction::SampleCount => {
                Some(Elapsed { samples: (seconds * rate_hz).round() + fraction, is_count: true })
            }
            Fraction::Picoseconds if self.clock == Seconds::None => None,
            Fraction::Picoseconds => {
                Some(Elapsed { samples: (seconds * PS + fraction) / PS * rate_hz, is_count: false })
            }
        }
    }
}

/// As a text, for descriptions.
impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = match self.clock {
            Seconds::None => "no clock",
            Seconds::Utc => "UTC",
            Seconds::Gps => "GPS time",
            Seconds::Other => "a clock of its own",
        };
        let fraction = match self.kind {
            Fraction::None => "",
            Fraction::SampleCount => ", samples counted each second",
            Fraction::Picoseconds => " in picoseconds",
            Fraction::FreeRunning => ", samples counted",
        };
        write!(f, "{clock}{fraction}")
    }
}

const GPS_EPOCH_S: u64 = 315_964_800;
/// Leap seconds between both clocks since 2017. None is planned before 2035.
const GPS_AHEAD_S: u64 = 18;
pub(crate) const PS_PER_S: u64 = 1_000_000_000_000;
const PS: f64 = PS_PER_S as f64;
const NS_PER_S: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(clock: Seconds, seconds: u32, kind: Fraction, fraction: u64) -> Stamp {
        Stamp { clock, seconds, kind, fraction }
    }

    #[test]
    fn gps_and_utc_are_the_same_moment() {
        // 2024-01-01T00:00:00Z is GPS second 1,388,102,418.
        let gps = stamp(Seconds::Gps, 1_388_102_418, Fraction::Picoseconds, 5_000);
        assert_eq!(gps.unix_time_ns(), Some(1_704_067_200_000_000_005));
        assert_eq!(Stamp::at(Seconds::Gps, 1_704_067_200, 5_000), gps);
        let utc = Stamp::at(Seconds::Utc, 1_704_067_200, 5_000);
        assert_eq!(utc.unix_time_ns(), gps.unix_time_ns());
        assert_eq!(Stamp { fraction: PS_PER_S, ..utc }.unix_time_ns(), None, "an invalid fraction");
        assert_eq!(Stamp { kind: Fraction::SampleCount, ..utc }.unix_time_ns(), None);
    }

    #[test]
    fn a_stamp_difference_is_counted_in_samples() {
        use Fraction::{FreeRunning, None as Nothing, Picoseconds, SampleCount};
        let since = |kind, before: (u32, u64), after: (u32, u64), rate_hz| {
            let of = |(seconds, fraction)| stamp(Seconds::Utc, seconds, kind, fraction);
            of(after).since(&of(before), rate_hz).map(|elapsed| elapsed.samples)
        };
        assert_eq!(since(FreeRunning, (1, 5), (2, 3), 0.0), Some(-2.0));
        assert_eq!(since(FreeRunning, (1, u64::MAX), (1, 3), 0.0), Some(4.0), "it begins again");
        assert_eq!(since(SampleCount, (1, 990), (1, 999), 0.0), Some(9.0));
        assert_eq!(since(SampleCount, (1, 990), (3, 7), 1_000.0), Some(1_017.0));
        assert_eq!(since(SampleCount, (1, 990), (3, 7), 0.0), None, "a second has how many?");
        assert_eq!(since(Picoseconds, (1, PS_PER_S - 500_000_000), (2, 500_000_000), 1e6), Some(1_000.0));
        assert_eq!(since(Nothing, (1, 0), (2, 0), 1e6), None);
        let (one, two) = (stamp(Seconds::Utc, 1, Picoseconds, 0), stamp(Seconds::Gps, 1, Picoseconds, 0));
        assert_eq!(one.since(&two, 1e6), None, "another clock");
    }
}
