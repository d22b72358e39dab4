//! Spectra of unbroken runs of samples: windows, averages, peak hold, levels in dBFS.
//!
//! 0 dBFS is a sine that uses the whole range of `i16` (AES17), or one of amplitude 1 of `f32`; for complex samples, a tone
//! of that magnitude. A level is that of the tone that would cause it: the window's gain is divided out, so peaks are right
//! with every window.

mod levels;
mod measure;
mod peaks;
mod transform;
mod window;

use crate::error::Result;
use crate::value::Value;
pub use levels::Averaging;
use levels::Levels;
pub use levels::decibels;
pub use measure::{Band, ToneQuality};
pub use peaks::{Peak, Sides, find_peaks, peak_at};
pub use transform::PowerTransform;
pub use window::Window;

/// Power spectra of one channel.
///
/// `COMPONENTS` is 1 for real samples, made with [`new`](Spectrum::new): lines go from 0 Hz to half the rate. It is 2 for complex
/// samples, made with [`complex`](Spectrum::complex) and given as I and Q: lines go from minus half the rate on, and 0 Hz, where
/// a receiver's centre frequency lies, is in the middle.
///
/// Works in memory reserved at the start; appending allocates nothing. A transform with a sample that is not finite
/// is skipped and counted.
///
/// ```
/// use grebe_scope::{Averaging, Spectrum, Window};
/// // Half of full scale at an eighth of the rate: -6 dBFS in line 128 of 1024 samples.
/// let tone: Vec<i16> = (0..1024).map(|i| (16384.0 * (i as f64 / 8.0 * std::f64::consts::TAU).sin()) as i16).collect();
/// let mut spectrum = Spectrum::new(1024, Window::Hann, Averaging::None)?;
/// spectrum.append(0, &tone, |_| {});
/// assert!((spectrum.dbfs()[128] + 6.02).abs() < 0.01);
///
/// // The same frequency below the centre, complex: on the other side of the middle, and nowhere else.
/// let turn = |i: i32| -f64::from(i) / 8.0 * std::f64::consts::TAU;
/// let i: Vec<f32> = (0..1024).map(|n| 0.5 * turn(n).cos() as f32).collect();
/// let q: Vec<f32> = (0..1024).map(|n| 0.5 * turn(n).sin() as f32).collect();
/// let mut spectrum = Spectrum::complex(1024, Window::Hann, Averaging::None)?;
/// spectrum.append(0, &i, &q, |_| {});
/// assert!((spectrum.dbfs()[512 - 128] + 6.02).abs() < 0.01 && spectrum.dbfs()[512 + 128] < -100.0);
/// assert_eq!(spectrum.cycles_per_sample(384.0), -0.125);
/// # Ok::<(), grebe_scope::Error>(())
/// ```
pub struct Spectrum<V: Value = i16, const COMPONENTS: usize = 1> {
    hop: usize,
    transform: PowerTransform,
    /// The newest samples, up to one transform.
    pending: [Vec<V>; COMPONENTS],
    levels: Levels,
    /// The value of silence.
    zero: f32,
    next: u64,
    left_out: u64,
}

impl<V: Value> Spectrum<V, 1> {
    /// Transforms of `size` real samples, a power of two from 16 to 2^22, each half over the one before (the usual
    /// overlap; [`set_hop`](Spectrum::set_hop) changes it).
    ///
    /// # Errors
    /// [`Error::Setting`](crate::Error::Setting) for another size.
    pub fn new(size: usize, window: Window, averaging: Averaging) -> Result<Spectrum<V, 1>> {
        Ok(Spectrum::of(PowerTransform::real(size, window)?, averaging))
    }

    /// Takes the next samples and calls `each` with the lines in dBFS after every transform.
    ///
    /// An index other than the expected one is a gap: no transform reaches across it.
    pub fn append(&mut self, first_sample_index: u64, samples: &[V], each: impl FnMut(&[f32])) {
        self.append_components(first_sample_index, [samples], each);
    }
}

impl<V: Value> Spectrum<V, 2> {
    /// As [`new`](Spectrum::new), of `size` complex samples.
    ///
    /// # Errors
    /// [`Error::Setting`](crate::Error::Setting) for another size.
    pub fn complex(size: usize, window: Window, averaging: Averaging) -> Result<Spectrum<V, 2>> {
        Ok(Spectrum::of(PowerTransform::complex(size, window)?, averaging))
    }

    /// Takes the next samples of both components, as many as the shorter slice has, and calls `each` with the lines
    /// in dBFS after every transform.
    ///
    /// An index other than the expected one is a gap: no transform reaches across it.
    pub fn append(&mut self, first_sample_index: u64, i: &[V], q: &[V], each: impl FnMut(&[f32])) {
        let len = i.len().min(q.len());
        self.append_components(first_sample_index, [&i[..len], &q[..len]], each);
    }
}

