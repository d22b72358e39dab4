//! Waveform of a channel and its computation: from an integer phase, as copies of a tile, or as a hash.

use std::sync::Arc;

use grebe_frame::SampleFormat;

use crate::error::Error;

/// A waveform.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wave {
    /// Rises from 0.
    Sine,
    /// High for the first half of a period, then low.
    Square,
    /// Rises from 0 like the sine.
    Triangle,
    /// Rises from low to high over a period.
    Saw,
    /// A sine that sweeps linearly from the channel's frequency to `end_hz` in `sweep_s` seconds (rounded to
    /// whole samples), and repeats.
    Chirp {
        /// Final frequency of a sweep.
        end_hz: f64,
        /// Duration of a sweep in seconds: 2 to 2^32 samples.
        sweep_s: f64,
    },
    /// Two sines of half the amplitude each: at the channel's frequency and at another one.
    TwoTone {
        /// Frequency of the second sine.
        second_hz: f64,
    },
    /// White Gaussian noise with an RMS of a quarter of the amplitude (for complex samples, of I and Q
    /// together).
    Gaussian {
        /// Channels with different seeds are independent of each other.
        seed: u64,
    },
    /// QPSK of random symbols in root-raised-cosine pulses, for complex samples. Its RMS is a quarter of the
    /// amplitude.
    Qpsk {
        /// Symbols per second, at most half the rate.
        symbol_rate_hz: f64,
        /// Roll-off, 0 to 1: excess of the bandwidth over the symbol rate.
        roll_off: f64,
        /// Seed of the symbols.
        seed: u64,
    },
    /// White noise, uniform between low and high. Repeats after 2^66 samples.
    Noise {
        /// Channels with different seeds are independent of each other.
        seed: u64,
    },
}

/// Settings of one channel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChannelSpec {
    /// The waveform.
    pub wave: Wave,
    /// Periods per second, up to half the rate; negative only for complex samples. The initial frequency of a
    /// chirp; ignored by noise and QPSK.
    pub frequency_hz: f64,
    /// Initial phase in turns: 0.25 is 90 degrees.
    pub phase_turns: f64,
    /// Part of full scale, 0 to 1: 32,767 of 16 bits, 1.0 of floating point.
    pub amplitude: f64,
    /// Part of full scale, -1 to 1. Samples beyond full scale are clipped.
    pub offset: f64,
    /// Adds white Gaussian noise. Signal-to-noise ratio in decibels, by the powers in the whole band.
    pub snr_db: Option<f64>,
    /// Seed of that noise.
    pub noise_seed: u64,
}

impl ChannelSpec {
    pub(super) fn check(&self, rate_hz: f64, format: SampleFormat) -> Result<(), Error> {
        let setting = |what, got: f64, good: bool, must| {
            if good { Ok(()) } else { Err(Error::Setting { what, got: got.to_string(), must }) }
        };
        let lowest_hz = if format.is_complex() { -rate_hz / 2.0 } else { 0.0 };
        let nyquist_hz = lowest_hz..=rate_hz / 2.0;
        let within = if format.is_complex() {
            "give at most half the sample rate, up or down; beyond it there are aliases"
        } else {
            "give 0 to half the sample rate; above it there are aliases"
        };
        setting("sample rate", rate_hz, rate_hz > 0.0 && rate_hz.is_finite(), "give a rate above 0 Hz")?;
        let unused = matches!(self.wave, Wave::Noise { .. } | Wave::Gaussian { .. } | Wave::Qpsk { .. });
        setting("frequency", self.frequency_hz, unused || nyquist_hz.contains(&self.frequency_hz), within)?;
        setting("phase", self.phase_turns, self.phase_turns.is_finite(), "give a number of turns")?;
        setting("amplitude", self.amplitude, (0.0..=1.0).contains(&self.amplitude), "give 0 to 1")?;
        setting("offset", self.offset, (-1.0..=1.0).contains(&self.offset), "give -1 to 1")?;
        let snr_db = self.snr_db.unwrap_or(0.0);
        setting("SNR", snr_db, (-100.0..=200.0).contains(&snr_db), "give -100 to 200 dB")?;
        if let Wave::TwoTone { second_hz } = self.wave {
            setting("second frequency", second_hz, nyquist_hz.contains(&second_hz), within)?;
        }
        if let Wave::Qpsk { symbol_rate_hz, roll_off, .. } = self.wave {
            if !format.is_complex() {
                let must = "QPSK needs a complex one: ci8, cu8, ci16 or cf32";
                return Err(Error::Setting { what: "format", got: format.to_string(), must });
            }
            let good = symbol_rate_hz > 0.0 && symbol_rate_hz <= rate_hz / 2.0;
            setting("symbol rate", symbol_rate_hz, good, "give more than 0, at most half the sample rate")?;
            setting("roll-off", roll_off, (0.0..=1.0).contains(&roll_off), "give 0 to 1")?;
        }
        if let Wave::Chirp { end_hz, sweep_s } = self.wave {
            setting("end frequency", end_hz, nyquist_hz.contains(&end_hz), within)?;
            let samples = (sweep_s * rate_hz).round();
            let good = (2.0..=SWEEP_SAMPLES_MAX).contains(&samples);
            setting("sweep time", sweep_s, good, "give seconds that make 2 to 2^32 samples")?;
        }
        Ok(())
    }
}

