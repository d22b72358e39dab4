//! The device's clock: samples missing before a read, and times of samples.

use std::time::{SystemTime, UNIX_EPOCH};

use super::sys::Read;

/// Follows the times that a driver returns with reads, if it returns any.
#[derive(Debug, Default)]
pub(super) struct DeviceTime {
    before: Option<Before>,
    /// Whether the driver has reported a loss since.
    is_suspect: bool,
    /// Gaps by the clock that the driver has not reported yet. Some drivers report later, between the samples.
    unreported: u64,
    /// Times that the clock went back.
    backward: u32,
    offset: Option<Offset>,
    /// Whether its time is UTC. `None`: it returned none yet.
    is_utc: Option<bool>,
}

/// A time, and the samples since.
#[derive(Debug, Clone, Copy)]
struct Before {
    time_ns: i64,
    samples: u64,
}

/// Samples missing before a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Nothing,
    /// Per channel, by the device's clock.
    Samples(u64),
    /// The driver reports a loss without its length.
    Unknown,
}

impl DeviceTime {
    /// The driver reports a loss before the next read.
    pub(super) fn suspect(&mut self) {
        self.is_suspect = true;
    }

    /// Whether a reported loss has not been handled yet.
    pub(super) fn is_suspect(&self) -> bool {
        self.is_suspect
    }

    /// Starts over: the next read is unrelated to the previous ones.
    pub(super) fn forget(&mut self) {
        (self.before, self.offset, self.is_suspect, self.unreported) = (None, None, false, 0);
    }

    /// Handles a read.
    pub(super) fn step(&mut self, read: &Read, rate_hz: f64) -> Missing {
        let reported = std::mem::take(&mut self.is_suspect);
        let samples = read.samples as u64;
        let time_ns = read.time_ns.filter(|_| self.backward < BACKWARD_MAX);
        let ahead = time_ns.zip(self.before).map(|(time_ns, before)| {
            let elapsed = time_ns.saturating_sub(before.time_ns) as f64 / 1e9 * rate_hz;
            (elapsed - before.samples as f64, before.samples)
        });
        match (time_ns, &mut self.before) {
            (Some(time_ns), before) => *before = Some(Before { time_ns, samples }),
            (None, Some(before)) => before.samples += samples,
            (None, None) => {}
        }
        let Some((ahead, since)) = ahead else {
            if reported {
                self.offset = None;
            }
            return if reported { Missing::Unknown } else { Missing::Nothing };
        };
        // Drivers round to nanoseconds, and their clocks deviate from the rate.
        let tolerance = 0.5 + since as f64 * DRIFT;
        if ahead > tolerance && ahead <= rate_hz * GAP_S_MAX {
            self.unreported += u64::from(!reported);
            return Missing::Samples(ahead.round().max(1.0) as u64);
        }
        if ahead < -tolerance && !reported {
            // The first time, a user has set the clock. More often, the clock does not follow the samples.
            self.backward += 1;
            self.offset = None;
        }
        if reported && self.unreported == 0 {
            return Missing::Unknown;
        }
        self.unreported -= u64::from(reported);
        Missing::Nothing
    }

    /// Time of the first sample of a read.
    ///
    /// If the device's time is UTC, it is that. Otherwise it is on the clock of `now_ns`, the time of the read's
    /// return. Samples then follow the device's time, or without one their number, and none is later than its arrival.
    /// `index` is the sample's index.
    pub(super) fn stamp_ns(&mut self, read: &Read, index: u64, rate_hz: f64, now_ns: u64) -> u64 {
        if rate_hz <= 0.0 {
            return now_ns;
        }
        let time_ns = read.time_ns.filter(|_| self.backward < BACKWARD_MAX);
        if let Some(time_ns) = time_ns
            && *self.is_utc.get_or_insert_with(|| is_utc(time_ns))
        {
            return time_ns as u64;
        }
        let device_ns = match (time_ns, self.before) {
            (Some(time_ns), _) => time_ns,
            (None, Some(Before { time_ns, samples })) => {
                let since = samples.saturating_sub(read.samples as u64);
                time_ns.saturating_add((since as f64 / rate_hz * 1e9) as i64)
            }
            (None, None) => (index as f64 / rate_hz * 1e9) as i64,
        };
        let end_ns = device_ns.saturating_add((read.samples as f64 / rate_hz * 1e9) as i64);
        let apart_ns = (now_ns as i64).saturating_sub(end_ns);
        let offset = self.offset.get_or_insert(Offset { ns: apart_ns, least_ns: apart_ns, began_ns: now_ns });
        offset.take(apart_ns, now_ns);
        device_ns.saturating_add(offset.ns).max(0) as u64
    }

