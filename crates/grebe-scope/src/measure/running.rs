//! Statistics of a number that is measured again and again.

/// Count, smallest, mean, largest and deviation of the values added.
///
/// ```
/// let mut running = grebe_scope::Running::default();
/// for value in [1.0, 2.0, 3.0] {
///     running.add(value);
/// }
/// assert_eq!((running.count(), running.mean(), running.deviation()), (3, Some(2.0), Some(1.0)));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Running {
    count: u64,
    min: f64,
    max: f64,
    mean: f64,
    /// Sum of squared distances from the mean (Welford's method: no cancellation).
    squares: f64,
}

impl Running {
    /// Adds a value; NaN is left out.
    pub fn add(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        (self.min, self.max) =
            if self.count == 0 { (value, value) } else { (self.min.min(value), self.max.max(value)) };
        self.count += 1;
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value - self.mean);
    }

    /// Values added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Smallest; `None` without values.
    pub fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min)
    }

    /// Largest; `None` without values.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }

    /// Mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// Standard deviation of a sample (divided by one less than the count); `None` below two values.
    pub fn deviation(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }
}
