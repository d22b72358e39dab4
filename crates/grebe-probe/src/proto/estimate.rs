//! Figures with 95 % intervals.

use serde::Serialize;

/// A figure and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Figure between two bounds, which may be in any order.
    pub fn new(value: f64, low: f64, high: f64) -> Self {
        Self { value, low: low.min(value), high: high.max(value) }
    }

    /// Figure that is known exactly.
    pub fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// Figure with an error of `error` to either side.
    pub fn around(value: f64, error: f64) -> Self {
        Self::new(value, value - error.abs(), value + error.abs())
    }

    /// Shifts figure and bounds by an offset.
    pub(crate) fn shifted(self, by: f64) -> Self {
        Self::new(self.value + by, self.low + by, self.high + by)
    }

    /// Scales figure and bounds to another unit.
    pub fn scaled(self, factor: f64) -> Self {
        Self::new(self.value * factor, self.low * factor, self.high * factor)
    }

    /// Raises negative values to zero, for figures that cannot be negative.
    pub fn at_least_zero(self) -> Self {
        Self { value: self.value.max(0.0), low: self.low.max(0.0), high: self.high.max(0.0) }
    }

    /// Whether the interval contains `truth`.
    #[cfg(test)]
    pub(crate) fn contains(&self, truth: f64) -> bool {
        (self.low..=self.high).contains(&truth)
    }
}

/// Share of events among trials, with Wilson's interval. `design_effect` divides the number of trials,
/// because events are clustered; 1: independent trials.
pub(crate) fn share(events: f64, trials: f64, design_effect: f64) -> Estimate {
    if trials <= 0.0 {
        return Estimate::new(0.0, 0.0, 1.0);
    }
    let (n, p) = ((trials / design_effect.max(1.0)).max(1.0), (events / trials).clamp(0.0, 1.0));
    let z2 = Z95 * Z95;
    let centre = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z95 / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    Estimate::new(p, (centre - half).max(0.0), (centre + half).min(1.0))
}

/// Mean of independent values, with Student's interval.
pub(crate) fn mean(values: &[f64]) -> Estimate {
    let n = values.len() as f64;
    if values.is_empty() {
        return Estimate::exact(0.0);
    }
    let mean = values.iter().sum::<f64>() / n;
    if values.len() == 1 {
        return Estimate::exact(mean);
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Estimate::around(mean, student95(values.len() - 1) * (variance / n).sqrt())
}

/// `q`-quantile (0 to 1) of sorted values. Its interval uses order statistics and holds for any distribution.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> Estimate {
    let Some(last) = sorted.len().checked_sub(1) else { return Estimate::exact(0.0) };
    let n = sorted.len() as f64;
    let half = Z95 * (n * q * (1.0 - q)).sqrt();
    let at = |place: f64| sorted[(place.max(0.0) as usize).min(last)];
    Estimate::new(at(q * last as f64), at((n * q - half).floor()), at((n * q + half).ceil()))
}

/// Two-sided 95 % quantile of Student's distribution.
fn student95(degrees: usize) -> f64 {
    const TABLE: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    match degrees {
        0 => f64::INFINITY,
        1..=10 => TABLE[degrees - 1],
        // Within 0.5 % of the true value from here on.
        _ => Z95 * (1.0 + 1.25 / degrees as f64),
    }
}

const Z95: f64 = 1.959_964;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn textbook_values() {
        let wilson = share(5.0, 100.0, 1.0);
        assert!((wilson.low - 0.0215).abs() < 1e-3 && (wilson.high - 0.1118).abs() < 1e-3, "{wilson:?}");
        assert!(share(10.0, 1_000.0, 5.0).high > share(10.0, 1_000.0, 1.0).high);
        assert!(share(0.0, 1_000.0, 1.0).high < 0.004 && share(0.0, 1_000.0, 1.0).low == 0.0);
        let mean = mean(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(mean.value == 3.0 && (mean.high - 4.963).abs() < 0.01, "{mean:?}");
        let sorted: Vec<f64> = (0..1_001).map(f64::from).collect();
        let median = quantile(&sorted, 0.5);
        assert!(median.value == 500.0 && median.low < 475.0 && median.high > 525.0, "{median:?}");
    }

    #[test]
    fn nothing_measured_is_nothing_known() {
        assert_eq!(share(0.0, 0.0, 1.0), Estimate { value: 0.0, low: 0.0, high: 1.0 });
        assert_eq!((mean(&[]).value, quantile(&[], 0.5).value), (0.0, 0.0));
    }

    proptest! {
        #[test]
        fn intervals_are_in_order(events in 0_u32..500, more in 0_u32..5_000, effect in 0.1_f64..50.0, q in 0.0_f64..=1.0) {
            let share = share(f64::from(events), f64::from(events + more), effect);
            prop_assert!(share.low <= share.value && share.value <= share.high && share.high <= 1.0);
            let sorted: Vec<f64> = (0..events).map(f64::from).collect();
            let quantile = quantile(&sorted, q);
            prop_assert!(quantile.low <= quantile.value && quantile.value <= quantile.high);
        }
    }
}
