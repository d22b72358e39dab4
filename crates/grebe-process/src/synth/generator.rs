//! Samples of one channel.

use std::sync::Arc;

use grebe_frame::SampleFormat;

use super::computed::Computed;
use super::wave::{self, ChannelSpec, Course, Noise, Scale, Shape, Table, Wave};
use crate::error::Error;

/// Makes the samples of one channel. Clones share computed data.
///
/// If one or several periods are a whole number of samples up to 2^20, that block is computed once and then
/// copied. The frequency is then exact to the last bit of an f64. Other waves use a 64-bit phase, with a
/// frequency error of at most rate x 2^-54.
#[derive(Debug, Clone)]
pub struct Generator {
    method: Method,
}

#[derive(Debug, Clone)]
enum Method {
    Tile(Arc<[i16]>),
    Phase(Course, Table),
    Noise(Noise),
    /// Block in wire format, and the bytes per sample.
    Bytes(Arc<[u8]>, usize),
    Computed(Arc<Computed>),
}

impl Generator {
    /// Makes a generator of `spec` at `rate_hz` samples per second.
    ///
    /// # Errors
    /// [`Error::Setting`] if a value is not finite or out of range.
    pub fn new(spec: &ChannelSpec, rate_hz: f64) -> Result<Self, Error> {
        Self::of_format(spec, rate_hz, SampleFormat::I16)
    }

    /// Makes a generator of `spec` in any format.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn of_format(spec: &ChannelSpec, rate_hz: f64, format: SampleFormat) -> Result<Self, Error> {
        spec.check(rate_hz, format)?;
        if format != SampleFormat::I16 || spec.snr_db.is_some() {
            return Ok(Self { method: computed(spec, rate_hz, format) });
        }
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
            Wave::TwoTone { .. } | Wave::Gaussian { .. } | Wave::Qpsk { .. } => {
                computed(spec, rate_hz, format)
            }
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
            Method::Bytes(..) | Method::Computed(_) => {
                let bytes = bytemuck::cast_slice_mut(out);
                self.fill_bytes(first_sample_index, bytes);
                SampleFormat::I16.swap_to_host(bytes);
            }
        }
    }

    /// Writes the samples from `first_sample_index` on in wire format, in the generator's sample format.
    #[inline]
    pub fn fill_bytes(&self, first_sample_index: u64, out: &mut [u8]) {
        match &self.method {
            Method::Bytes(tile, bytes) => {
                let index = first_sample_index % (tile.len() / bytes) as u64;
                wave::fill_from(tile, index * *bytes as u64, out);
            }
            Method::Computed(computed) => computed.fill(first_sample_index, out),
            Method::Tile(_) | Method::Phase(..) | Method::Noise(_) => {
                // Channels of a frame are aligned.
                if let Ok(samples) = bytemuck::try_cast_slice_mut(out) {
                    self.fill(first_sample_index, samples);
                }
                SampleFormat::I16.swap_to_host(out);
            }
        }
    }
}

fn computed(spec: &ChannelSpec, rate_hz: f64, format: SampleFormat) -> Method {
    let computed = Computed::new(spec, rate_hz, format);
    match computed.tile(spec, rate_hz, TILE_SAMPLES_MAX * 2 / format.bytes() as u64) {
        Some(tile) => Method::Bytes(tile, format.bytes()),
        None => Method::Computed(Arc::new(computed)),
    }
}

fn periodic(shape: Shape, spec: &ChannelSpec, rate_hz: f64) -> Method {
    match wave::periods(spec.frequency_hz / rate_hz, TILE_SAMPLES_MAX) {
        Some((periods, samples)) => Method::Tile(wave::compute(&shape, spec.phase_turns, periods, samples)),
        None => Method::Phase(Course::constant(spec, rate_hz), Table::new(&shape)),
    }
}

const FULL_SCALE: f64 = 32_767.0;
/// 2 MiB: a few of them fit into the second-level cache, and computing one takes 20 ms.
const TILE_SAMPLES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests;
