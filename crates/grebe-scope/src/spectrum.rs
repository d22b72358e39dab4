//! Spectra of unbroken runs of samples: windows, averages, peak hold, levels in dBFS.
//!
//! 0 dBFS is a sine that uses the whole range of `i16` (AES17). Levels are those of the sine that would cause
//! them: the window's gain is divided out, so peaks read right with every window.

mod window;

use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};

use crate::error::{Error, Result};
pub use window::Window;

/// How successive spectra are averaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Averaging {
    /// Each stands alone.
    #[default]
    None,
    /// Mean power of all so far.
    All,
    /// Exponential mean of the power: each new spectrum has the weight of one in this many (at least 1).
    Exponential(u32),
}

/// A peak of a spectrum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// Where, in lines, found between lines.
    pub line: f64,
    /// Level of the peak, in dBFS.
    pub dbfs: f64,
}

/// Power spectra of one channel.
///
/// Works in place in memory reserved at the start; feeding allocates nothing.
///
/// ```
/// use grebe_scope::{Averaging, Spectrum, Window};
/// // Half of full scale at an eighth of the rate: -6 dBFS in line 128 of 1024 samples.
/// let tone: Vec<i16> = (0..1024).map(|i| (16384.0 * (i as f64 / 8.0 * std::f64::consts::TAU).sin()) as i16).collect();
/// let mut spectrum = Spectrum::new(1024, Window::Hann, Averaging::None)?;
/// spectrum.append(0, &tone, |_| {});
/// assert!((spectrum.dbfs()[128] + 6.02).abs() < 0.01);
/// # Ok::<(), grebe_scope::Error>(())
/// ```
pub struct Spectrum {
    size: usize,
    hop: usize,
    window: Window,
    averaging: Averaging,
    transform: Arc<dyn RealToComplex<f32>>,
    /// The window, scaled so that a full-scale sine has power 1 in its line.
    weights: Vec<f32>,
    /// The newest samples, up to one transform.
    pending: Vec<i16>,
    input: Vec<f32>,
    lines: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
    power: Vec<f32>,
    dbfs: Vec<f32>,
    hold_dbfs: Option<Vec<f32>>,
    next: u64,
    count: u64,
}

impl std::fmt::Debug for Spectrum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Spectrum { size, window, averaging, count, .. } = self;
        f.debug_struct("Spectrum")
            .field("size", size)
            .field("window", window)
            .field("averaging", averaging)
            .field("count", count)
            .finish_non_exhaustive()
    }
}

impl Spectrum {
    /// Transforms of `size` samples, a power of two from 16 to 2^22, each half over the one before (the usual
    /// overlap; [`set_hop`](Spectrum::set_hop) changes it).
    ///
    /// # Errors
    /// [`Error::Setting`] for another size.
    pub fn new(size: usize, window: Window, averaging: Averaging) -> Result<Spectrum> {
        if !size.is_power_of_two() || !(16..=1 << 22).contains(&size) {
            let got = size.to_string();
            return Err(Error::Setting {
                what: "transform size",
                got,
                must: "a power of two from 16 to 2^22",
            });
        }
        let transform = RealFftPlanner::<f32>::new().plan_fft_forward(size);
        let lines = size / 2 + 1;
        let coefficients = window.coefficients(size);
        // A sine of amplitude A has |line| = A / 2 * sum(window).
        let gain = 2.0 / (coefficients.iter().sum::<f64>() * 32768.0);
        Ok(Spectrum {
            size,
            hop: size / 2,
            window,
            averaging,
            weights: coefficients.iter().map(|w| (w * gain) as f32).collect(),
            pending: Vec::with_capacity(size),
            input: vec![0.0; size],
            lines: vec![Complex::default(); lines],
            scratch: vec![Complex::default(); transform.get_scratch_len()],
            transform,
            power: vec![0.0; lines],
            dbfs: vec![FLOOR_DB; lines],
            hold_dbfs: None,
            next: 0,
            count: 0,
        })
    }

    /// Samples from one transform to the next, 1 to the size; more overlap is smoother and costs more.
    pub fn set_hop(&mut self, samples: usize) {
        self.hop = samples.clamp(1, self.size);
    }

    /// Keeps the highest level of each line, or stops and forgets.
    pub fn set_peak_hold(&mut self, on: bool) {
        self.hold_dbfs = on.then(|| vec![FLOOR_DB; self.power.len()]);
    }

    /// Takes the next samples and calls `each` with the lines in dBFS after every transform.
    ///
    /// An index other than the expected one is a gap: no transform reaches across it.
    pub fn append(&mut self, first_sample_index: u64, samples: &[i16], mut each: impl FnMut(&[f32])) {
        if first_sample_index != self.next {
            self.pending.clear();
        }
        self.next = first_sample_index + samples.len() as u64;
        let mut rest = samples;
        while !rest.is_empty() {
            if self.pending.is_empty() && rest.len() >= self.size {
                let (whole, _) = rest.split_at(self.size);
                self.transform(Some(whole));
                rest = &rest[self.hop..];
                each(&self.dbfs);
                // What is left may be shorter than a transform: then it waits with the rest of the overlap.
                continue;
            }
            let take = rest.len().min(self.size - self.pending.len());
            self.pending.extend_from_slice(&rest[..take]);
            rest = &rest[take..];
            if self.pending.len() == self.size {
                self.transform(None);
                self.pending.drain(..self.hop);
                each(&self.dbfs);
            }
        }
    }

