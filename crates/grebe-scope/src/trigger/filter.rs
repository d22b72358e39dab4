//! Filters in front of the comparator: LF reject for a wandering baseline, HF reject for noise on a slow signal.

use crate::error::{Error, Result};
use crate::simd::min_max;
use crate::value::Value;

/// A first-order filter before a comparator. The baseline is the output of a low-pass: the low-pass returns it
/// (`HF reject` of bench scopes), the high-pass returns the signal without it (`LF reject`).
///
/// The output of the high-pass is centred at 0, and levels count from there. It passes an infinite or NaN sample
/// unchanged. The low-pass keeps its value there. Neither lets such a sample move the baseline. The low-pass delays a
/// slow slope by `1 / (2 pi corner)` samples.
///
/// ```
/// use grebe_scope::{Condition, Slope, Trigger, TriggerFilter};
/// let edge = Condition::Edge { slope: Slope::Rising, level: 50, hysteresis: 10 };
/// let mut trigger = Trigger::new(edge, 0)?.with_filter(TriggerFilter::high_pass(0.01)?);
/// // Peaks of 100 counts every 40 samples, on a ramp that climbs far above the level.
/// let signal: Vec<i16> = (0..4000).map(|n| n * 2 + if n % 40 == 39 { 100 } else { 0 }).collect();
/// trigger.scan(0, &signal, |_| {});
/// assert_eq!(trigger.found(), 100);
/// # Ok::<(), grebe_scope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TriggerFilter<V: Value = i16> {
    is_low_pass: bool,
    /// The part of its distance to the signal by which the baseline moves with each sample.
    per_sample: f64,
    /// The same for the mean of a group.
    weight: f64,
    /// Samples with the same baseline.
    group: u64,
    /// Not a number before the first sample that is one.
    baseline: f64,
    /// Sum and number of samples of the group that is not complete.
    sum: f64,
    count: u32,
    /// The index that would follow without a gap; `None` before the first sample.
    next: Option<u64>,
    extremes: Option<(V, V)>,
    passed: Vec<V>,
}

impl<V: Value> TriggerFilter<V> {
    /// A high-pass whose corner (-3 dB) lies at `corner` cycles per sample, above 0 and below 0.5.
    ///
    /// # Errors
    /// [`Error::Setting`] for another corner.
    pub fn high_pass(corner: f64) -> Result<TriggerFilter<V>> {
        TriggerFilter::new(corner, false)
    }

    /// A low-pass with such a corner.
    ///
    /// # Errors
    /// As for [`high_pass`](TriggerFilter::high_pass).
    pub fn low_pass(corner: f64) -> Result<TriggerFilter<V>> {
        TriggerFilter::new(corner, true)
    }

    fn new(corner: f64, is_low_pass: bool) -> Result<TriggerFilter<V>> {
        if !(corner > 0.0 && corner < 0.5) {
            let got = format!("{corner} cycles per sample");
            return Err(Error::Setting {
                what: "corner of the trigger's filter",
                got,
                must: "more than 0 and less than 0.5",
            });
        }
        let per_sample = 1.0 - (-std::f64::consts::TAU * corner).exp();
        // A baseline that hardly moves within 64 samples is subtracted from all of them at once, at the speed of memory. It then
        // moves in steps of at most a 32nd of its distance to the signal.
        let group = if per_sample * GROUP as f64 <= 1.0 / 32.0 { GROUP } else { 1 };
        let weight = 1.0 - (1.0 - per_sample).powi(group as i32);
        Ok(TriggerFilter {
            is_low_pass,
            per_sample,
            weight,
            group,
            baseline: f64::NAN,
            sum: 0.0,
            count: 0,
            next: None,
            extremes: None,
            passed: Vec::with_capacity(STRIP),
        })
    }

    /// Filters a block and calls `each` with the output, strip by strip, and the index of each strip's first sample. The
    /// baseline begins at the first finite sample. Over a gap a high-pass keeps it, and a low-pass begins again.
    pub fn pass(&mut self, first_sample_index: u64, samples: &[V], mut each: impl FnMut(u64, &[V])) {
        let mut at = first_sample_index;
        for strip in samples.chunks(STRIP) {
            self.strip(at, strip);
            let (min, max) = min_max(&self.passed);
            let (low, high) = self.extremes.unwrap_or((min, max));
            self.extremes = Some((if min < low { min } else { low }, if max > high { max } else { high }));
            each(at, &self.passed);
            at += strip.len() as u64;
        }
    }

