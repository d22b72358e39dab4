//! Restatement of the relation between samples and the clock of a host.

use std::time::Duration;

use grebe_frame::AxisTime;

use super::captured::Captured;
use crate::sample_file::RecordedAt;

/// The axis in the current capture, and whether the stream has stated another since.
#[derive(Debug, Default)]
pub(super) struct StatedAxis {
    stated: Option<(AxisTime, u64)>,
    is_due: bool,
}

impl StatedAxis {
    /// A capture begins with this sample.
    pub(super) fn begin(&mut self, first_sample_index: u64, axis: Option<AxisTime>) {
        *self = Self { stated: axis.map(|axis| (axis, first_sample_index)), is_due: false };
    }

    /// The stream says something that may be new.
    pub(super) fn hear(&mut self) {
        self.is_due = true;
    }

    /// Whether a new statement is pending.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Whether a capture must begin with this sample, because the stream's axis differs from an extrapolation
    /// of the previous capture: another clock, another place, or a much smaller error.
    pub(super) fn is_outdated(
        &mut self,
        first_sample_index: u64,
        axis: Option<AxisTime>,
        rate_hz: f64,
    ) -> bool {
        self.is_due = false;
        let Some(now) = axis else { return false };
        let Some((stated, from)) = self.stated.filter(|(stated, _)| stated.clock == now.clock) else {
            return true;
        };
        if rate_hz <= 0.0 {
            return false;
        }
        let samples = i128::from(first_sample_index) - i128::from(from);
        is_misread(stated.after((samples as f64 / rate_hz * 1e9).round() as i64), now)
    }
}

/// Whether the extrapolation of an earlier statement is wrong for a sample: another clock, another place, or
/// a much larger error than that of the current one.
pub(crate) fn is_misread(read: AxisTime, now: AxisTime) -> bool {
    read.clock != now.clock
        || read.ns.abs_diff(now.ns) > now.error_ns / 2 + NOTHING_NS
        || read.error_ns > now.error_ns.saturating_mul(3).saturating_add(UNSURE_NS)
}

/// Restates in UTC the times of captures made before the clock of their host was measured, from the later
/// capture `measured`, so that all share one axis. By the clock that stamped them they stay.
pub(super) fn restate(captures: &mut [Captured], measured: &Captured, rate_hz: f64) {
    let Some((at, axis)) = measured.recorded_at.and_then(|at| Some((at, at.axis?))) else { return };
    if axis.error_ns == 0 || rate_hz <= 0.0 {
        return;
    }
    let mut next_index = measured.first_sample_index;
    for capture in captures.iter_mut().rev() {
        let Some(stated) = capture.recorded_at.filter(|_| capture.first_sample_index <= next_index) else {
            return;
        };
        // An axis by the same clock, or a restated one, is right already.
        let Some(stamped) = stated.axis.filter(|stated| stated.clock != axis.clock && stated.error_ns == 0)
        else {
            return;
        };
        next_index = capture.first_sample_index;
        let since_ns = (measured.first_sample_index - next_index) as f64 / rate_hz * 1e9;
        let there = axis.after(-(since_ns.round() as i64));
        let since = Duration::from_nanos(axis.ns.saturating_sub(there.ns).max(0) as u64);
        let error_ns = at.error_ns.map(|error_ns| error_ns + (there.error_ns - axis.error_ns));
        if let Some(time) = at.time.checked_sub(since) {
            capture.recorded_at = Some(RecordedAt { time, error_ns, axis: Some(stamped) });
        }
    }
}

/// Rounding error of times at a rate whose period is not a whole number of nanoseconds.
const NOTHING_NS: u64 = 5_000;
/// As sure as alignment is wanted.
const UNSURE_NS: u64 = 50_000;

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn axis(clock: u64, ns: i64, error_ns: u64, drift_error_ppb: u64) -> Option<AxisTime> {
        Some(AxisTime { clock, ns, error_ns, drift_ppb: 20_000, drift_error_ppb })
    }

    #[test]
    fn captures_before_the_clock_measurement_get_times_by_it() {
        let captured = |first_sample_index, time_s: u64, axis| Captured {
            position: first_sample_index,
            first_sample_index,
            recorded_at: Some(RecordedAt {
                time: SystemTime::UNIX_EPOCH + Duration::from_secs(time_s),
                error_ns: Some(7),
                axis,
            }),
            description: None,
            stripe_start: None,
        };
        let own = axis(1, 5, 0, 0);
        let mut captures =
            vec![captured(0, 9, axis(3, 1, 40, 0)), captured(10, 8, own), captured(500, 8, own)];
        let measured = captured(1_000, 100, axis(2, 77, 40, 1_000));
        restate(&mut captures, &measured, 1e3);
        // Half a second and 990 ms before, by a clock that 20 parts in a million of that go by on quicker.
        let made = captures.iter().map(|it| it.recorded_at.unwrap()).collect::<Vec<_>>();
        let before = |ns| SystemTime::UNIX_EPOCH + Duration::from_secs(100) - Duration::from_nanos(ns);
        assert_eq!((made[2].time, made[2].error_ns, made[2].axis), (before(499_990_000), Some(507), own));
        assert_eq!((made[1].time, made[1].error_ns), (before(989_980_200), Some(997)));
        assert_eq!(made[0], captured(0, 9, axis(3, 1, 40, 0)).recorded_at.unwrap(), "it was measured");
    }

    #[test]
    fn a_capture_begins_where_the_one_before_would_be_read_wrongly() {
        let mut stated = StatedAxis::default();
        assert!(stated.is_outdated(0, axis(1, 0, 100, 0), 1e3), "nothing was stated");
        stated.begin(0, axis(1, 0, 100, 1_000));
        assert!(!stated.is_due());
        stated.hear();
        assert!(stated.is_due());
        // A second later by the samples, whose clock is 20 us a second faster.
        assert!(!stated.is_outdated(1_000, axis(1, 999_980_000, 100, 900), 1e3) && !stated.is_due());
        assert!(!stated.is_outdated(1_000, None, 1e3));
        assert!(stated.is_outdated(1_000, axis(1, 999_990_000, 100, 900), 1e3), "elsewhere");
        assert!(stated.is_outdated(1_000, axis(2, 999_980_000, 100, 900), 1e3), "by another clock");
        // After a hundred seconds it is 100 us less sure.
        assert!(stated.is_outdated(100_000, axis(1, 99_998_000_000, 100, 900), 1e3), "surer");
        assert!(!stated.is_outdated(100_000, axis(1, 99_998_000_000, 50_000, 900), 1e3), "as sure");
        assert!(!stated.is_outdated(100_000, axis(1, 5, 0, 0), 0.0), "who knows");
    }
}
