//! The samples of one channel.

use std::sync::Arc;

use super::wave::{self, ChannelSpec, Course, Noise, Scale, Shape, Table, Wave};
use crate::error::Error;

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
    /// A generator of `spec` at `rate_hz` samples per second.
    ///
    /// # Errors
    /// [`Error::Setting`] where a value is not finite or out of its range.
    pub fn new(spec: &ChannelSpec, rate_hz: f64) -> Result<Self, Error> {
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
                    Method::Tile(wave::repeat(sweep_samples, |out| Generator { method }.fill(0, out)))
                } else {
                    method
                }
            }
            Wave::Noise { seed } => Method::Noise(Noise::new(seed, scale)),
        };
        Ok(Self { method })
    }

    /// Writes the samples from `first_sample_index` on.
    #[inline]
    pub fn fill(&self, first_sample_index: u64, out: &mut [i16]) {
        match &self.method {
            Method::Tile(tile) => wave::fill_from(tile, first_sample_index, out),
            Method::Phase(course, table) => table.fill(course, first_sample_index, out),
            Method::Noise(noise) => noise.fill(first_sample_index, out),
        }
    }
}

fn periodic(shape: Shape, spec: &ChannelSpec, rate_hz: f64) -> Method {
    match wave::periods(spec.frequency_hz / rate_hz, TILE_SAMPLES_MAX) {
        Some((periods, samples)) => Method::Tile(wave::compute(&shape, spec.phase_turns, periods, samples)),
        None => Method::Phase(Course::constant(spec, rate_hz), Table::new(&shape)),
    }
}

const FULL_SCALE: f64 = 32_767.0;
/// 2 MiB: a few of them stay in the second-level cache, and computing one takes 20 ms.
const TILE_SAMPLES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests;