    /// Whether the device's time is UTC.
    pub(super) fn is_utc(&self) -> bool {
        self.is_utc == Some(true)
    }

    /// Samples between the last read and `time_ns` of the device, at which a setting takes effect. 0 if the driver
    /// returns no times.
    pub(super) fn samples_until(&self, time_ns: i64, rate_hz: f64) -> u64 {
        let Some(before) = self.before.filter(|_| self.backward < BACKWARD_MAX) else { return 0 };
        let ahead = time_ns.saturating_sub(before.time_ns) as f64 / 1e9 * rate_hz - before.samples as f64;
        ahead.clamp(0.0, rate_hz * AHEAD_S_MAX).round() as u64
    }
}

/// No gap exceeds the possible length, for any times and loss reports of a driver.
#[cfg(fuzzing)]
pub(crate) fn fuzz(rate_hz: f64, reads: &[(u16, Option<i64>, bool)]) {
    let (mut time, mut index) = (DeviceTime::default(), 0);
    for &(samples, time_ns, is_told) in reads {
        if is_told {
            time.suspect();
        }
        let read = Read { samples: usize::from(samples).max(1), time_ns };
        let missing = time.step(&read, rate_hz);
        if let Missing::Samples(missing) = missing {
            assert!(missing >= 1 && missing as f64 <= rate_hz * GAP_S_MAX + 1.0);
        }
        time.stamp_ns(&read, index, rate_hz, 1_000_000_000 + index);
        assert!(time.samples_until(time_ns.unwrap_or(0), rate_hz) as f64 <= rate_hz * AHEAD_S_MAX + 1.0);
        index += read.samples as u64;
    }
}

/// Offset of two clocks: the minimum over a recent window, because reads are delayed and never early.
#[derive(Debug)]
struct Offset {
    ns: i64,
    least_ns: i64,
    began_ns: u64,
}

impl Offset {
    fn take(&mut self, apart_ns: i64, now_ns: u64) {
        self.ns = self.ns.min(apart_ns);
        self.least_ns = self.least_ns.min(apart_ns);
        if now_ns.saturating_sub(self.began_ns) >= WINDOW_NS {
            *self = Self { ns: self.least_ns, least_ns: apart_ns, began_ns: now_ns };
        }
    }
}

/// A clock within a day of this machine's has been set. Any other counts from the device's start.
fn is_utc(time_ns: i64) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (i128::from(time_ns) - now.as_nanos() as i128).unsigned_abs() < DAY_NS
}