    /// Deviation of white noise behind the filter, as a part of that before it.
    pub fn noise_gain(&self) -> f64 {
        match self.is_low_pass {
            true => (self.per_sample / (2.0 - self.per_sample)).sqrt(),
            false => 1.0,
        }
    }

    /// Smallest and largest output since the last call; `None` without one.
    pub(super) fn take_extremes(&mut self) -> Option<(V, V)> {
        self.extremes.take().filter(|(min, max)| min <= max)
    }

    fn strip(&mut self, first: u64, strip: &[V]) {
        if self.is_low_pass && self.next != Some(first) {
            self.baseline = f64::NAN;
        }
        if self.baseline.is_nan()
            && let Some(first) = strip.iter().find(|sample| sample.to_f64().is_finite())
        {
            self.baseline = first.to_f64();
        }
        if self.next != Some(first) {
            (self.sum, self.count) = (0.0, 0);
        }
        self.next = Some(first + strip.len() as u64);
        self.passed.clear();
        if self.group == 1 {
            let (is_low_pass, weight, mut baseline) = (self.is_low_pass, self.weight, self.baseline);
            self.passed.extend(strip.iter().map(|&sample| {
                let swing = sample.to_f64() - baseline;
                if swing.is_finite() {
                    baseline += weight * swing;
                }
                V::from_f64(if is_low_pass { baseline } else { swing })
            }));
            self.baseline = baseline;
            return;
        }
        let (mut at, mut rest) = (first, strip);
        while !rest.is_empty() {
            let room = (self.group - at % self.group) as usize;
            let (piece, behind) = rest.split_at(room.min(rest.len()));
            let baseline = V::from_f64(self.baseline);
            match self.is_low_pass {
                true => self.passed.resize(self.passed.len() + piece.len(), baseline),
                false => self.passed.extend(piece.iter().map(|&sample| V::less(sample, baseline))),
            }
            let (sum, count) = V::sum_finite(piece);
            self.sum += sum;
            self.count += count;
            if piece.len() == room {
                if self.count > 0 {
                    self.baseline += self.weight * (self.sum / f64::from(self.count) - self.baseline);
                }
                (self.sum, self.count) = (0.0, 0);
            }
            (at, rest) = (at + piece.len() as u64, behind);
        }
    }
}

