//! When a recording states anew how its samples relate to the clock of a host.

use grebe_frame::AxisTime;

/// What the capture that is written says of it, and whether the stream has said something since.
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

    /// Whether what it said has not been looked at.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Whether a capture has to begin with this sample, because the stream says of it what nobody would read off the capture before: by
    /// another clock, elsewhere, or much surer.
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
        let stated = stated.after((samples as f64 / rate_hz * 1e9).round() as i64);
        stated.ns.abs_diff(now.ns) > now.error_ns / 2 + NOTHING_NS
            || stated.error_ns > 3 * now.error_ns + UNSURE_NS
    }
}

/// What times differ by that a rate which is no whole number of nanoseconds rounds.
const NOTHING_NS: u64 = 5_000;
/// As sure as alignment is wanted.
const UNSURE_NS: u64 = 50_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(clock: u64, ns: i64, error_ns: u64, drift_error_ppb: u64) -> Option<AxisTime> {
        Some(AxisTime { clock, ns, error_ns, drift_ppb: 20_000, drift_error_ppb })
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
