//! Places of output samples among input samples, where a conversion changes the rate.

use std::time::{Duration, SystemTime};

use grebe_frame::{Description, StreamAnnotation};

/// Places of output samples among input samples, exactly: the time of no sample drifts.
///
/// ```
/// use grebe_process::Grid;
///
/// let grid = Grid::between(20e6, 48e3)?.starting_at(7);
/// assert_eq!(grid.position(3), (7 + 1_250, 0.0));
/// assert_eq!(grid.first_at(8), 1);
/// # Ok::<(), grebe_process::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Output `n` lies at input `(offset + n * num) / den`.
    offset: i128,
    num: i128,
    den: i128,
}

impl Grid {
    /// Each `factor`-th sample, from index 0 on.
    pub fn every(factor: u64) -> Self {
        Self { offset: 0, num: i128::from(factor.clamp(1, TERM_MAX as u64)), den: 1 }
    }

    /// Samples at another rate, of which the first lies at input index 0.
    ///
    /// # Errors
    /// A rate that is not above 0, or an output rate above 64 times the input rate.
    pub fn between(input_hz: f64, output_hz: f64) -> Result<Self, crate::Error> {
        let is_rate = |hertz: f64| hertz > 0.0 && hertz <= RATE_HZ_MAX;
        if !is_rate(input_hz)
            || !is_rate(output_hz)
            || output_hz > UP_MAX * input_hz
            || output_hz < input_hz / DOWN_MAX
        {
            let got = format!("{output_hz} Hz, from {input_hz} Hz");
            let must = "give a rate above 0, and at most 64 times that of the input, at least a thousand millionth of it";
            return Err(crate::Error::Setting { what: "rate", got, must });
        }
        // Doubling is exact. The remaining fraction is below the precision of a float.
        let (mut num, mut den) = (input_hz, output_hz);
        while (num.fract() != 0.0 || den.fract() != 0.0) && num.max(den) < TERM_MAX / 2.0 {
            (num, den) = (num * 2.0, den * 2.0);
        }
        let (num, den) = (num.round().max(1.0) as i128, den.round().max(1.0) as i128);
        let common = gcd(num, den);
        Ok(Self { offset: 0, num: num / common, den: den / common })
    }

    /// The same spacing, with output 0 at this input index.
    pub fn starting_at(self, first: i64) -> Self {
        Self { offset: i128::from(first) * self.den, ..self }
    }

    /// Whole input index of an output, and the fraction after it.
    pub fn position(&self, output: i64) -> (i64, f64) {
        let (whole, rest) = self.place(output);
        (whole, rest as f64 / self.den as f64)
    }