    /// Lines in dBFS after averaging; -200 before the first transform.
    pub fn dbfs(&self) -> &[f32] {
        &self.dbfs
    }

    /// The highest levels so far, where peak hold is on.
    pub fn hold_dbfs(&self) -> Option<&[f32]> {
        self.hold_dbfs.as_deref()
    }

    /// The `count` highest peaks, the highest first: lines higher than their neighbours within the window's main
    /// lobe and above `floor_dbfs`, their frequency found between lines.
    pub fn peaks(&self, count: usize, floor_dbfs: f32) -> Vec<Peak> {
        find_peaks(&self.dbfs, self.window, count, floor_dbfs)
    }

    /// Samples per transform.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The window.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Transforms so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Transforms `whole`, or else the pending samples.
    fn transform(&mut self, whole: Option<&[i16]>) {
        let samples = whole.unwrap_or(&self.pending);
        for ((input, &sample), weight) in self.input.iter_mut().zip(samples).zip(&self.weights) {
            *input = f32::from(sample) * weight;
        }
        // Lengths are those of the plan, so this cannot fail; if it did, the last spectrum would stay.
        if self.transform.process_with_scratch(&mut self.input, &mut self.lines, &mut self.scratch).is_err() {
            return;
        }
        let share = match self.averaging {
            Averaging::None => 1.0,
            Averaging::All => 1.0 / (self.count + 1) as f32,
            Averaging::Exponential(parts) => 1.0 / (self.count + 1).min(u64::from(parts.max(1))) as f32,
        };
        self.count += 1;
        // The zero line and the one at half the rate have no mirror image: their amplitude is half the doubled one.
        let last = self.lines.len() - 1;
        self.lines[0] *= 0.5f32;
        self.lines[last] *= 0.5f32;
        for ((power, dbfs), line) in self.power.iter_mut().zip(&mut self.dbfs).zip(&self.lines) {
            *power += (line.norm_sqr() - *power) * share;
            *dbfs = decibels(*power);
        }
        if let Some(hold) = &mut self.hold_dbfs {
            for (hold, &dbfs) in hold.iter_mut().zip(&self.dbfs) {
                *hold = hold.max(dbfs);
            }
        }
    }
}

/// The table of peaks.
fn find_peaks(dbfs: &[f32], window: Window, count: usize, floor_dbfs: f32) -> Vec<Peak> {
    let reach = window.half_lobe_lines();
    let mut found: Vec<Peak> = Vec::with_capacity(count + 1);
    // Not the zero line and its lobe: that is the offset.
    for place in reach + 1..dbfs.len().saturating_sub(1) {
        let level = dbfs[place];
        let least = found.last().filter(|_| found.len() == count).map_or(f64::NEG_INFINITY, |p| p.dbfs);
        if level < floor_dbfs || f64::from(level) + LOSS_MAX_DB < least {
            continue;
        }
        let around = &dbfs[place - reach..dbfs.len().min(place + reach + 1)];
        let first_of_highest =
            around[..reach].iter().all(|&l| l < level) && around[reach..].iter().all(|&l| l <= level);
        if !first_of_highest {
            continue;
        }
        let peak = between(dbfs, place, window);
        let at = found.partition_point(|p| p.dbfs >= peak.dbfs);
        found.insert(at, peak);
        found.truncate(count);
    }
    found
}

/// Where a tone must lie for its two highest lines to differ as they do, and its level there: the shape of the
/// window's main lobe is known, so this is exact for a tone alone.
fn between(dbfs: &[f32], place: usize, window: Window) -> Peak {
    let [a, b, c] = [dbfs[place - 1], dbfs[place], dbfs[place + 1]].map(f64::from);
    let difference = a.max(c) - b;
    let (mut near, mut far) = (0.0, 0.5);
    for _ in 0..40 {
        let middle = (near + far) / 2.0;
        if window.lobe_db(1.0 - middle) - window.lobe_db(middle) < difference {
            near = middle
        } else {
            far = middle
        }
    }
    let line = place as f64 + if c >= a { near } else { -near };
    Peak { line, dbfs: b - window.lobe_db(near) }
}

/// `10 log10(power)` to 0.00002 dB, in a form that compilers vectorise (`log10` of the library they do not).
fn decibels(power: f32) -> f32 {
    let power = power.max(POWER_MIN);
    let bits = power.to_bits();
    // power = 2^exponent * mantissa, the mantissa from 0.7 to 1.4 so that its logarithm is a short series.
    let shifted = bits.wrapping_sub(0x3f33_3333);
    let exponent = (shifted as i32) >> 23;
    let mantissa = f32::from_bits(bits.wrapping_sub((exponent << 23) as u32));
    // ln(m) = 2 artanh((m - 1) / (m + 1)).
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let z2 = z * z;
    let ln = 2.0 * z * (1.0 + z2 * (1.0 / 3.0 + z2 * (1.0 / 5.0 + z2 * (1.0 / 7.0))));
    (exponent as f32 * std::f32::consts::LN_2 + ln) * (10.0 / std::f32::consts::LN_10)
}

/// How far a tone may lie above its highest line at most (no window, halfway between two lines).
const LOSS_MAX_DB: f64 = 4.0;
/// The level of a line without power.
const FLOOR_DB: f32 = -200.0;
const POWER_MIN: f32 = 1e-20;

#[cfg(test)]
mod tests;
