//! Relation of the monotonic clock of frame stamps to UTC.

use grebe_frame::ClockReading;

use crate::clock::{monotonic_ns, realtime_ns};
use crate::clock_id::clock_id;

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "a system call without a library")]
mod kernel;

/// Relates the clock of [`monotonic_ns`] to UTC, for the [description](grebe_frame::Description) of a stream
/// stamped with it.
///
/// ```
/// use grebe_flow::{UtcClock, monotonic_ns};
///
/// let mut clock = UtcClock::default();
/// let reading = clock.renewed(monotonic_ns()).expect("the first time there is always something to say");
/// assert!(reading.producer_ts_ns <= monotonic_ns());
/// assert_eq!(clock.renewed(monotonic_ns()), None, "nothing new");
/// ```
#[derive(Debug, Default)]
pub struct UtcClock {
    said: Option<ClockReading>,
    /// Last time that both clocks were read.
    looked_ns: u64,
}

impl UtcClock {
    /// Returns a reading at the first call. Later, returns one when the wall clock was set or the system's
    /// error estimate changed. For that it reads both clocks once per minute. `now_ns` is the stamp of the
    /// next frame. Call it once per batch; it costs a comparison.
    #[inline]
    pub fn renewed(&mut self, now_ns: u64) -> Option<ClockReading> {
        if self.said.is_some() && now_ns.saturating_sub(self.looked_ns) < LOOK_EVERY_NS {
            return None;
        }
        self.look(now_ns, read())
    }

    #[cold]
    fn look(&mut self, now_ns: u64, reading: ClockReading) -> Option<ClockReading> {
        self.looked_ns = now_ns;
        if self.said.is_some_and(|said| still_holds(&said, &reading)) {
            return None;
        }
        self.said = Some(reading);
        Some(reading)
    }
}

fn still_holds(said: &ClockReading, now: &ClockReading) -> bool {
    let apart =
        |reading: &ClockReading| i128::from(reading.unix_time_ns) - i128::from(reading.producer_ts_ns);
    let is_as_good = match (said.error_ns, now.error_ns) {
        (Some(said), Some(now)) => said / 2 <= now && now / 2 <= said,
        (said, now) => said.is_none() && now.is_none(),
    };
    is_as_good && (apart(said) - apart(now)).unsigned_abs() < DRIFT_MAX_NS
}

/// Reads both clocks as closely together as possible.
fn read() -> ClockReading {
    let once = |_| {
        let before_ns = monotonic_ns();
        let unix_time_ns = realtime_ns();
        let took_ns = monotonic_ns().saturating_sub(before_ns);
        (
            took_ns,
            ClockReading {
                producer_ts_ns: before_ns + took_ns / 2,
                unix_time_ns,
                error_ns: None,
                clock: Some(clock_id()),
            },
        )
    };
    // A preempted reading takes long, so the shortest one is the most accurate.
    let best = (1..TRIES).map(once).fold(once(0), |best, next| if next.0 < best.0 { next } else { best });
    let (took_ns, reading) = best;
    ClockReading { error_ns: kernel_error_ns().map(|error_ns| error_ns + took_ns.div_ceil(2)), ..reading }
}

/// The system's estimate of its clock error.
#[cfg(target_os = "linux")]
fn kernel_error_ns() -> Option<u64> {
    kernel::error_ns()
}

#[cfg(not(target_os = "linux"))]
fn kernel_error_ns() -> Option<u64> {
    None
}

const TRIES: u32 = 8;
const LOOK_EVERY_NS: u64 = 60_000_000_000;
/// Far above the noise of two readings, and below any visible error in a recording's time.
const DRIFT_MAX_NS: u128 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = LOOK_EVERY_NS;

    fn at(producer_ts_ns: u64, ahead_ns: i64, error_ns: Option<u64>) -> ClockReading {
        ClockReading { producer_ts_ns, unix_time_ns: producer_ts_ns as i64 + ahead_ns, error_ns, clock: None }
    }

    #[test]
    fn both_clocks_are_read_together() {
        let before = realtime_ns();
        let reading = read();
        let after = realtime_ns();
        assert!((before..=after).contains(&reading.unix_time_ns));
        assert!(reading.producer_ts_ns <= monotonic_ns());
    }

    #[test]
    fn the_clock_is_stated_again_only_after_the_wall_clock_was_set() {
        let mut clock = UtcClock::default();
        let first = at(5, 1_000_000_000, Some(40_000));
        assert_eq!(clock.look(5, first), Some(first));
        assert_eq!(clock.renewed(4 + MINUTE), None, "not looked at");
        assert_eq!(
            clock.look(5 + MINUTE, at(5 + MINUTE, 1_000_020_000, Some(60_000))),
            None,
            "as good as it was"
        );
        let set = at(5 + 2 * MINUTE, -3_000_000_000, Some(60_000));
        assert_eq!(clock.look(5 + 2 * MINUTE, set), Some(set));
        let lost = at(5 + 3 * MINUTE, -3_000_000_000, None);
        assert_eq!(clock.look(5 + 3 * MINUTE, lost), Some(lost), "nobody disciplines it any more");
        let worse = at(5 + 4 * MINUTE, -3_000_000_000, Some(1_000));
        assert_eq!(clock.look(5 + 4 * MINUTE, worse), Some(worse));
        let worse = at(5 + 5 * MINUTE, -3_000_000_000, Some(2_002));
        assert_eq!(clock.look(5 + 5 * MINUTE, worse), Some(worse));
    }

    #[test]
    fn small_drifts_add_up() {
        let mut clock = UtcClock::default();
        let said = (0..100).filter_map(|minute| {
            clock.look(minute * MINUTE, at(minute * MINUTE, minute as i64 * 30_000, None))
        });
        assert_eq!(said.count(), 25, "every 120 us");
    }
}
