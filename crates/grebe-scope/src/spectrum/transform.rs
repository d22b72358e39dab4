//! One windowed transform: from samples to the power of lines.

use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftPlanner};

use super::Window;
use crate::error::{Error, Result};
use crate::simd::lines;
use crate::value::Value;

/// Power of the lines of one block of samples: full scale has power 1, as in [`Spectrum`](crate::Spectrum).
///
/// ```
/// use grebe_scope::{PowerTransform, Window};
/// let tone: Vec<f32> = (0..64).map(|n| 0.5 * (n as f32 / 8.0 * std::f32::consts::TAU).sin()).collect();
/// let mut transform = PowerTransform::real(64, Window::Hann)?;
/// let mut power = vec![0.0; transform.lines()];
/// assert!(transform.power(&tone, &[], 0.0, &mut power));
/// assert!((power[8] - 0.25).abs() < 1e-4 && power[20] < 1e-9);
/// # Ok::<(), grebe_scope::Error>(())
/// ```
pub struct PowerTransform {
    size: usize,
    window: Window,
    plan: Plan,
    /// The window, scaled so that a full-scale tone has power 1 in its line.
    weights: Vec<f32>,
}

/// The transform of real or complex samples.
enum Plan {
    Real {
        plan: Arc<dyn RealToComplex<f32>>,
        input: Vec<f32>,
        lines: Vec<Complex<f32>>,
        scratch: Vec<Complex<f32>>,
    },
    Complex {
        plan: Arc<dyn Fft<f32>>,
        lines: Vec<Complex<f32>>,
        scratch: Vec<Complex<f32>>,
    },
}

impl PowerTransform {
    /// Of `size` real samples, a power of two from 16 to 2^22: lines from 0 Hz to half the rate. Full scale is 1.
    ///
    /// # Errors
    /// [`Error::Setting`] for another size.
    pub fn real(size: usize, window: Window) -> Result<Self> {
        check_size(size)?;
        let plan = RealFftPlanner::<f32>::new().plan_fft_forward(size);
        let lines = vec![Complex::default(); size / 2 + 1];
        let scratch = vec![Complex::default(); plan.get_scratch_len()];
        Ok(Self::of(size, window, Plan::Real { plan, input: vec![0.0; size], lines, scratch }))
    }

    /// The same of complex samples: lines from minus half the rate on, 0 Hz in the middle.
    ///
    /// # Errors
    /// [`Error::Setting`] for another size.
    pub fn complex(size: usize, window: Window) -> Result<Self> {
        check_size(size)?;
        let plan = FftPlanner::<f32>::new().plan_fft_forward(size);
        let scratch = vec![Complex::default(); plan.get_inplace_scratch_len()];
        Ok(Self::of(size, window, Plan::Complex { plan, lines: vec![Complex::default(); size], scratch }))
    }

    fn of(size: usize, window: Window, plan: Plan) -> Self {
        let mut transform = Self { size, window, plan, weights: vec![0.0; size] };
        transform.set_full_scale(1.0);
        transform
    }

    /// Sets the amplitude of full scale; ignores values that are not positive.
    pub fn set_full_scale(&mut self, full_scale: f64) {
        if !(full_scale > 0.0 && full_scale.is_finite()) {
            return;
        }
        let coefficients = self.window.coefficients(self.size);
        // A real sine of amplitude A has |line| = A / 2 * sum(window), a complex tone A * sum(window).
        let sides = if matches!(self.plan, Plan::Real { .. }) { 2.0 } else { 1.0 };
        let gain = sides / (coefficients.iter().sum::<f64>() * full_scale);
        self.weights.clear();
        self.weights.extend(coefficients.iter().map(|w| (w * gain) as f32));
    }

    /// Samples per transform.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The window.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Lines per transform.
    pub fn lines(&self) -> usize {
        match &self.plan {
            Plan::Real { lines, .. } | Plan::Complex { lines, .. } => lines.len(),
        }
    }

