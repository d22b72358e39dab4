//! Convolution with given taps: directly, or in the frequency domain (overlap-save) for many taps.

use std::fmt;
use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

use crate::simd::convolve;

/// Taps, with their transforms.
#[derive(Debug)]
pub(super) struct Convolution {
    /// In reverse order.
    taps: Vec<f32>,
    /// In ascending length; empty for few taps.
    transforms: Vec<Transform>,
    block: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
}

/// Circular convolution of this length. All results except the first `taps - 1` equal the linear one.
struct Transform {
    forward: Arc<dyn Fft<f32>>,
    inverse: Arc<dyn Fft<f32>>,
    /// Response of the taps divided by the length, which forward and inverse transforms multiply in.
    response: Vec<Complex<f32>>,
}

impl Convolution {
    /// The first tap meets the newest number.
    pub(super) fn new(taps: &[f64]) -> Self {
        let transforms: Vec<Transform> = if taps.len() < TRANSFORMED_TAPS_MIN {
            Vec::new()
        } else {
            // At least twice the taps, so that half of a block is new.
            let shortest = (2 * taps.len()).next_power_of_two();
            let mut planner = FftPlanner::new();
            (0..LENGTHS).map(|doubled| Transform::new(&mut planner, taps, shortest << doubled)).collect()
        };
        let scratch = transforms.iter().map(Transform::scratch_length).max();
        let zeros = |length: Option<usize>| vec![Complex::ZERO; length.unwrap_or_default()];
        Self {
            taps: taps.iter().rev().map(|&tap| tap as f32).collect(),
            block: zeros(transforms.last().map(Transform::length)),
            scratch: zeros(scratch),
            transforms,
        }
    }

    /// Length of the history at the start of the line, before the first number to convert. For `stride`
    /// interleaved sequences, one or two.
    pub(super) fn past(&self, stride: usize) -> usize {
        (self.taps.len() - 1) * stride
    }

    /// Replaces each number after the history by its sum. Results move to the front by the length of the
    /// history; the rest stays.
    pub(super) fn apply(&mut self, stride: usize, line: &mut [f32]) {
        let count = line.len().saturating_sub(self.past(stride));
        let direct = count * self.taps.len();
        let cheapest = self
            .transforms
            .iter()
            .map(|transform| (transform.cost(count, self.taps.len()), transform))
            .min_by_key(|(cost, _)| *cost);
        match cheapest {
            Some((cost, transform)) if cost < direct => {
                let block = &mut self.block[..transform.length()];
                transform.convolve(&self.taps, stride, line, block, &mut self.scratch);
            }
            _ => convolve(&self.taps, stride, line),
        }
    }
}

impl Transform {
    fn new(planner: &mut FftPlanner<f32>, taps: &[f64], length: usize) -> Self {
        let mut response = vec![Complex::ZERO; length];
        for (place, tap) in response.iter_mut().zip(taps) {
            *place = Complex::new((tap / length as f64) as f32, 0.0);
        }
        let (forward, inverse) = (planner.plan_fft_forward(length), planner.plan_fft_inverse(length));
        forward.process(&mut response);
        Self { forward, inverse, response }
    }

    fn length(&self) -> usize {
        self.response.len()
    }

    fn scratch_length(&self) -> usize {
        self.forward.get_inplace_scratch_len().max(self.inverse.get_inplace_scratch_len())
    }

    /// Results of one block per sequence.
    fn step(&self, taps: usize) -> usize {
        self.length() + 1 - taps
    }

    /// Cost of `count` results, in multiply-adds of the direct method.
    fn cost(&self, count: usize, taps: usize) -> usize {
        // A block computes two sequences.
        let blocks = count.div_ceil(2 * self.step(taps));
        blocks * self.length() * self.length().ilog2() as usize * BUTTERFLY_COST
    }

    /// The taps are real, so real and imaginary parts stay separate. A block therefore holds I and Q, or two
    /// pieces of a real line.
    fn convolve(
        &self,
        taps: &[f32],
        stride: usize,
        line: &mut [f32],
        block: &mut [Complex<f32>],
        scratch: &mut [Complex<f32>],
    ) {
        let step = self.step(taps.len());
        let past = (taps.len() - 1) * stride;
        let count = line.len() - past;
        // Distance of the imaginary parts from the real ones.
        let other = if stride == 2 { 1 } else { step };
        for at in (0..count).step_by(2 * step) {
            let until = count.min(at + 2 * step);
            let used = &mut line[at..until + past];
            if !used.iter().all(|number| number.abs() <= LARGEST) {
                // Infinities and NaN would spoil the whole block; directly computed, they spoil only their
                // own results.
                convolve(taps, stride, used);
                continue;
            }
            let number = |place: usize| used.get(place).copied().unwrap_or_default();
            for (at, pair) in block.iter_mut().enumerate() {
                *pair = Complex::new(number(at * stride), number(at * stride + other));
            }
            self.forward.process_with_scratch(block, scratch);
            for (number, response) in block.iter_mut().zip(&self.response) {
                *number *= response;
            }
            self.inverse.process_with_scratch(block, scratch);
            let made = until - at;
            for (at, sum) in block[taps.len() - 1..].iter().enumerate() {
                for (place, sum) in [(at * stride, sum.re), (at * stride + other, sum.im)] {
                    if place < made {
                        used[place] = sum;
                    }
                }
            }
        }
    }
}

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transform({})", self.length())
    }
}