impl<V: Value, const COMPONENTS: usize> Spectrum<V, COMPONENTS> {
    fn of(transform: PowerTransform, averaging: Averaging) -> Self {
        let (size, lines) = (transform.size(), transform.lines());
        let mut spectrum = Spectrum {
            hop: size / 2,
            transform,
            pending: std::array::from_fn(|_| Vec::with_capacity(size)),
            levels: Levels::new(lines, averaging),
            zero: 0.0,
            next: 0,
            left_out: 0,
        };
        spectrum.set_full_scale(V::FULL_SCALE);
        spectrum
    }

    /// Sets the amplitude of 0 dBFS, by default [`Number::FULL_SCALE`](crate::Number::FULL_SCALE). Ignores values
    /// that are not positive. Call it before the first samples.
    pub fn set_full_scale(&mut self, full_scale: f64) {
        self.transform.set_full_scale(full_scale);
    }

    /// Sets the sample value of silence, by default 0: 128 for unsigned bytes removes the offset from the spectrum.
    /// Call it before the first samples.
    pub fn set_zero(&mut self, zero: f64) {
        self.zero = zero as f32;
    }

    /// Samples from one transform to the next, 1 to the size; more overlap is smoother and costs more.
    pub fn set_hop(&mut self, samples: usize) {
        self.hop = samples.clamp(1, self.size());
    }

    /// Holds the highest level of each line, or stops and forgets it.
    pub fn set_peak_hold(&mut self, on: bool) {
        self.levels.set_peak_hold(on);
    }

    /// Lines in dBFS after averaging; -200 before the first transform.
    pub fn dbfs(&self) -> &[f32] {
        &self.levels.dbfs
    }

    /// The highest levels so far, if peak hold is on.
    pub fn hold_dbfs(&self) -> Option<&[f32]> {
        self.levels.hold_dbfs.as_deref()
    }

    /// The `count` highest peaks, the highest first: lines higher than their neighbours within the window's main
    /// lobe and above `floor_dbfs`, their frequency found between lines. Of real samples without the offset at 0 Hz.
    pub fn peaks(&self, count: usize, floor_dbfs: f32) -> Vec<Peak> {
        let sides = if COMPONENTS == 1 { Sides::One } else { Sides::Two };
        find_peaks(self.dbfs(), sides, self.window(), count, floor_dbfs)
    }

    /// The frequency of a line, or of a place between lines, as a part of the rate: 0 to 0.5, or -0.5 to 0.5.
    pub fn cycles_per_sample(&self, line: f64) -> f64 {
        (line - self.zero_line() as f64) / self.size() as f64
    }

    /// The line of 0 Hz: the first, or of complex samples the middle one.
    pub fn zero_line(&self) -> usize {
        if COMPONENTS == 1 { 0 } else { self.size() / 2 }
    }

    /// Samples per transform.
    pub fn size(&self) -> usize {
        self.transform.size()
    }

    /// Samples from one transform to the next.
    pub fn hop(&self) -> usize {
        self.hop
    }

    /// The window.
    pub fn window(&self) -> Window {
        self.transform.window()
    }

    /// Transforms so far.
    pub fn count(&self) -> u64 {
        self.levels.count
    }

    /// Number of transforms that were skipped because a sample was infinite or NaN.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    fn append_components(
        &mut self,
        first_sample_index: u64,
        samples: [&[V]; COMPONENTS],
        mut each: impl FnMut(&[f32]),
    ) {
        if first_sample_index != self.next {
            self.pending.iter_mut().for_each(Vec::clear);
        }
        self.next = first_sample_index + samples[0].len() as u64;
        let size = self.size();
        let mut rest = samples;
        while !rest[0].is_empty() {
            if self.pending[0].is_empty() && rest[0].len() >= size {
                if self.transform(rest.map(|rest| &rest[..size])) {
                    each(&self.levels.dbfs);
                }
                rest = rest.map(|rest| &rest[self.hop..]);
                // The remaining samples may be fewer than a transform: then they wait with the overlap.
                continue;
            }
            let take = rest[0].len().min(size - self.pending[0].len());
            for (pending, rest) in self.pending.iter_mut().zip(&mut rest) {
                let (taken, left) = rest.split_at(take);
                pending.extend_from_slice(taken);
                *rest = left;
            }
            if self.pending[0].len() == size {
                let pending = std::array::from_fn(|_| Vec::new());
                let mut pending = std::mem::replace(&mut self.pending, pending);
                if self.transform(std::array::from_fn(|component| pending[component].as_slice())) {
                    each(&self.levels.dbfs);
                }
                pending.iter_mut().for_each(|pending| drop(pending.drain(..self.hop)));
                self.pending = pending;
            }
        }
    }

    /// Transforms one size of samples; returns `false` if the transform was skipped.
    fn transform(&mut self, samples: [&[V]; COMPONENTS]) -> bool {
        let q = samples.get(1).copied().unwrap_or_default();
        let Some(lines) = self.transform.transform(samples[0], q, self.zero) else {
            self.left_out += 1;
            return false;
        };
        self.levels.add(lines);
        true
    }
}

impl<V: Value, const COMPONENTS: usize> std::fmt::Debug for Spectrum<V, COMPONENTS> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Spectrum { transform, levels, .. } = self;
        f.debug_struct("Spectrum")
            .field("transform", transform)
            .field("levels", levels)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