    /// First output at or after an input index.
    pub fn first_at(&self, index: i64) -> i64 {
        let ahead = i128::from(index) * self.den - self.offset;
        let n = ahead.div_euclid(self.num) + i128::from(ahead.rem_euclid(self.num) > 0);
        n.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Rate of the outputs: the requested one, or the nearest one of the grid.
    pub(crate) fn rate_hz(&self, input_hz: f64, asked_hz: f64) -> f64 {
        let exact_hz = input_hz / self.spacing();
        if (exact_hz / asked_hz - 1.0).abs() < 4.0 * f64::EPSILON { asked_hz } else { exact_hz }
    }

    /// Input samples per output sample.
    pub fn spacing(&self) -> f64 {
        self.num as f64 / self.den as f64
    }

    /// The same places, counted in steps of `step` input samples.
    pub(crate) fn in_steps_of(self, step: usize) -> Self {
        let den = self.den * step as i128;
        let common = gcd(gcd(self.num, den), self.offset.abs());
        Self { offset: self.offset / common, num: self.num / common, den: den / common }
    }

    /// Whole position of an output, and the rest in parts of [`parts`](Self::parts).
    pub(crate) fn place(&self, output: i64) -> (i64, i128) {
        let at = self.offset + i128::from(output) * self.num;
        (at.div_euclid(self.den) as i64, at.rem_euclid(self.den))
    }

    /// Parts of an input sample in which rests count.
    pub(crate) fn parts(&self) -> i128 {
        self.den
    }

    /// The smallest rest, and the spacing of all rests.
    pub(crate) fn rests(&self) -> (i128, i128) {
        let spacing = gcd(self.num, self.den);
        (self.offset.rem_euclid(spacing), spacing)
    }

    /// Time of an output after an input index, in nanoseconds; 0 without a rate.
    pub fn later_ns(&self, output: i64, index: i64, input_hz: f64) -> i64 {
        let (whole, rest) = self.position(output);
        let samples = whole.saturating_sub(index) as f64 + rest;
        if input_hz > 0.0 { (samples / input_hz * 1e9).round() as i64 } else { 0 }
    }

    /// The description of a stream after the conversion. Annotations keep their extent.
    pub(crate) fn describe(&self, input: &Description, input_hz: f64) -> Description {
        let index = input.first_sample_index.min(INDEX_MAX) as i64;
        let first = self.first_at(index);
        let later_ns = self.later_ns(first, index, input_hz);
        let later = |time: SystemTime| match u64::try_from(later_ns) {
            Ok(0) => Some(time),
            Ok(later_ns) if input_hz > 0.0 => time.checked_add(Duration::from_nanos(later_ns)),
            _ => None,
        };
        let place = |index: u64| self.first_at(index.min(INDEX_MAX) as i64).max(0) as u64;
        let annotation = |annotation: &StreamAnnotation| {
            let begin = annotation.first_sample_index;
            let first_sample_index = place(begin.saturating_sub(self.spacing() as u64));
            let length = place(annotation.end_index()).saturating_sub(first_sample_index).max(1);
            let length_samples = if annotation.length_samples > 0 { length } else { 0 };
            StreamAnnotation { first_sample_index, length_samples, ..annotation.clone() }
        };
        Description {
            first_sample_index: first.max(0) as u64,
            recorded_at: input.recorded_at.and_then(later),
            recorded_axis: input.recorded_axis.map(|axis| axis.after(later_ns)),
            annotations: input.annotations.iter().map(annotation).collect(),
            ..input.clone()
        }
    }
}

fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// Highest input index: products with a grid's terms stay within 128 bits.
pub const INDEX_MAX: u64 = 1 << 56;
/// Bound of the terms, as precise as a float.
const TERM_MAX: f64 = (1u64 << 56) as f64;
const RATE_HZ_MAX: f64 = 1e12;
const UP_MAX: f64 = 64.0;
const DOWN_MAX: f64 = 1e9;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn places_never_drift(
            input_hz in 1u32..=1_000_000_000, output_hz in 1u32..=1_000_000_000, first in 0i64..1 << 55, n in 0i64..1 << 50,
        ) {
            let (input, output) = (i128::from(input_hz), i128::from(output_hz));
            let Ok(grid) = Grid::between(f64::from(input_hz), f64::from(output_hz)) else {
                prop_assert!(output > 64 * input);
                return Ok(());
            };
            let grid = grid.starting_at(first);
            let n = n.min(grid.first_at(INDEX_MAX as i64));
            let (whole, rest) = grid.position(n);
            let exact = i128::from(first) * output + i128::from(n) * input;
            prop_assert_eq!(i128::from(whole), exact.div_euclid(output));
            prop_assert!((rest - exact.rem_euclid(output) as f64 / output as f64).abs() < 1e-12);
            let index = whole + i64::from(rest > 0.0);
            let at = grid.first_at(index);
            prop_assert!(grid.position(at).0 >= index && grid.position(at - 1).0 < index);
        }

        #[test]
        fn any_rates_make_a_grid_or_an_error(input_hz in any::<f64>(), output_hz in any::<f64>(), n in any::<u32>()) {
            if let Ok(grid) = Grid::between(input_hz, output_hz) {
                let expected = f64::from(n) * (input_hz / output_hz);
                let (whole, rest) = grid.starting_at(5).in_steps_of(7).position(n.into());
                let got = (whole as f64 + rest) * 7.0 - 5.0;
                prop_assert!((got - expected).abs() <= 1e-6 + expected * 1e-8, "{} {}", got, expected);
            }
        }
    }
}