const GROUP: u64 = 64;
/// Fits into the first-level cache together with the comparator's words.
const STRIP: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(filter: &mut TriggerFilter, blocks: &[(u64, &[i16])]) -> Vec<i16> {
        let mut out = Vec::new();
        for &(first, block) in blocks {
            filter.pass(first, block, |_, strip| out.extend_from_slice(strip));
        }
        out
    }

    fn sine(cycles_per_sample: f64, amplitude: f64, len: usize) -> Vec<i16> {
        let turn = std::f64::consts::TAU * cycles_per_sample;
        (0..len).map(|n| ((n as f64 * turn).sin() * amplitude).round() as i16).collect()
    }

    fn height(samples: &[i16]) -> f64 {
        let (min, max) = min_max(samples);
        f64::from(max) - f64::from(min)
    }

    #[test]
    fn the_filter_has_the_gain_of_a_first_order_high_pass() {
        for corner in [0.003, 1e-5] {
            for (part, gain) in [(0.1, 0.0995), (1.0, std::f64::consts::FRAC_1_SQRT_2), (10.0, 0.995)] {
                let tone = sine(corner * part, 10_000.0, (60.0 / corner).min(4e6) as usize);
                let out = passed(&mut TriggerFilter::high_pass(corner).unwrap(), &[(0, &tone)]);
                let settled = &out[out.len() / 2..];
                let got = height(settled) / 20_000.0;
                assert!((got - gain).abs() < 0.02, "{part} of the corner {corner}: {got}");
            }
        }
    }

    #[test]
    fn blocks_make_no_difference_and_an_offset_goes_away() {
        let signal: Vec<i16> = sine(0.01, 1000.0, 40_000).iter().map(|s| s + 20_000).collect();
        for corner in [0.002, 1e-5] {
            let whole = passed(&mut TriggerFilter::high_pass(corner).unwrap(), &[(7, &signal)]);
            let mut filter = TriggerFilter::high_pass(corner).unwrap();
            let mut pieces = Vec::new();
            for (number, piece) in signal.chunks(37).enumerate() {
                pieces.extend(passed(&mut filter, &[(7 + 37 * number as u64, piece)]));
            }
            assert_eq!(pieces, whole);
            let (min, max) = filter.take_extremes().unwrap();
            assert_eq!((min, max), min_max(&whole));
            assert!(filter.take_extremes().is_none());
            assert!(height(&whole) < 2400.0 && min < -700 && max > 700, "{min} {max}");
        }
    }

    #[test]
    fn reals_pass_as_integers_do_and_a_hole_moves_no_baseline() {
        let signal: Vec<i16> = sine(0.01, 1000.0, 20_000).iter().map(|s| s + 20_000).collect();
        let mut real: Vec<f32> = signal.iter().map(|&sample| sample.into()).collect();
        for corner in [0.002, 1e-5] {
            let integers = passed(&mut TriggerFilter::high_pass(corner).unwrap(), &[(7, &signal)]);
            let mut filter = TriggerFilter::high_pass(corner).unwrap();
            let mut reals = Vec::new();
            filter.pass(7, &real, |_, strip| reals.extend_from_slice(strip));
            let apart = |(a, b): (&i16, &f32)| (f32::from(*a) - b).abs();
            assert!(integers.iter().zip(&reals).map(apart).fold(0.0, f32::max) <= 1.0);
        }
        let clean = real.clone();
        for (place, hole) in
            [(0, f32::NAN), (5000, f32::NAN), (5001, f32::INFINITY), (9000, f32::NEG_INFINITY)]
        {
            real[place] = hole;
        }
        for corner in [0.002, 1e-5] {
            let pass = |samples: &[f32]| {
                let mut out = Vec::new();
                TriggerFilter::high_pass(corner)
                    .unwrap()
                    .pass(0, samples, |_, strip| out.extend_from_slice(strip));
                out
            };
            let (holed, whole) = (pass(&real), pass(&clean));
            assert!(holed[0].is_nan() && holed[5000].is_nan() && holed[5001] == f32::INFINITY);
            assert!((holed[19_999] - whole[19_999]).abs() < 200.0, "{} {}", holed[19_999], whole[19_999]);
        }
    }

    #[test]
    fn a_low_pass_has_the_gain_of_first_order_and_begins_again_after_a_gap() {
        for corner in [0.003, 1e-5] {
            for (part, gain) in [(0.1, 0.995), (1.0, std::f64::consts::FRAC_1_SQRT_2), (10.0, 0.0995)] {
                let tone = sine(corner * part, 10_000.0, (60.0 / corner).min(4e6) as usize);
                let out = passed(&mut TriggerFilter::low_pass(corner).unwrap(), &[(0, &tone)]);
                let got = height(&out[out.len() / 2..]) / 20_000.0;
                assert!((got - gain).abs() < 0.02, "{part} of the corner {corner}: {got}");
            }
            let mut filter = TriggerFilter::low_pass(corner).unwrap();
            assert_eq!(
                passed(&mut filter, &[(0, &[-30_000; 100]), (1000, &[30_000])])[99..],
                [-30_000, 30_000]
            );
        }
        let mut filter = TriggerFilter::low_pass(0.01).unwrap();
        filter.pass(0, &[f32::NAN, 1.0, f32::INFINITY, f32::NAN, 1.0], |_, out| assert_eq!(out, [1.0; 5]));
    }

    #[test]
    fn the_baseline_survives_a_gap_and_overflow_saturates() {
        let mut filter = TriggerFilter::high_pass(1e-4).unwrap();
        let low = passed(&mut filter, &[(0, &[-30_000; 100])]);
        assert_eq!(low, [0; 100]);
        assert_eq!(passed(&mut filter, &[(1000, &[30_000])]), [i16::MAX]);
        assert!([0.0, 0.5, f64::NAN].iter().all(|&corner| TriggerFilter::<i16>::high_pass(corner).is_err()));
    }
}