/// Tolerated error of a read's length.
const DRIFT: f64 = 50e-6;
/// A larger jump is not a gap: the clock was set.
const GAP_S_MAX: f64 = 600.0;
/// Maximum delay until a setting takes effect.
const AHEAD_S_MAX: f64 = 2.0;
const BACKWARD_MAX: u32 = 3;
/// Two oscillators drift apart by up to a millisecond in that time.
const WINDOW_NS: u64 = 10_000_000_000;
const DAY_NS: u128 = 86_400_000_000_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RATE_HZ: f64 = 2.4e6;

    fn read(samples: usize, index: Option<u64>) -> Read {
        Read { samples, time_ns: index.map(|index| (index as f64 / RATE_HZ * 1e9).round() as i64) }
    }

    #[test]
    fn without_times_a_loss_that_is_told_has_no_length() {
        let mut time = DeviceTime::default();
        assert_eq!(time.step(&read(100, None), RATE_HZ), Missing::Nothing);
        time.suspect();
        assert_eq!(time.step(&read(100, None), RATE_HZ), Missing::Unknown);
        assert_eq!(time.step(&read(100, None), RATE_HZ), Missing::Nothing);
    }

    #[test]
    fn a_loss_is_found_by_the_clock_without_a_report() {
        let mut time = DeviceTime::default();
        time.step(&read(100, Some(0)), RATE_HZ);
        assert_eq!(
            time.step(&read(50, None), RATE_HZ),
            Missing::Nothing,
            "a part of the loss reported before"
        );
        assert_eq!(time.step(&read(100, Some(157)), RATE_HZ), Missing::Samples(7));
        time.suspect();
        let later = time.step(&read(100, Some(257)), RATE_HZ);
        assert_eq!(later, Missing::Nothing, "told later than the clock showed it");
        time.suspect();
        assert_eq!(time.step(&read(100, Some(357)), RATE_HZ), Missing::Unknown, "not by the clock");
    }

    #[test]
    fn a_clock_that_runs_backwards_repeatedly_is_ignored() {
        let mut time = DeviceTime::default();
        let jitter = [0, 500, 90, 800, 300, 1_000, 400, 9_000]
            .map(|index| time.step(&read(100, Some(index)), RATE_HZ));
        assert_eq!(jitter[2], Missing::Nothing);
        assert_eq!(jitter[7], Missing::Nothing, "nobody asks it any more: {jitter:?}");
        let mut set = DeviceTime::default();
        set.step(&read(100, Some(0)), RATE_HZ);
        let later = (RATE_HZ * 3600.0) as u64;
        assert_eq!(set.step(&read(100, Some(later)), RATE_HZ), Missing::Nothing, "somebody has set it");
        assert_eq!(set.step(&read(100, Some(later + 101)), RATE_HZ), Missing::Samples(1));
    }

    #[test]
    fn stamps_follow_the_samples_and_not_when_they_were_handed_over() {
        let mut time = DeviceTime::default();
        // Ten blocks of a millisecond at once, then ten more, as they arrive over USB.
        let mut stamp = |block: u64| {
            let now_ns = 1_000_000_000 + block / 10 * 10_000_000 + block % 10 * 1_000;
            let stamp_ns = time.stamp_ns(&read(2_400, None), block * 2_400, RATE_HZ, now_ns);
            assert!(stamp_ns + 1_000_000 <= now_ns, "no sample is later than it came");
            stamp_ns
        };
        (0..10).for_each(|block| {
            stamp(block);
        });
        let stamps: Vec<u64> = (10..20).map(stamp).collect();
        assert!(stamps.windows(2).all(|pair| pair[1] - pair[0] == 1_000_000), "{stamps:?}");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64;
        let mut utc = DeviceTime::default();
        assert_eq!(utc.stamp_ns(&Read { samples: 5, time_ns: Some(now) }, 0, RATE_HZ, 77), now as u64);
        assert!(utc.is_utc());
    }

    #[test]
    fn impossible_times_make_no_huge_gap() {
        let mut time = DeviceTime::default();
        for time_ns in [i64::MIN, i64::MAX, 0, i64::MIN] {
            let read = Read { samples: 5, time_ns: Some(time_ns) };
            assert_eq!(time.step(&read, RATE_HZ), Missing::Nothing);
            time.stamp_ns(&read, 0, RATE_HZ, 77);
            assert!(time.samples_until(i64::MAX, RATE_HZ) as f64 <= RATE_HZ * AHEAD_S_MAX);
        }
    }

    #[test]
    fn a_setting_holds_from_the_sample_of_its_time_on() {
        let mut time = DeviceTime::default();
        assert_eq!(time.samples_until(1_000_000, RATE_HZ), 0);
        time.step(&read(2_400, Some(0)), RATE_HZ);
        assert_eq!(time.samples_until(3_000_000, RATE_HZ), 4_800);
        assert_eq!(time.samples_until(500_000, RATE_HZ), 0, "it was read already");
    }

    proptest! {
        /// The clock gives the number of missing samples exactly, for every gap and rate.
        #[test]
        fn every_gap_is_counted(
            rate_hz in 1_000.0..250e6f64,
            steps in prop::collection::vec((1usize..70_000, prop_oneof![3 => Just(0u64), 1 => 1u64..100_000], any::<bool>()), 1..60),
        ) {
            let mut time = DeviceTime::default();
            let mut index = 12_345u64;
            for (at, (samples, gap, is_told)) in steps.into_iter().enumerate() {
                // Smaller gaps lie within the tolerance of a read's length.
                let gap = if at > 0 && gap > 0 { gap + 5 } else { 0 };
                index += gap;
                if is_told && gap > 0 {
                    time.suspect();
                }
                let time_ns = Some((index as f64 / rate_hz * 1e9).round() as i64);
                let expected = if gap > 0 { Missing::Samples(gap) } else { Missing::Nothing };
                prop_assert_eq!(time.step(&Read { samples, time_ns }, rate_hz), expected);
                index += samples as u64;
            }
        }
    }
}