impl Default for ChannelSpec {
    /// A sine of 1 kHz at half of full scale.
    fn default() -> Self {
        Self {
            wave: Wave::Sine,
            frequency_hz: 1_000.0,
            phase_turns: 0.0,
            amplitude: 0.5,
            offset: 0.0,
            snr_db: None,
            noise_seed: 0,
        }
    }
}

/// Factor and summand in counts for a wave between -1 and 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) amplitude: f64,
    pub(super) offset: f64,
}

/// Beyond this, the 64-bit phase at the end of a sweep is off by more than a quarter turn.
const SWEEP_SAMPLES_MAX: f64 = 4_294_967_296.0;

/// Phase from sample to sample, as an integer with 2^64 per turn, so that it wraps exactly and never drifts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Course {
    /// Phase at sample 0.
    phase: u64,
    /// Step from sample 0 to 1.
    step: u64,
    /// Growth of the step per sample.
    growth: u64,
    /// Samples until the course repeats; 0: never.
    samples: u64,
}

/// Function of the phase.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    Sine(Scale),
    Square(Scale),
    Triangle(Scale),
    Saw(Scale),
}

impl Course {
    pub(super) fn constant(spec: &ChannelSpec, rate_hz: f64) -> Self {
        Self {
            phase: turns(spec.phase_turns),
            step: turns(spec.frequency_hz / rate_hz),
            growth: 0,
            samples: 0,
        }
    }

    pub(super) fn sweep(spec: &ChannelSpec, end_hz: f64, samples: u64, rate_hz: f64) -> Self {
        let growth = (end_hz - spec.frequency_hz) / rate_hz / samples as f64;
        // Plus half a growth, so that the frequency is right in the middle of each step.
        let step = spec.frequency_hz / rate_hz + growth / 2.0;
        Self { phase: turns(spec.phase_turns), step: turns(step), growth: signed_turns(growth), samples }
    }

    /// Phase and step at a sample.
    #[inline]
    pub(super) fn at(&self, index: u64) -> (u64, u64) {
        let index = if self.samples > 0 { index % self.samples } else { index };
        // index (index - 1) / 2 modulo 2^64: the even factor is halved first.
        let (half, whole) =
            if index.is_multiple_of(2) { (index / 2, index.wrapping_sub(1)) } else { (index / 2, index) };
        let triangle = half.wrapping_mul(whole);
        let phase = self
            .phase
            .wrapping_add(self.step.wrapping_mul(index))
            .wrapping_add(self.growth.wrapping_mul(triangle));
        (phase, self.step.wrapping_add(self.growth.wrapping_mul(index)))
    }

    /// Samples from `index` until the course repeats.
    #[inline]
    fn left(&self, index: u64) -> usize {
        if self.samples == 0 { usize::MAX } else { (self.samples - index % self.samples) as usize }
    }
}

impl Shape {
    /// One exact sample.
    pub(super) fn sample(&self, turns: f64) -> i16 {
        let turns = turns.rem_euclid(1.0);
        let (wave, scale) = match *self {
            Shape::Sine(scale) => ((turns * std::f64::consts::TAU).sin(), scale),
            Shape::Square(scale) => (if turns < 0.5 { 1.0 } else { -1.0 }, scale),
            Shape::Triangle(scale) => (1.0 - 4.0 * ((turns + 0.25).rem_euclid(1.0) - 0.5).abs(), scale),
            Shape::Saw(scale) => (2.0 * turns - 1.0, scale),
        };
        // `as` saturates.
        (wave * scale.amplitude + scale.offset).round() as i16
    }
}

/// One period of a shape, fine enough for an error within one count. Half an entry away, the steepest wave is
/// off by 0.4 counts, and rounding adds half a count. (A polynomial took three times as long.)
#[derive(Debug, Clone)]
pub(super) struct Table(Arc<[i16]>);

