//! Filters of symmetric taps: every frequency is late by the same half length, which the index makes good.

use crate::ScopeError;

/// A low-, high- or band-pass of the windowed-sinc kind (Blackman window: 74 dB down in the stop band, the
/// transition 5.5 rates over the number of taps wide).
#[derive(Debug, Clone, PartialEq)]
pub struct Fir {
    taps: Vec<f32>,
    /// The newest samples, up to one less than the taps, and room for a piece of a block.
    window: Vec<f32>,
    held: usize,
}

impl Fir {
    /// Lets pass what is below `cutoff`, as a part of the sample rate (between 0 and 0.5), with an odd number of
    /// `taps` from 3 to 4095.
    ///
    /// # Errors
    /// [`ScopeError::Setting`] for numbers out of range.
    pub fn low_pass(cutoff: f64, taps: usize) -> Result<Fir, ScopeError> {
        Ok(Fir::of(sinc(cutoff, taps)?))
    }

    /// Lets pass what is above `cutoff`; see [`low_pass`](Fir::low_pass).
    ///
    /// # Errors
    /// [`ScopeError::Setting`] for numbers out of range.
    pub fn high_pass(cutoff: f64, taps: usize) -> Result<Fir, ScopeError> {
        let mut all = sinc(cutoff, taps)?;
        all.iter_mut().for_each(|tap| *tap = -*tap);
        all[taps / 2] += 1.0;
        Ok(Fir::of(all))
    }

    /// Lets pass what is from `low` to `high`; see [`low_pass`](Fir::low_pass).
    ///
    /// # Errors
    /// [`ScopeError::Setting`] for numbers out of range, or `low` not below `high`.
    pub fn band_pass(low: f64, high: f64, taps: usize) -> Result<Fir, ScopeError> {
        if low >= high {
            let got = format!("{low} to {high}");
            return Err(ScopeError::Setting {
                what: "pass band",
                got,
                must: "the lower edge below the upper one",
            });
        }
        let mut all = sinc(high, taps)?;
        for (tap, low) in all.iter_mut().zip(sinc(low, taps)?) {
            *tap -= low;
        }
        Ok(Fir::of(all))
    }

    /// The taps.
    pub fn taps(&self) -> &[f32] {
        &self.taps
    }

    /// Samples on each side of the middle tap.
    pub fn half(&self) -> usize {
        self.taps.len() / 2
    }

    pub(super) fn begin(&mut self) {
        self.held = 0;
    }

    /// Filters a block and hands out the results in pieces; returns which sample of the block (or after it) is the
    /// newest that the first result needs.
    pub(super) fn process(&mut self, samples: &[i16], mut each: impl FnMut(&[f32])) -> u64 {
        let keep = self.taps.len() - 1;
        let newest = (keep - self.held) as u64;
        for piece in samples.chunks(PIECE) {
            let filled = self.held + piece.len();
            for (value, &sample) in self.window[self.held..filled].iter_mut().zip(piece) {
                *value = f32::from(sample);
            }
            let mut results = [0f32; PIECE];
            let count = filled.saturating_sub(keep);
            for (tap, from) in self.taps.iter().zip(0..) {
                for (result, value) in results[..count].iter_mut().zip(&self.window[from..]) {
                    *result += tap * value;
                }
            }
            each(&results[..count]);
            self.held = filled.min(keep);
            self.window.copy_within(filled - self.held..filled, 0);
        }
        newest
    }

    fn of(taps: Vec<f64>) -> Fir {
        let window = vec![0.0; taps.len() - 1 + PIECE];
        Fir { taps: taps.into_iter().map(|tap| tap as f32).collect(), window, held: 0 }
    }
}

/// A low-pass of unit gain at frequency zero.
fn sinc(cutoff: f64, taps: usize) -> Result<Vec<f64>, ScopeError> {
    if !(cutoff > 0.0 && cutoff < 0.5) {
        let must = "a part of the sample rate between 0 and 0.5";
        return Err(ScopeError::Setting { what: "cutoff", got: cutoff.to_string(), must });
    }
    if taps.is_multiple_of(2) || !(3..=4095).contains(&taps) {
        return Err(ScopeError::Setting {
            what: "taps",
            got: taps.to_string(),
            must: "an odd number from 3 to 4095",
        });
    }
    let middle = (taps / 2) as f64;
    let tap = |n: usize| {
        let x = n as f64 - middle;
        let ideal = if x == 0.0 {
            2.0 * cutoff
        } else {
            (std::f64::consts::TAU * cutoff * x).sin() / (std::f64::consts::PI * x)
        };
        let turn = std::f64::consts::TAU * (n + 1) as f64 / (taps + 1) as f64;
        ideal * (0.42 - 0.5 * turn.cos() + 0.08 * (2.0 * turn).cos())
    };
    let all: Vec<f64> = (0..taps).map(tap).collect();
    let sum: f64 = all.iter().sum();
    Ok(all.into_iter().map(|tap| tap / sum).collect())
}

/// Samples a piece: results and window stay in the first-level cache.
const PIECE: usize = 1024;