    /// Number of white-noise lines whose power one line collects: 1 without a window, 1.5 for Hann.
    pub fn noise_bandwidth_lines(&self) -> f64 {
        let (sum, squares) = self.weights.iter().fold((0.0, 0.0), |(sum, squares), &weight| {
            let weight = f64::from(weight);
            (sum + weight, squares + weight * weight)
        });
        squares * self.size as f64 / (sum * sum)
    }

    /// Writes the power of each line. `q` is empty for real samples; `zero` is the value of silence. Returns `false`,
    /// and leaves `power` unchanged, for samples that are infinite or NaN, or fewer than a transform needs.
    pub fn power<V: Value>(&mut self, first: &[V], q: &[V], zero: f32, power: &mut [f32]) -> bool {
        write(self.transform(first, q, zero), power)
    }

    /// As [`power`](Self::power), of numbers: real samples, or I and Q in turn.
    pub fn power_of_numbers(&mut self, numbers: &[f32], zero: f32, power: &mut [f32]) -> bool {
        let Plan::Complex { lines, .. } = &mut self.plan else {
            return self.power(numbers, &[], zero, power);
        };
        let pairs = numbers.as_chunks::<2>().0;
        if pairs.len() != self.size || !lines::weigh_pairs(pairs, zero, &self.weights, lines) {
            return false;
        }
        write(self.process(), power)
    }

    /// Lines by rising frequency, in two parts; `None` as in [`power`](Self::power).
    pub(super) fn transform<V: Value>(
        &mut self,
        first: &[V],
        q: &[V],
        zero: f32,
    ) -> Option<[&[Complex<f32>]; 2]> {
        let is_complex = matches!(self.plan, Plan::Complex { .. });
        if first.len() != self.size || is_complex && q.len() != self.size {
            return None;
        }
        match &mut self.plan {
            Plan::Real { input, .. } => {
                if V::MAY_BE_NAN && !all_finite(first) {
                    return None;
                }
                for ((input, sample), weight) in input.iter_mut().zip(first).zip(&self.weights) {
                    *input = (sample.to_f32() - zero) * weight;
                }
            }
            Plan::Complex { lines, .. } => {
                if !lines::weigh(first, q, zero, &self.weights, lines) {
                    return None;
                }
            }
        }
        self.process()
    }

    /// Transforms the weighted samples.
    fn process(&mut self) -> Option<[&[Complex<f32>]; 2]> {
        match &mut self.plan {
            Plan::Real { plan, input, lines, scratch } => {
                plan.process_with_scratch(input, lines, scratch).ok()?;
                // The zero line and the one at half the rate have no mirror image, so their amplitude is half of the
                // doubled one.
                let last = lines.len() - 1;
                lines[0] *= 0.5f32;
                lines[last] *= 0.5f32;
                Some([lines, &[]])
            }
            Plan::Complex { plan, lines, scratch } => {
                plan.process_with_scratch(lines, scratch);
                // Negative frequencies are in the upper half.
                let (positive, negative) = lines.split_at(lines.len() / 2);
                Some([negative, positive])
            }
        }
    }
}

/// Writes the power of lines in two parts; whether there are any.
fn write(lines: Option<[&[Complex<f32>]; 2]>, power: &mut [f32]) -> bool {
    let Some([low, high]) = lines else { return false };
    let (of_low, of_high) = power.split_at_mut(low.len().min(power.len()));
    lines::power(low, of_low);
    lines::power(high, of_high);
    true
}

impl std::fmt::Debug for PowerTransform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let PowerTransform { size, window, .. } = self;
        f.debug_struct("PowerTransform").field("size", size).field("window", window).finish_non_exhaustive()
    }
}

fn check_size(size: usize) -> Result<()> {
    if size.is_power_of_two() && (16..=1 << 22).contains(&size) {
        return Ok(());
    }
    let got = size.to_string();
    Err(Error::Setting { what: "transform size", got, must: "a power of two from 16 to 2^22" })
}

fn all_finite<V: Value>(samples: &[V]) -> bool {
    // Without an early exit, which would prevent vector code.
    !samples.iter().fold(false, |any, sample| any | !sample.to_f32().is_finite())
}
