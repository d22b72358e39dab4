//! Delay and phase between two channels.

use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};

/// Position in time of a signal relative to another.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shift {
    /// Delay in samples, negative if it is earlier: the best match, interpolated between samples. `None` if they
    /// agree in less than half of their power.
    pub delay_samples: Option<f64>,
    /// Lead in degrees at the reference's fundamental, above -180 up to 180; `None` if either lacks such a tone.
    pub phase_degrees: Option<f64>,
}

/// Measures one pair of signals after another, and keeps its working memory.
///
/// ```
/// use grebe_scope::ShiftMeasurer;
/// let wave = |at: f64| (at * 0.05).sin() + (at * 0.13 + 1.0).sin();
/// let reference: Vec<f32> = (0..2000).map(|n| wave(f64::from(n)) as f32).collect();
/// let later: Vec<f32> = (0..2000).map(|n| wave(f64::from(n) - 7.25) as f32).collect();
/// let shift = ShiftMeasurer::default().measure(&reference, &later);
/// assert!((shift.delay_samples.unwrap() - 7.25).abs() < 1e-2);
/// ```
#[derive(Default)]
pub struct ShiftMeasurer {
    planner: RealFftPlanner<f64>,
    reference: Vec<f64>,
    other: Vec<f64>,
    lags: Vec<f64>,
    lines: [Vec<Complex<f64>>; 2],
    spectrum: Vec<Complex<f64>>,
}

impl ShiftMeasurer {
    /// Measures `other` against `reference`, which start at the same time; delays extend to half of their length.
    pub fn measure(&mut self, reference: &[f32], other: &[f32]) -> Shift {
        let length = reference.len().min(other.len());
        let all = reference[..length].iter().chain(&other[..length]);
        if length < SAMPLES_MIN || !all.clone().all(|sample| sample.is_finite()) {
            return Shift::default();
        }
        let (reference, other) = (&reference[..length], &other[..length]);
        let coarse = self.coarse(reference, other);
        Shift {
            delay_samples: coarse.and_then(|lag| {
                // Less overlap gives less weight: the highest correlation of a slow wave is beside its delay.
                (0..ALIGNMENTS).try_fold(lag, |lag, _| self.fine(reference, other, lag))
            }),
            phase_degrees: self.phase(reference, other),
        }
    }

    /// The lag of the highest correlation, to a fraction of a sample.
    fn coarse(&mut self, reference: &[f32], other: &[f32]) -> Option<f64> {
        let length = reference.len();
        let size = (length * 2).next_power_of_two();
        let energy = self.transform(reference, other, size, |_| 1.0)?;
        // Also between samples, because the peak of a wave of three samples can be anywhere.
        let fine = size * FINER;
        self.spectrum.clear();
        self.spectrum.extend(self.lines[0].iter().zip(&self.lines[1]).map(|(a, b)| a.conj() * b));
        if let Some(last) = self.spectrum.last_mut() {
            // The line of half the rate stands for both sides.
            *last *= 0.5;
        }
        self.spectrum.resize(fine / 2 + 1, Complex::default());
        if let Some(first) = self.spectrum.first_mut() {
            first.im = 0.0;
        }
        let plan: Arc<dyn ComplexToReal<f64>> = self.planner.plan_fft_inverse(fine);
        self.lags.resize(fine, 0.0);
        plan.process(&mut self.spectrum, &mut self.lags).ok()?;
        let reach = length / 2 * FINER;
        let at = |lag: isize| self.lags[lag.rem_euclid(fine as isize) as usize] / (energy * size as f64);
        let lags = -(reach as isize)..=reach as isize;
        let highest = lags.clone().map(at).fold(f64::MIN, f64::max);
        // In a periodic wave, noise makes one peak as good as the next, so take the nearest.
        let spread = 6.0 * (1.0 - highest).max(0.0) / (length as f64).sqrt();
        let is_peak = |lag: &isize| {
            let here = at(*lag);
            here >= highest - spread && here >= at(lag - 1) && here > at(lag + 1)
        };
        let nearest = lags.filter(is_peak).min_by_key(|lag| lag.unsigned_abs())?;
        Some(nearest as f64 / FINER as f64)
    }