impl Table {
    pub(super) fn new(shape: &Shape) -> Self {
        let middle = |entry: usize| (entry as f64 + 0.5) / TABLE_SAMPLES as f64;
        Self((0..TABLE_SAMPLES).map(|entry| shape.sample(middle(entry))).collect())
    }

    /// Writes the samples from `index` on.
    pub(super) fn fill(&self, course: &Course, mut index: u64, mut out: &mut [i16]) {
        let Some(table) = self.0.first_chunk::<TABLE_SAMPLES>() else { return };
        while !out.is_empty() {
            let length = out.len().min(course.left(index));
            let (now, rest) = out.split_at_mut(length);
            let (mut phase, mut step) = course.at(index);
            for sample in now {
                *sample = table[(phase >> (u64::BITS - TABLE_SAMPLES.ilog2())) as usize];
                phase = phase.wrapping_add(step);
                step = step.wrapping_add(course.growth);
            }
            index = index.wrapping_add(length as u64);
            out = rest;
        }
    }
}

/// Fraction of a turn as an integer, without whole turns.
fn turns(turns: f64) -> u64 {
    let fraction = turns - turns.floor();
    // 2^64 itself saturates to the largest phase, one part in 2^64 away.
    (fraction * 18_446_744_073_709_551_616.0) as u64
}

/// Less than half a turn in either direction, as precise as an f64 near 0.
fn signed_turns(turns: f64) -> u64 {
    (turns * 18_446_744_073_709_551_616.0).round() as i64 as u64
}

/// 512 KiB: fits into the second-level cache of most machines.
const TABLE_SAMPLES: usize = 1 << 18;

/// Writes samples from `index` on of a wave that repeats with `tile`.
#[inline]
pub(super) fn fill_from<T: Copy>(tile: &[T], index: u64, mut out: &mut [T]) {
    let mut at = (index % tile.len() as u64) as usize;
    while !out.is_empty() {
        let length = out.len().min(tile.len() - at);
        let (now, rest) = out.split_at_mut(length);
        now.copy_from_slice(&tile[at..at + length]);
        (out, at) = (rest, 0);
    }
}

/// Smallest block of a wave with `frequency` periods per sample: number of periods and of samples.
///
/// Walks the convergents of the continued fraction of `frequency`. One within the precision of an f64 counts
/// as exact.
pub(super) fn periods(frequency: f64, samples_max: u64) -> Option<(u64, u64)> {
    let (mut before, mut now) = ((1u64, 0u64), (0u64, 1u64));
    let mut rest = frequency;
    for _ in 0..CONVERGENTS_MAX {
        let ratio = now.0 as f64 / now.1 as f64;
        if (ratio - frequency).abs() <= frequency * f64::EPSILON {
            return Some(now);
        }
        rest = rest.fract().recip();
        if !rest.is_finite() || rest > samples_max as f64 {
            return None;
        }
        let digit = rest as u64;
        let next = (digit * now.0 + before.0, digit * now.1 + before.1);
        if next.1 > samples_max {
            return None;
        }
        (before, now) = (now, next);
    }
    None
}

/// Computes `periods` periods in `samples` samples, repeated to a length worth copying.
pub(super) fn compute(shape: &Shape, phase_turns: f64, periods: u64, samples: u64) -> Arc<[i16]> {
    let sample = |index: u64| {
        // Exact, because the product stays below 2^41.
        let turns = (index * periods % samples) as f64 / samples as f64;
        shape.sample(turns + phase_turns)
    };
    let once: Vec<i16> = (0..samples).map(sample).collect();
    once.repeat(copies(samples)).into()
}

/// One period computed by `fill`, repeated to a length worth copying.
pub(super) fn repeat(samples: u64, fill: impl FnOnce(&mut [i16])) -> Arc<[i16]> {
    let mut once = vec![0; samples as usize];
    fill(&mut once);
    once.repeat(copies(samples)).into()
}

fn copies(samples: u64) -> usize {
    TILE_SAMPLES_MIN.div_ceil(samples) as usize
}

/// 64 KiB: a block rarely needs more than two copies, and eight channels' tiles fit into the second-level
/// cache.
const TILE_SAMPLES_MIN: u64 = 1 << 15;
/// The denominators of a continued fraction at least double every other step.
const CONVERGENTS_MAX: usize = 64;

/// White noise as a hash of the sample's index. Without state, so that any block can be made alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Noise {
    key: u64,
    /// Amplitude in counts, for uniform samples of 15 fractional bits.
    amplitude: i32,
    /// Offset in counts with 15 fractional bits, plus one half for rounding.
    offset: i32,
}

