//! Low-pass filters: a sinc in a Kaiser window.

use std::f64::consts::PI;

/// Impulse response of a low-pass filter, at any time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LowPass {
    /// In cycles per sample.
    pub(crate) cutoff: f64,
    /// Reach to either side, in samples.
    pub(crate) reach: f64,
    beta: f64,
}

impl LowPass {
    /// Flat up to `pass`, and `attenuation_db` down from `stop` on, both in cycles per sample.
    pub(crate) fn new(pass: f64, stop: f64, attenuation_db: f64) -> Self {
        // Kaiser's formula for the number of taps, half of them to either side.
        let reach = (attenuation_db - 7.95) / (2.285 * 2.0 * PI * (stop - pass)) / 2.0;
        Self::reaching((pass + stop) / 2.0, reach, attenuation_db)
    }

    /// The same with a given reach.
    pub(crate) fn reaching(cutoff: f64, reach: f64, attenuation_db: f64) -> Self {
        Self { cutoff, reach, beta: 0.1102 * (attenuation_db - 8.7) }
    }

    /// The response `time` samples after its middle, but for a factor.
    pub(crate) fn at(&self, time: f64) -> f64 {
        let place = time / self.reach;
        if place.abs() > 1.0 {
            return 0.0;
        }
        let x = 2.0 * PI * self.cutoff * time;
        let sinc = if x == 0.0 { 1.0 } else { x.sin() / x };
        sinc * bessel_i0(self.beta * (1.0 - place * place).max(0.0).sqrt())
    }

    /// Taps from `-reach` on, at whole samples shifted by `rest`, with unit gain.
    pub(crate) fn taps(&self, rest: f64, count: usize, out: &mut Vec<f64>) {
        let first = -self.reach.floor();
        out.clear();
        out.extend((0..count).map(|tap| self.at(first + tap as f64 - rest)));
        let sum: f64 = out.iter().sum();
        out.iter_mut().for_each(|tap| *tap /= sum);
    }
}

/// Modified Bessel function of the first kind and order 0, by its series.
fn bessel_i0(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut sum, mut term, mut k) = (1.0, 1.0, 1.0);
    while term > sum * 1e-17 {
        term *= quarter / (k * k);
        sum += term;
        k += 1.0;
    }
    sum
}
