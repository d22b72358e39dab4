//! Peak rate of a stream.

/// Peak rate of a stream. An application that writes in bursts must not wait for the window to grow again.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct PeakRate {
    since_us: u64,
    since_bytes: u64,
    /// Bytes per microsecond.
    pub(super) greatest: f64,
}

impl PeakRate {
    /// Takes the bytes delivered so far.
    pub(super) fn on_report(&mut self, now_us: u64, delivered_bytes: u64) {
        let span_us = now_us.saturating_sub(self.since_us);
        if span_us < PEAK_SPAN_US {
            return;
        }
        if span_us < PEAK_SPAN_US_MAX {
            self.greatest = self.greatest.max((delivered_bytes - self.since_bytes) as f64 / span_us as f64);
        }
        (self.since_us, self.since_bytes) = (now_us, delivered_bytes);
    }
}

/// Span of a rate measurement. A pause in it would make the rate too low.
const PEAK_SPAN_US: u64 = 100_000;
const PEAK_SPAN_US_MAX: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_does_not_make_the_window_small() {
        let mut peak = PeakRate::default();
        for second in 0..3_u64 {
            for tenth in 0..10 {
                let now_us = second * 60_000_000 + tenth * 100_000;
                peak.on_report(now_us, second * 1_000_000 + tenth * 100_000);
            }
        }
        assert_eq!(peak.greatest, 1.0);
    }
}