/// With fewer taps, no transform is faster.
const TRANSFORMED_TAPS_MIN: usize = 65;
/// Number of transform lengths, each twice the previous one: short ones for short frames.
const LENGTHS: usize = 3;
/// Cost per number of a block and per doubling of its length, for both transforms, in multiply-adds of the
/// direct method. Measured: `cargo bench -p grebe-process --bench process`.
const BUTTERFLY_COST: usize = 15;
/// Sums of larger numbers might overflow within a block, although the result does not.
const LARGEST: f32 = 1e30;

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: u64) -> Vec<f64> {
        let mut rng = grebe_testing::Rng::with_seed(seed);
        (0..count).map(|_| f64::from((rng.f64() * 2.0 - 1.0) as f32)).collect()
    }

    fn single(numbers: &[f64]) -> Vec<f32> {
        numbers.iter().map(|&number| number as f32).collect()
    }

    /// Maximum error against double precision.
    fn error(taps: &[f64], stride: usize, line: &[f64], made: &[f32]) -> f64 {
        let past = (taps.len() - 1) * stride;
        let exact = |at: usize| -> f64 {
            taps.iter().enumerate().map(|(tap, value)| value * line[at + past - tap * stride]).sum()
        };
        (0..line.len() - past).map(|at| (f64::from(made[at]) - exact(at)).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn every_implementation_computes_the_sums_and_keeps_later_elements() {
        for (taps, stride) in [(65, 1), (65, 2), (200, 1), (200, 2), (1_000, 2)] {
            let taps = numbers(taps, 1);
            let mut convolution = Convolution::new(&taps);
            assert_eq!(convolution.transforms.len(), LENGTHS);
            for length in [1, 2, 131, 1_000, 5_001] {
                let past = convolution.past(stride);
                let line = numbers(length * stride + past, 2);
                // Rounding of sums of a thousand numbers of at most 1.
                let allowed = 3e-5;
                let mut made = single(&line);
                convolution.apply(stride, &mut made);
                assert!(error(&taps, stride, &line, &made) < allowed, "{} taps", taps.len());
                assert_eq!(made[length * stride..], single(&line)[length * stride..]);
                for transform in &convolution.transforms {
                    let mut made = single(&line);
                    let block = &mut convolution.block[..transform.length()];
                    transform.convolve(&convolution.taps, stride, &mut made, block, &mut convolution.scratch);
                    let error = error(&taps, stride, &line, &made);
                    assert!(error < allowed, "{} taps, {transform:?}, {length}: {error}", taps.len());
                    assert_eq!(made[length * stride..], single(&line)[length * stride..]);
                }
            }
        }
    }

    #[test]
    fn long_lines_and_many_taps_are_transformed_and_others_are_not() {
        let is_transformed = |taps: usize, count: usize| {
            let convolution = Convolution::new(&vec![0.5; taps]);
            convolution.transforms.iter().any(|transform| transform.cost(count, taps) < count * taps)
        };
        assert!(
            !is_transformed(64, 100_000) && is_transformed(256, 16_000) && is_transformed(16_384, 16_000)
        );
        assert!(!is_transformed(256, 64) && !is_transformed(16_384, 64));
    }

    #[test]
    fn a_nan_spoils_only_its_own_outputs() {
        let taps = numbers(300, 3);
        let mut convolution = Convolution::new(&taps);
        for spoilt in [f64::NAN, f64::INFINITY, 3e38] {
            let mut line = numbers(8_000 + 299, 4);
            line[4_000] = spoilt;
            let mut made = single(&line);
            convolution.apply(1, &mut made);
            let exact = |at: usize| -> f64 { (0..300).map(|tap| taps[tap] * line[at + 299 - tap]).sum() };
            for at in (0..8_000).filter(|&at| !(3_701..=4_000).contains(&at)) {
                assert!((f64::from(made[at]) - exact(at)).abs() < 1e-4, "{at}");
            }
            assert!(
                (3_701..=4_000).all(|at| made[at].abs() > 1e30
                    || !made[at].is_finite()
                    || taps[at - 3_701].abs() < 1e-6)
            );
        }
    }
}
