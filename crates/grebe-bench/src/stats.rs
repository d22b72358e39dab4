//! What several runs say together: median and range, and the ratio of two sides measured in turns.

use serde::{Deserialize, Serialize};

use crate::error::Result;

/// What several runs measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    /// The smallest.
    pub low: f64,
    /// The middle one.
    pub median: f64,
    /// The largest.
    pub high: f64,
}

/// Two techniques measured in turns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pairs {
    /// Ours, one value per pair.
    pub ours: Vec<f64>,
    /// The baseline of the same pair.
    pub baseline: Vec<f64>,
}

/// Measures `ours` and `baseline` in turns, `pairs` times; which is first alternates.
pub(crate) fn interleave(
    pairs: usize,
    mut ours: impl FnMut() -> Result<f64>,
    mut baseline: impl FnMut() -> Result<f64>,
) -> Result<Pairs> {
    let mut result = Pairs { ours: Vec::new(), baseline: Vec::new() };
    for pair in 0..pairs.max(1) {
        if pair % 2 == 0 {
            result.baseline.push(baseline()?);
            result.ours.push(ours()?);
        } else {
            result.ours.push(ours()?);
            result.baseline.push(baseline()?);
        }
    }
    Ok(result)
}

impl Spread {
    /// Of what `value` says of each.
    pub(crate) fn over<T>(all: &[T], value: impl Fn(&T) -> f64) -> Self {
        Self::of(&all.iter().map(value).collect::<Vec<_>>())
    }

    /// Of these values; zeros where there are none.
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |position: usize| sorted.get(position).copied().unwrap_or(0.0);
        let middle = sorted.len() / 2;
        let median = if sorted.len().is_multiple_of(2) {
            (at(middle.saturating_sub(1)) + at(middle)) / 2.0
        } else {
            at(middle)
        };
        Self { low: at(0), median, high: at(sorted.len().saturating_sub(1)) }
    }
}

impl Pairs {
    /// The median of the ratios of the pairs: what slows both sides of a pair alike does not show in it.
    pub(crate) fn ratio(&self) -> f64 {
        Spread::of(&self.ratios()).median
    }

    /// The 95 % interval of the mean ratio (geometric, by Student's t); `None` for fewer than three pairs.
    pub(crate) fn interval(&self) -> Option<(f64, f64)> {
        let logs: Vec<f64> = self.ratios().iter().map(|ratio| ratio.ln()).collect();
        let count = logs.len() as f64;
        if logs.len() < 3 || logs.iter().any(|log| !log.is_finite()) {
            return None;
        }
        let mean = logs.iter().sum::<f64>() / count;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let reach = student_t(count - 1.0) * (variance / count).sqrt();
        Some(((mean - reach).exp(), (mean + reach).exp()))
    }

    fn ratios(&self) -> Vec<f64> {
        self.ours.iter().zip(&self.baseline).map(|(ours, baseline)| ours / baseline).collect()
    }
}

/// The 97.5 % point of Student's t, to 1 % from two degrees of freedom on (Cornish and Fisher's expansion).
fn student_t(freedom: f64) -> f64 {
    let z: f64 = 1.959_964;
    z + (z.powi(3) + z) / (4.0 * freedom)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom.powi(2))
        + (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * freedom.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_t_is_that_of_the_tables() {
        for (freedom, expected) in [(3.0, 3.182), (4.0, 2.776), (9.0, 2.262), (19.0, 2.093), (99.0, 1.984)] {
            let got = student_t(freedom);
            assert!((got / expected - 1.0).abs() < 0.02, "{freedom}: {got}, not {expected}");
        }
    }

    #[test]
    fn a_slow_minute_does_not_show_in_the_ratio() {
        let pairs = Pairs { ours: vec![50.0, 5.0, 51.0, 49.0], baseline: vec![100.0, 10.0, 100.0, 100.0] };
        assert!((pairs.ratio() - 0.5).abs() < 0.01);
        let (low, high) = pairs.interval().unwrap();
        assert!(low < 0.5 && 0.5 < high && high - low < 0.1, "{low} to {high}");
        assert_eq!(Spread::of(&pairs.ours), Spread { low: 5.0, median: 49.5, high: 51.0 });
    }

    #[test]
    fn who_is_measured_first_changes_from_pair_to_pair() {
        let order = std::cell::RefCell::new(String::new());
        let mark = |letter: char| {
            order.borrow_mut().push(letter);
            Ok(1.0)
        };
        interleave(3, || mark('o'), || mark('b')).unwrap();
        assert_eq!(order.into_inner(), "boobbo");
    }
}
