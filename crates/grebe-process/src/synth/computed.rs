//! Waves computed sample by sample in any format: complex tones, Gaussian noise, QPSK, and waves with added
//! noise.

use std::f64::consts::{PI, SQRT_2, TAU};
use std::sync::Arc;

use grebe_frame::SampleFormat;

use super::wave::{ChannelSpec, Course, Hash, Wave, periods};
use crate::numbers::{Component, with_component};

/// Wave as a function of the sample's index.
#[derive(Debug, Clone)]
pub(super) struct Computed {
    format: SampleFormat,
    shape: Shape,
    amplitude: f64,
    offset: f64,
    /// RMS and source of the added noise.
    noise: Option<(f64, Hash)>,
}

#[derive(Debug, Clone)]
enum Shape {
    /// Function of the phase. For complex samples, Q lags I by a quarter of a turn.
    Periodic(fn(f64) -> f64, Course),
    TwoTone(Course, Course),
    Uniform(Hash),
    Gaussian(Hash),
    Qpsk(Qpsk),
}

impl Computed {
    /// Wave of a channel with valid settings.
    pub(super) fn new(spec: &ChannelSpec, rate_hz: f64, format: SampleFormat) -> Self {
        let constant = |frequency_hz| Course::constant(&ChannelSpec { frequency_hz, ..*spec }, rate_hz);
        let course = constant(spec.frequency_hz);
        let shape = match spec.wave {
            Wave::Sine => Shape::Periodic(sine, course),
            Wave::Square => Shape::Periodic(square, course),
            Wave::Triangle => Shape::Periodic(triangle, course),
            Wave::Saw => Shape::Periodic(saw, course),
            Wave::Chirp { end_hz, sweep_s } => {
                let samples = (sweep_s * rate_hz).round() as u64;
                Shape::Periodic(sine, Course::sweep(spec, end_hz, samples, rate_hz))
            }
            Wave::TwoTone { second_hz } => Shape::TwoTone(course, constant(second_hz)),
            Wave::Noise { seed } => Shape::Uniform(Hash::new(seed)),
            Wave::Gaussian { seed } => Shape::Gaussian(Hash::new(seed)),
            Wave::Qpsk { symbol_rate_hz, roll_off, seed } => {
                Shape::Qpsk(Qpsk::new(symbol_rate_hz / rate_hz, roll_off, seed))
            }
        };
        let power = power(spec.wave, format.is_complex()) * spec.amplitude * spec.amplitude;
        let noise = |snr_db: f64| {
            // Differs from the seed of any wave.
            ((power / 10f64.powf(snr_db / 10.0)).sqrt(), Hash::new(!spec.noise_seed))
        };
        Self { format, shape, amplitude: spec.amplitude, offset: spec.offset, noise: spec.snr_db.map(noise) }
    }

    /// Repeating block in wire format, if there is one of at most this many samples.
    pub(super) fn tile(&self, spec: &ChannelSpec, rate_hz: f64, samples_max: u64) -> Option<Arc<[u8]>> {
        let period = |frequency_hz: f64| periods(frequency_hz.abs() / rate_hz, samples_max);
        let (samples, tones) = match (spec.wave, self.noise) {
            (_, Some(_)) | (Wave::Noise { .. } | Wave::Gaussian { .. } | Wave::Qpsk { .. }, None) => {
                return None;
            }
            (Wave::Chirp { sweep_s, .. }, None) => ((sweep_s * rate_hz).round() as u64, None),
            (Wave::TwoTone { second_hz }, None) => {
                let (first, second) = (period(spec.frequency_hz)?, period(second_hz)?);
                (least_common_multiple(first.1, second.1)?, Some([spec.frequency_hz, second_hz]))
            }
            (_, None) => (period(spec.frequency_hz)?.1, Some([spec.frequency_hz; 2])),
        };
        if samples > samples_max {
            return None;
        }
        // Phases as fractions are exact, so the block ends where it began.
        let turns = |index: u64, frequency_hz: f64| {
            let (periods, length) = period(frequency_hz)?;
            let turns = (index % length * periods % length) as f64 / length as f64;
            Some(turns * frequency_hz.signum() + spec.phase_turns)
        };
        let mut once = vec![0; samples as usize * self.format.bytes()];
        for (index, bytes) in (0..).zip(once.chunks_exact_mut(self.format.bytes())) {
            let value = match (&self.shape, tones) {
                (Shape::Periodic(shape, _), Some([tone, _])) => pair(*shape, turns(index, tone)?),
                (Shape::TwoTone(..), Some([first, second])) => {
                    two(pair(sine, turns(index, first)?), pair(sine, turns(index, second)?))
                }
                _ => self.value(index),
            };
            self.save(value, index, bytes);
        }
        Some(once.repeat(TILE_BYTES_MIN.div_ceil(once.len().max(1))).into())
    }