impl Noise {
    pub(super) fn new(seed: u64, scale: Scale) -> Self {
        // At most 32,768 x 32,767 each, so their sum plus a half fits into an i32.
        let offset = (scale.offset.round() as i32 * (1 << 15)) + (1 << 14);
        Self { key: wyrand(seed.wrapping_add(STEP)), amplitude: scale.amplitude.round() as i32, offset }
    }

    pub(super) fn fill(&self, index: u64, out: &mut [i16]) {
        let lane = (index % LANES as u64) as usize;
        let mut word = index / LANES as u64;
        let head = if lane > 0 { (LANES - lane).min(out.len()) } else { 0 };
        let (head, body) = out.split_at_mut(head);
        if !head.is_empty() {
            head.copy_from_slice(&self.lanes(word)[lane..lane + head.len()]);
            word = word.wrapping_add(1);
        }
        // First hashes, then samples of them, so that the compiler vectorises the second loop.
        let mut chunks = body.chunks_exact_mut(BLOCK_SAMPLES);
        for chunk in &mut chunks {
            for four in chunk.as_chunks_mut().0 {
                *four = self.uniform(word);
                word = word.wrapping_add(1);
            }
            chunk.iter_mut().for_each(|sample| *sample = self.scale(*sample));
        }
        for chunk in chunks.into_remainder().chunks_mut(LANES) {
            chunk.copy_from_slice(&self.lanes(word)[..chunk.len()]);
            word = word.wrapping_add(1);
        }
    }

    fn lanes(&self, word: u64) -> [i16; LANES] {
        self.uniform(word).map(|uniform| self.scale(uniform))
    }

    /// Four samples between the minimum and maximum of i16.
    #[inline]
    fn uniform(&self, word: u64) -> [i16; LANES] {
        let hash = wyrand(word.wrapping_mul(STEP).wrapping_add(self.key));
        bytemuck::cast::<u64, [i16; LANES]>(hash.to_le()).map(i16::from_le)
    }

    #[inline]
    fn scale(&self, uniform: i16) -> i16 {
        let sample = (i32::from(uniform) * self.amplitude + self.offset) >> 15;
        sample.clamp(i16::MIN.into(), i16::MAX.into()) as i16
    }
}

/// Random bits as a function of a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hash {
    key: u64,
}

impl Hash {
    pub(super) fn new(seed: u64) -> Self {
        Self { key: wyrand(seed.wrapping_add(STEP)) }
    }

    pub(super) fn word(&self, number: u64) -> u64 {
        wyrand(number.wrapping_mul(STEP).wrapping_add(self.key))
    }

    /// Two independent numbers strictly between 0 and 1.
    pub(super) fn uniform(&self, number: u64) -> [f64; 2] {
        let word = self.word(number);
        [word >> 32, word & 0xffff_ffff].map(|half| (half as f64 + 0.5) / 4_294_967_296.0)
    }
}

/// One step of wyrand (Wang Yi, wyhash): a single wide multiplication for four samples.
#[inline]
fn wyrand(state: u64) -> u64 {
    let product = u128::from(state) * u128::from(state ^ 0xe703_7ed1_a0b4_28db);
    (product >> 64) as u64 ^ product as u64
}

const LANES: usize = 4;
/// Fits into registers and the first-level cache.
const BLOCK_SAMPLES: usize = 256;
/// Increment of wyrand's state per step.
const STEP: u64 = 0xa076_1d64_78bd_642f;

#[cfg(test)]
mod tests {
    use super::periods;

    #[test]
    fn rational_frequencies_are_found_and_others_are_not() {
        for (frequency_hz, rate_hz, expected) in [
            (0.0, 1e6, Some((0, 1))),
            (500_000.0, 1e6, Some((1, 2))),
            (1_000.0, 25e6, Some((1, 25_000))),
            (440.0, 48_000.0, Some((11, 1_200))),
            (0.1, 360.0, Some((1, 3_600))),
            (1.25e6, 100e6, Some((1, 80))),
            (333_333.25, 1e6, Some((1_333_333, 4_000_000))),
            (1e6 / 3.0, 1e6, Some((1, 3))),
            (1e-3, 1e9, None),
            (std::f64::consts::PI, 1e3, None),
        ] {
            let expected = expected.filter(|&(_, samples)| samples <= 1 << 20);
            assert_eq!(periods(frequency_hz / rate_hz, 1 << 20), expected, "{frequency_hz} at {rate_hz}");
        }
    }
}