    /// The lag near `coarse` at which the spectra of the overlapping parts agree most; `None` below half of their power.
    fn fine(&mut self, reference: &[f32], other: &[f32], coarse: f64) -> Option<f64> {
        let whole = coarse.round() as isize;
        let (from, to) = (whole.min(0).unsigned_abs(), whole.max(0).unsigned_abs());
        let length = reference.len() - from - to;
        let (reference, other) = (&reference[from..from + length], &other[to..to + length]);
        let size = length.next_power_of_two();
        let energy = self.transform(reference, other, size, hann(length))?;
        let turn = std::f64::consts::TAU / size as f64;
        let last = self.lines[0].len() - 1;
        let sums = |lag: f64| {
            let pairs = self.lines[0].iter().zip(&self.lines[1]).enumerate();
            pairs.fold([0.0; 3], |[agree, slope, bend], (line, (a, b))| {
                let cycles = turn * line as f64;
                let weight = if line == 0 || line == last { 1.0 } else { 2.0 };
                let product = a.conj() * b * Complex::from_polar(weight, cycles * lag);
                [agree + product.re, slope + cycles * product.im, bend + cycles * cycles * product.re]
            })
        };
        let mut lag = coarse - whole as f64;
        for _ in 0..STEPS {
            let [_, slope, bend] = sums(lag);
            if bend <= 0.0 {
                return None;
            }
            lag -= slope / bend;
        }
        let part = sums(lag)[0] / (energy * size as f64);
        let is_near = lag.abs() <= length as f64 / 16.0;
        (part >= AGREE_MIN && is_near).then_some(lag + whole as f64)
    }

    /// Lead in degrees at the reference's fundamental.
    fn phase(&mut self, reference: &[f32], other: &[f32]) -> Option<f64> {
        let length = reference.len();
        let size = length.next_power_of_two();
        self.transform(reference, other, size, hann(length))?;
        let [a, b] = &self.lines;
        let reach = size.div_ceil(length);
        let power = |lines: &[Complex<f64>], line: usize| lines[line].norm_sqr();
        // Below three periods, a line cannot be separated from a drift.
        let lines = 3 * reach..a.len() - reach;
        let strongest = lines.clone().max_by(|&x, &y| power(a, x).total_cmp(&power(a, y)))?;
        // The harmonics of a narrow pulse are as strong as its fundamental.
        let of_fundamental = |part: usize| {
            let near = (strongest / part).saturating_sub(reach)..=strongest / part + reach;
            let line = near.max_by(|&x, &y| power(a, x).total_cmp(&power(a, y)))?;
            let is_peak = || power(a, line) >= power(a, line - 1) && power(a, line) >= power(a, line + 1);
            let is_strong = || power(a, line) >= power(a, strongest) * FUNDAMENTAL_PART;
            (lines.contains(&line) && is_peak() && is_strong()).then_some(line)
        };
        let line = (2..=8).rev().find_map(of_fundamental).unwrap_or(strongest);
        // Above the noise, and above the leakage of other tones.
        let stands_out = |lines: &[Complex<f64>]| {
            let mut powers: Vec<f64> = lines.iter().map(Complex::norm_sqr).collect();
            let (middle, here) = (powers.len() / 2, powers[line]);
            let highest = powers.iter().copied().fold(0.0, f64::max);
            let median = *powers.select_nth_unstable_by(middle, f64::total_cmp).1;
            here > median * TONE_OVER_NOISE && here > highest * TONE_PART
        };
        if !stands_out(a) || !stands_out(b) {
            return None;
        }
        let near = line - reach..=line + reach;
        let sum: Complex<f64> = near.map(|line| a[line].conj() * b[line]).sum();
        let degrees = sum.arg().to_degrees();
        Some(if degrees <= -180.0 { 180.0 } else { degrees })
    }

    /// The lines of both without their means, weighted; returns the root of the product of their energies, `None` if
    /// one has no energy.
    fn transform(
        &mut self,
        reference: &[f32],
        other: &[f32],
        size: usize,
        weight: impl Fn(usize) -> f64,
    ) -> Option<f64> {
        let plan: Arc<dyn RealToComplex<f64>> = self.planner.plan_fft_forward(size);
        let mut energies = [0.0; 2];
        let pairs = [(reference, &mut self.reference), (other, &mut self.other)];
        for (place, (samples, into)) in pairs.into_iter().enumerate() {
            let mean = samples.iter().copied().map(f64::from).sum::<f64>() / samples.len() as f64;
            into.clear();
            let weighted = samples.iter().enumerate().map(|(at, &it)| (f64::from(it) - mean) * weight(at));
            into.extend(weighted);
            energies[place] = into.iter().map(|it| it * it).sum();
            into.resize(size, 0.0);
            self.lines[place].resize(size / 2 + 1, Complex::default());
            plan.process(into, &mut self.lines[place]).ok()?;
        }
        let energy = (energies[0] * energies[1]).sqrt();
        (energy > 0.0 && energy.is_finite()).then_some(energy)
    }
}

fn hann(length: usize) -> impl Fn(usize) -> f64 {
    let turn = std::f64::consts::TAU / length as f64;
    move |at| 0.5 - 0.5 * (turn * (at as f64 + 0.5)).cos()
}