    /// Writes the samples from `index` on in wire format.
    pub(super) fn fill(&self, index: u64, out: &mut [u8]) {
        for (index, bytes) in (index..).zip(out.chunks_exact_mut(self.format.bytes())) {
            self.save(self.value(index), index, bytes);
        }
    }

    /// Value of the wave, I and Q: from -1 to 1 for bounded waves.
    fn value(&self, index: u64) -> [f64; 2] {
        match &self.shape {
            Shape::Periodic(shape, course) => pair(*shape, course.turns(index)),
            Shape::TwoTone(first, second) => {
                two(pair(sine, first.turns(index)), pair(sine, second.turns(index)))
            }
            Shape::Uniform(hash) => hash.uniform(index).map(|part| 2.0 * part - 1.0),
            Shape::Gaussian(hash) => {
                let [i, q] = gaussian(*hash, index);
                let rms = if self.format.is_complex() { RMS / SQRT_2 } else { RMS };
                [i * rms, q * rms]
            }
            Shape::Qpsk(qpsk) => qpsk.at(index).map(|part| part * RMS),
        }
    }

    fn save(&self, [i, q]: [f64; 2], index: u64, bytes: &mut [u8]) {
        let mut value = [i, q].map(|part| part * self.amplitude + self.offset);
        if self.format.is_complex() {
            if let Some((rms, hash)) = self.noise {
                let noise = gaussian(hash, index);
                value = [value[0] + noise[0] * rms / SQRT_2, value[1] + noise[1] * rms / SQRT_2];
            }
        } else {
            // The phase of a real wave is that of the sine.
            let noise = self.noise.map_or(0.0, |(rms, hash)| gaussian(hash, index)[0] * rms);
            let is_phased = matches!(self.shape, Shape::Periodic(..) | Shape::TwoTone(..));
            value[0] = if is_phased { value[1] } else { value[0] } + noise;
        }
        let (full_scale, middle) = full_scale(self.format);
        with_component!(self.format, C => {
            for (bytes, part) in bytes.chunks_exact_mut(size_of::<C>()).zip(value) {
                let number = part * full_scale + middle;
                let within = C::LIMITS.map_or(number, |(low, high)| number.clamp(low, high));
                C::of_f64(within).write(bytes);
            }
        });
    }
}

impl Course {
    fn turns(&self, index: u64) -> f64 {
        self.at(index).0 as f64 / TURN
    }
}

/// I and Q of a function of the phase.
fn pair(shape: fn(f64) -> f64, turns: f64) -> [f64; 2] {
    [shape((turns + 0.25).rem_euclid(1.0)), shape(turns.rem_euclid(1.0))]
}

fn two([a, b]: [f64; 2], [c, d]: [f64; 2]) -> [f64; 2] {
    [(a + c) / 2.0, (b + d) / 2.0]
}

fn sine(turns: f64) -> f64 {
    (turns * TAU).sin()
}

fn square(turns: f64) -> f64 {
    if turns < 0.5 { 1.0 } else { -1.0 }
}

fn triangle(turns: f64) -> f64 {
    1.0 - 4.0 * ((turns + 0.25).rem_euclid(1.0) - 0.5).abs()
}

fn saw(turns: f64) -> f64 {
    2.0 * turns - 1.0
}

/// Two independent numbers of variance 1 (Box-Muller).
fn gaussian(hash: Hash, index: u64) -> [f64; 2] {
    let [size, turns] = hash.uniform(index);
    let (sin, cos) = (turns * TAU).sin_cos();
    let radius = (-2.0 * size.ln()).sqrt();
    [radius * cos, radius * sin]
}

