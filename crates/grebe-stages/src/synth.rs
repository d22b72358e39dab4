//! Synthetic waveforms, at memory speed.
//!
//! A sample is a pure function of what was asked for, the rate and its index, so that a stream can be cut into blocks
//! anywhere, dropped samples leave the rest as it would have been, and a test can compute what a receiver must hold.
//!
//! ```
//! use grebe_stages::synth::{ChannelSpec, Generator, Wave};
//!
//! let spec = ChannelSpec { wave: Wave::Square, frequency_hz: 250.0, ..ChannelSpec::default() };
//! let mut block = [0i16; 6];
//! Generator::new(&spec, 1_000.0)?.fill(2, &mut block);
//! assert_eq!(block, [-16384, -16384, 16384, 16384, -16384, -16384]);
//! # Ok::<(), grebe_stages::StagesError>(())
//! ```

mod noise;
mod phase;
mod tile;

use std::sync::Arc;

use crate::StagesError;
use noise::Noise;
use phase::{Course, Shape, Table};

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
    /// A sine that sweeps in `sweep_s` seconds (rounded to whole samples) from the channel's frequency to `end_hz`,
    /// linearly, and begins again.
    Chirp {
        /// The frequency at the end of a sweep.
        end_hz: f64,
        /// How long a sweep takes, in seconds: 2 to 2^32 samples.
        sweep_s: f64,
    },
    /// White noise, uniform between low and high. Repeats after 2^66 samples.
    Noise {
        /// Channels with different seeds are independent of each other.
        seed: u64,
    },
}

/// What one channel carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChannelSpec {
    /// The waveform.
    pub wave: Wave,
    /// Periods a second, 0 to half the rate; where a chirp begins; of no meaning to noise.
    pub frequency_hz: f64,
    /// Where in its period the wave begins, in turns: 0.25 is 90 degrees.
    pub phase_turns: f64,
    /// 0 to 1, of the full scale of 32,767.
    pub amplitude: f64,
    /// -1 to 1, of the full scale. What exceeds full scale with it is clipped.
    pub offset: f64,
}

/// Makes the samples of one channel. A clone shares what was computed.
///
/// Where the period, or a number of periods, is a whole number of samples up to 2^20, that block is computed once and copied
/// from then on; the frequency is then right to the last bit of an f64. Other waves are computed from a 64-bit phase:
/// their frequency is off by at most rate x 2^-54.
#[derive(Debug, Clone)]
pub struct Generator {
    method: Method,
}

#[derive(Debug, Clone)]
enum Method {
    Tile(Arc<[i16]>),
    Phase(Course, Table),
    Noise(Noise),
}

impl Generator {
    /// A generator of `spec` at `rate_hz` samples a second.
    ///
    /// # Errors
    /// [`StagesError::Setting`] where a value is not finite or out of its range.
    pub fn new(spec: &ChannelSpec, rate_hz: f64) -> Result<Self, StagesError> {
        spec.check(rate_hz)?;
        let scale = Scale { amplitude: spec.amplitude * FULL_SCALE, offset: spec.offset * FULL_SCALE };
        let method = match spec.wave {
            Wave::Sine => periodic(Shape::Sine(scale), spec, rate_hz),
            Wave::Square => periodic(Shape::Square(scale), spec, rate_hz),
            Wave::Triangle => periodic(Shape::Triangle(scale), spec, rate_hz),
            Wave::Saw => periodic(Shape::Saw(scale), spec, rate_hz),
            Wave::Chirp { end_hz, sweep_s } => {
                let sweep_samples = (sweep_s * rate_hz).round() as u64;
                let course = Course::sweep(spec, end_hz, sweep_samples, rate_hz);
                let method = Method::Phase(course, Table::new(&Shape::Sine(scale)));
                if sweep_samples <= TILE_SAMPLES_MAX {
                    Method::Tile(tile::repeat(Generator { method }, sweep_samples))
                } else {
                    method
                }
            }
            Wave::Noise { seed } => Method::Noise(Noise::new(seed, scale)),
        };
        Ok(Self { method })
    }

    /// Whether [`new`](Self::new) would make one of this, without computing a sample.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn check(spec: &ChannelSpec, rate_hz: f64) -> Result<(), StagesError> {
        spec.check(rate_hz)
    }

    /// Writes the samples from `first_sample_index` on.
    #[inline]
    pub fn fill(&self, first_sample_index: u64, out: &mut [i16]) {
        match &self.method {
            Method::Tile(tile) => tile::fill(tile, first_sample_index, out),
            Method::Phase(course, table) => table.fill(course, first_sample_index, out),
            Method::Noise(noise) => noise.fill(first_sample_index, out),
        }
    }
}

impl ChannelSpec {
    fn check(&self, rate_hz: f64) -> Result<(), StagesError> {
        let setting = |what, got: f64, good: bool, must| {
            if good { Ok(()) } else { Err(StagesError::Setting { what, got: got.to_string(), must }) }
        };
        let nyquist_hz = 0.0..=rate_hz / 2.0;
        let within = "give 0 to half the sample rate; above it there are aliases";
        setting("sample rate", rate_hz, rate_hz > 0.0 && rate_hz.is_finite(), "give a rate above 0 Hz")?;
        let unused = matches!(self.wave, Wave::Noise { .. });
        setting("frequency", self.frequency_hz, unused || nyquist_hz.contains(&self.frequency_hz), within)?;
        setting("phase", self.phase_turns, self.phase_turns.is_finite(), "give a number of turns")?;
        setting("amplitude", self.amplitude, (0.0..=1.0).contains(&self.amplitude), "give 0 to 1")?;
        setting("offset", self.offset, (-1.0..=1.0).contains(&self.offset), "give -1 to 1")?;
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
        Self { wave: Wave::Sine, frequency_hz: 1_000.0, phase_turns: 0.0, amplitude: 0.5, offset: 0.0 }
    }
}

fn periodic(shape: Shape, spec: &ChannelSpec, rate_hz: f64) -> Method {
    match tile::periods(spec.frequency_hz / rate_hz, TILE_SAMPLES_MAX) {
        Some((periods, samples)) => Method::Tile(tile::compute(&shape, spec.phase_turns, periods, samples)),
        None => Method::Phase(Course::constant(spec, rate_hz), Table::new(&shape)),
    }
}

/// What a wave between -1 and 1 is multiplied with, and what is added, in counts.
#[derive(Debug, Clone, Copy)]
struct Scale {
    amplitude: f64,
    offset: f64,
}

const FULL_SCALE: f64 = 32_767.0;
/// 2 MiB: a few of them stay in the second-level cache, and computing one takes 20 ms.
const TILE_SAMPLES_MAX: u64 = 1 << 20;
/// Beyond it the 64-bit phase of a sweep is off by more than a quarter turn at its end.
const SWEEP_SAMPLES_MAX: f64 = 4_294_967_296.0;

#[cfg(test)]
mod tests;