impl std::fmt::Debug for ShiftMeasurer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShiftMeasurer").finish_non_exhaustive()
    }
}

const SAMPLES_MIN: usize = 64;
const ALIGNMENTS: usize = 3;
/// Interpolated places of a correlation per sample.
const FINER: usize = 4;
/// Newton's method doubles the digits each time.
const STEPS: usize = 4;
/// Minimum part of the power in which both agree.
const AGREE_MIN: f64 = 0.5;
const FUNDAMENTAL_PART: f64 = 0.25;
/// 20 dB.
const TONE_OVER_NOISE: f64 = 100.0;
/// 30 dB below the strongest.
const TONE_PART: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use grebe_testing::Rng;

    use super::*;

    /// A wave, and the same wave `later` samples later, each with its own noise.
    fn pair(wave: impl Fn(f64) -> f64, later: f64, noise: f64) -> [Vec<f32>; 2] {
        let mut rng = Rng::with_seed(9);
        [0.0, later].map(|later| {
            let sample =
                |n: i32| wave(f64::from(n) - later) + noise * ((0..12).map(|_| rng.f64()).sum::<f64>() - 6.0);
            (0..8192).map(sample).map(|it| it as f32).collect()
        })
    }

    fn shift([reference, other]: &[Vec<f32>; 2]) -> Shift {
        ShiftMeasurer::default().measure(reference, other)
    }

    fn sine(period: f64) -> impl Fn(f64) -> f64 {
        move |at| (at / period * std::f64::consts::TAU).sin()
    }

    #[track_caller]
    fn assert_is(shift: Shift, delay: f64, phase: f64, reach: f64) {
        let Shift { delay_samples: Some(samples), phase_degrees: Some(degrees) } = shift else {
            panic!("{shift:?}")
        };
        assert!((samples - delay).abs() < reach, "{samples} samples for {delay}");
        let apart = (degrees - phase + 540.0).rem_euclid(360.0) - 180.0;
        assert!(apart.abs() < reach * 10.0, "{degrees} degrees for {phase}");
    }

    #[test]
    fn a_sine_has_its_delay_and_phase_between_samples() {
        for (period, later) in [(100.0, 12.34), (100.0, -33.3), (37.7, 5.5), (3.1, 0.77), (2048.0, 300.25)] {
            assert_is(shift(&pair(sine(period), later, 0.0)), later, -360.0 * later / period, 0.01);
        }
        // In a periodic wave, the nearest delay: nine tenths of a period later is a tenth earlier.
        assert_is(shift(&pair(sine(100.0), 90.0, 0.0)), -10.0, 36.0, 0.01);
        // 10 dB of noise in each; many periods.
        assert_is(shift(&pair(sine(20.0), 3.25, 0.22)), 3.25, -58.5, 0.2);
    }

    #[test]
    fn a_signal_without_a_period_has_a_delay_and_no_phase() {
        let mut rng = Rng::with_seed(3);
        let noise: Vec<f32> = (0..9000).map(|_| rng.f64() as f32 - 0.5).collect();
        let found = shift(&[noise[500..8692].to_vec(), noise[..8192].to_vec()]);
        assert!((found.delay_samples.unwrap() - 500.0).abs() < 0.01, "{found:?}");
        assert_eq!(found.phase_degrees, None);
        let burst = |at: f64| (-((at - 4000.0) / 60.0).powi(2)).exp() * (at * 0.7).sin();
        let found = shift(&pair(burst, 1234.5, 0.0));
        assert!((found.delay_samples.unwrap() - 1234.5).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn the_fundamental_of_pulses_counts_and_not_their_harmonics() {
        let pulses = |at: f64| (((at / 100.0).rem_euclid(1.0) - 0.5) / 0.02).abs();
        let pulses = move |at: f64| (-pulses(at).powi(2)).exp();
        assert_is(shift(&pair(pulses, 25.0, 0.0)), 25.0, -90.0, 0.01);
    }

    #[test]
    fn an_unknown_shift_is_omitted() {
        let [a, _] = pair(sine(64.0), 0.0, 0.0);
        let [b, _] = pair(sine(128.0), 0.0, 0.0);
        assert_eq!(shift(&[a.clone(), b]), Shift::default(), "another frequency");
        assert_eq!(shift(&[a.clone(), vec![3.0; 8192]]), Shift::default(), "flat");
        assert_eq!(shift(&[a.clone(), vec![f32::NAN; 8192]]), Shift::default());
        assert_eq!(shift(&[a[..40].to_vec(), a[..40].to_vec()]), Shift::default(), "too short");
        let [_, noise] = pair(|_| 0.0, 0.0, 1.0);
        assert_eq!(shift(&[a, noise]), Shift::default());
    }
}