/// Quadrature phase-shift keying with corner symbols and root-raised-cosine pulses.
#[derive(Debug, Clone)]
struct Qpsk {
    /// Step per sample; 2^64 is a symbol.
    step: u64,
    symbols: Hash,
    /// Pulse with [`POINTS`] per symbol, from its middle on.
    pulse: Arc<[f64]>,
}

impl Qpsk {
    fn new(symbols_per_sample: f64, roll_off: f64, seed: u64) -> Self {
        let points = SPAN as usize * POINTS + 2;
        let pulse = (0..points).map(|point| root_raised_cosine(point as f64 / POINTS as f64, roll_off));
        let step = (symbols_per_sample * TURN) as u64;
        Self { step, symbols: Hash::new(seed), pulse: pulse.collect() }
    }

    /// I and Q with a mean power of 1.
    fn at(&self, index: u64) -> [f64; 2] {
        let place = u128::from(self.step) * u128::from(index);
        let (symbol, fraction) = ((place >> 64) as i64, place as u64 as f64 / TURN);
        let mut sum = [0.0; 2];
        for k in 1 - SPAN..=SPAN {
            let size = self.pulse_at((fraction - k as f64).abs());
            let [i, q] = self.symbol(symbol + k);
            sum = [sum[0] + size * i, sum[1] + size * q];
        }
        sum
    }

    fn symbol(&self, number: i64) -> [f64; 2] {
        let bits = self.symbols.word(number as u64);
        [bits >> 40 & 1, bits >> 41 & 1].map(|bit| if bit == 1 { 1.0 / SQRT_2 } else { -1.0 / SQRT_2 })
    }

    fn pulse_at(&self, symbols: f64) -> f64 {
        let place = symbols * POINTS as f64;
        let point = place as usize;
        match self.pulse.get(point..point + 2) {
            Some(&[here, next]) => here + (next - here) * (place - point as f64),
            _ => 0.0,
        }
    }
}

/// Pulse `t` symbols from its middle, normalised to an energy of 1.
fn root_raised_cosine(t: f64, roll_off: f64) -> f64 {
    if t == 0.0 {
        return 1.0 - roll_off + 4.0 * roll_off / PI;
    }
    let edge = 4.0 * roll_off * t;
    if (edge.abs() - 1.0).abs() < 1e-9 {
        let (sin, cos) = (PI / (4.0 * roll_off)).sin_cos();
        return roll_off / SQRT_2 * ((1.0 + 2.0 / PI) * sin + (1.0 - 2.0 / PI) * cos);
    }
    ((PI * t * (1.0 - roll_off)).sin() + edge * (PI * t * (1.0 + roll_off)).cos())
        / (PI * t * (1.0 - edge * edge))
}

/// Mean power of a wave of amplitude 1, I and Q together.
fn power(wave: Wave, is_complex: bool) -> f64 {
    let of_component = match wave {
        Wave::Sine | Wave::Chirp { .. } => 0.5,
        Wave::Square => 1.0,
        Wave::Triangle | Wave::Saw | Wave::Noise { .. } => 1.0 / 3.0,
        Wave::TwoTone { .. } => 0.25,
        Wave::Gaussian { .. } | Wave::Qpsk { .. } => return RMS * RMS,
    };
    if is_complex { 2.0 * of_component } else { of_component }
}

/// Full scale, and the zero point.
fn full_scale(format: SampleFormat) -> (f64, f64) {
    match format {
        SampleFormat::U8 => (127.0, 128.0),
        SampleFormat::Cu8 => (127.5, 127.5),
        _ => (with_component!(format, C => C::LIMITS.map_or(1.0, |(_, high)| high)), 0.0),
    }
}

fn least_common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1)).checked_mul(b)
}

/// RMS of Gaussian noise and QPSK of amplitude 1: their unbounded peaks rarely exceed 4 times that.
const RMS: f64 = 0.25;
/// 2^64.
const TURN: f64 = 18_446_744_073_709_551_616.0;
/// Reach of a pulse to either side, in symbols.
const SPAN: i64 = 16;
/// Points of the pulse per symbol. Interpolation between them is accurate to some -100 dB.
const POINTS: usize = 512;
const TILE_BYTES_MIN: usize = 1 << 16;

#[cfg(test)]
mod tests;
