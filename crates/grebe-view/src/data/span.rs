//! Time spans in steps of 1-2-5, as a bench instrument has them.

use grebe_scope::{step_125_down, step_125_up};

/// The next shorter span, at least 10 samples of `rate_hz`.
pub(crate) fn shorter(span: f64, rate_hz: f64) -> f64 {
    let least = 10.0 / if rate_hz > 0.0 { rate_hz } else { 1.0 };
    step_125_down(span * 0.9).max(step_125_up(least))
}

/// The next longer span, at most ten days.
pub(crate) fn longer(span: f64) -> f64 {
    step_125_up(span * 1.1).min(1e6)
}

/// The span to begin with: some 200,000 samples, at most ten seconds.
pub(crate) fn default_span(rate_hz: f64) -> f64 {
    if rate_hz > 0.0 { step_125_up(2e5 / rate_hz).min(10.0) } else { 1e4 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_step_by_1_2_5_within_their_limits() {
        assert_eq!(longer(1e-3), 2e-3);
        assert_eq!(longer(2e-3), 5e-3);
        assert_eq!(shorter(1e-3, 25e6), 5e-4);
        assert_eq!(shorter(5e-7, 25e6), 5e-7, "ten samples at 25 MS/s are 400 ns");
        assert_eq!(longer(1e6), 1e6);
        assert_eq!(default_span(360.0), 10.0);
        assert_eq!(default_span(25e6), 0.01);
        assert_eq!(default_span(0.0), 1e4);
    }
}
