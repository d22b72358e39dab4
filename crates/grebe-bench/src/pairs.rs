//! Two techniques measured in turns, and the ratio of the pairs.

use crate::error::Result;
use crate::row::digits;
use crate::runs::Spread;

/// Two techniques measured in turns: a value of each per pair.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pairs {
    pub ours: Vec<f64>,
    pub baseline: Vec<f64>,
}

impl Pairs {
    /// Measures `ours` and `baseline` in turns; which is first alternates.
    pub(crate) fn measure(
        pairs: usize,
        mut ours: impl FnMut() -> Result<f64>,
        mut baseline: impl FnMut() -> Result<f64>,
    ) -> Result<Self> {
        let mut this = Self::default();
        for pair in 0..pairs.max(1) {
            if pair % 2 == 1 {
                this.ours.push(ours()?);
            }
            this.baseline.push(baseline()?);
            if pair % 2 == 0 {
                this.ours.push(ours()?);
            }
        }
        Ok(this)
    }

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

/// `median (low-high)` with three digits each; the range only where there is one.
pub(crate) fn range(of: &Spread) -> String {
    let [low, median, high] = [of.low, of.median, of.high].map(digits);
    if low == high { median } else { format!("{median} ({low}-{high})") }
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
    use serde_json::json;

    use super::*;
    use crate::row::{Row, markdown};

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
    fn the_order_of_measurement_alternates_between_pairs() {
        let order = std::cell::RefCell::new(String::new());
        let mark = |letter: char| {
            order.borrow_mut().push(letter);
            Ok(1.0)
        };
        Pairs::measure(3, || mark('o'), || mark('b')).unwrap();
        assert_eq!(order.into_inner(), "boobbo");
    }

    #[test]
    fn a_column_shows_a_range_only_if_there_is_one() {
        let row = |high| {
            let text = range(&Spread { low: 1.0, median: 2.0, high });
            Row::new("Rates", &json!({})).range("GB/s", text)
        };
        let single = Row::new("Rates", &json!({})).range("GB/s", range(&Spread::of(&[2.0])));
        let table = markdown(std::slice::from_ref(&single));
        assert!(table.contains("| GB/s |"), "{table}");
        assert!(markdown(&[single.clone(), row(3.0)]).contains("| GB/s (range) |"));
        assert_eq!(
            (single.line().as_str(), row(3.0).line().as_str()),
            ("2.00 GB/s", "2.00 (1.00-3.00) GB/s")
        );
    }
}
