//! A band of frequencies cut out of a signal: shifted to 0 Hz, filtered, at the rate that holds it.
//!
//! ```text
//!                            shared by all bands           of each band
//!  samples -> Cutter: blocks -> transform -> its bins -> inverse -> rotate -> Resampler -> made
//!                                            (coarse, at rate / step)         (the filter, any rate)
//! ```
//!
//! The first filter only removes what would fold at its own rate. The second one has the response that a cut is
//! promised to have.

mod cutter;
mod low_pass;
mod oscillator;
mod resampler;

use std::sync::Arc;

use grebe_scope::Engineering;

use crate::error::Error;
use crate::grid::Grid;

pub use self::cutter::Cutter;
pub(crate) use self::low_pass::LowPass;
pub(crate) use self::oscillator::{Oscillator, PIECE};
pub(crate) use self::resampler::{Filter, Resampler};

/// A band to cut out of a signal.
///
/// ```
/// use grebe_process::Band;
///
/// let band = Band { centre_hz: 1.25e6, bandwidth_hz: 200e3, rate_hz: None };
/// assert_eq!(band.of(20e6, true)?.rate_hz(), 250e3);
/// assert!(band.of(1e6, true).unwrap_err().to_string().contains("outside"));
/// # Ok::<(), grebe_process::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    /// Its middle in the signal, which becomes 0 Hz.
    pub centre_hz: f64,
    /// Its width, flat within 0.01 dB.
    pub bandwidth_hz: f64,
    /// Sample rate of the result, at least 1.05 times the bandwidth. By default the lowest whole part of the
    /// input's rate that is at least 1.25 times the bandwidth.
    pub rate_hz: Option<f64>,
}

/// The filter that cuts a band out of signals of one rate.
#[derive(Debug, Clone, PartialEq)]
pub struct BandFilter {
    input_hz: f64,
    is_complex: bool,
    band: Band,
    rate_hz: f64,
    /// Outputs among input samples.
    grid: Grid,
    /// First frequency, from the centre, that is fully attenuated.
    stop_hz: f64,
    /// Length of the transform, and input samples per sample at its rate; 1: without a transform.
    length: usize,
    step: usize,
}

impl Band {
    /// Designs the filter for real or complex samples of this rate.
    ///
    /// # Errors
    /// A band outside the signal, or a rate that does not hold it: the message says what to give.
    pub fn of(self, input_hz: f64, is_complex: bool) -> Result<BandFilter, Error> {
        let Self { centre_hz, bandwidth_hz, rate_hz } = self;
        let wrong = |what: String| Err(Error::Takes { what });
        if !(input_hz > 0.0 && input_hz.is_finite()) {
            return wrong("the sample rate is unknown, and a band needs it: name it".to_owned());
        }
        if !(bandwidth_hz > 0.0 && bandwidth_hz.is_finite() && centre_hz.is_finite()) {
            return wrong(format!(
                "a band of {} around {}: give a bandwidth above 0 Hz",
                hertz(bandwidth_hz),
                hertz(centre_hz)
            ));
        }
        let (low_hz, high_hz) = (if is_complex { -input_hz / 2.0 } else { 0.0 }, input_hz / 2.0);
        let (from_hz, to_hz) = (centre_hz - bandwidth_hz / 2.0, centre_hz + bandwidth_hz / 2.0);
        let slack_hz = input_hz * 1e-9;
        if from_hz < low_hz - slack_hz || to_hz > high_hz + slack_hz {
            let [from, to, low, high] = [from_hz, to_hz, low_hz, high_hz].map(hertz);
            return wrong(format!(
                "the band from {from} to {to} lies outside the signal's, which is from {low} to {high}"
            ));
        }
        if is_complex && bandwidth_hz * NARROWEST > input_hz {
            return wrong(format!(
                "a band of {} is nearly all of {}: give at most {}",
                hertz(bandwidth_hz),
                per_second(input_hz),
                hertz((input_hz / NARROWEST).floor())
            ));
        }
        let factor = (input_hz / (bandwidth_hz * KEPT_INVERSE) * (1.0 + 1e-12)).floor().max(1.0);
        let (rate_hz, grid) = match rate_hz {
            None => (input_hz / factor, Grid::every(factor as u64)),
            Some(rate_hz) if rate_hz < bandwidth_hz * NARROWEST * (1.0 - 1e-12) => {
                return wrong(format!(
                    "a rate of {} holds no band of {}: give at least {}",
                    per_second(rate_hz),
                    hertz(bandwidth_hz),
                    per_second((bandwidth_hz * NARROWEST).ceil())
                ));
            }
            Some(rate_hz) => {
                let grid = Grid::between(input_hz, rate_hz)?;
                (grid.rate_hz(input_hz, rate_hz), grid)
            }
        };
        let room_hz = if is_complex { rate_hz.min(input_hz) } else { rate_hz };
        let edge_hz = (bandwidth_hz * (KEPT_INVERSE - 1.0) / 2.0).min((room_hz - bandwidth_hz) / 2.0);
        let stop_hz = bandwidth_hz / 2.0 + edge_hz;
        let (length, step) = transform(input_hz, stop_hz);
        let filter = BandFilter { input_hz, is_complex, band: self, rate_hz, grid, stop_hz, length, step };
        if filter.low_pass().reach > REACH_MAX {
            return wrong(format!(
                "a band of {} is too narrow for {}: cut a wider one first",
                hertz(bandwidth_hz),
                per_second(input_hz)
            ));
        }
        Ok(filter)
    }
}

pub(crate) fn hertz(hertz: f64) -> Engineering<'static> {
    Engineering::new(hertz, "Hz").digits(12)
}

pub(crate) fn per_second(rate_hz: f64) -> Engineering<'static> {
    Engineering::new(rate_hz, "S/s").digits(12)
}

impl BandFilter {
    /// Sample rate of the result.
    pub fn rate_hz(&self) -> f64 {
        self.rate_hz
    }

    /// Places of the result's samples among those of the signal.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// The band.
    pub fn band(&self) -> Band {
        self.band
    }

    /// The same filter, with the first sample of the result at this index of the signal.
    pub fn starting_at(self, first: i64) -> Self {
        Self { grid: self.grid.starting_at(first), ..self }
    }

    /// Reach of the filter to either side, in samples of the signal.
    pub fn reach(&self) -> u64 {
        let coarse = if self.step > 1 { self.length / 8 } else { 0 };
        (self.low_pass().reach * self.step as f64).ceil() as u64 + coarse as u64
    }

    /// Samples of the result that reach beyond an edge of the signal.
    pub fn edge_samples(&self) -> u64 {
        (self.low_pass().reach * self.step as f64 / self.grid.spacing()).ceil() as u64
    }

    /// Frequency from the centre at which the filter is fully attenuated.
    pub fn stop_hz(&self) -> f64 {
        self.stop_hz
    }

    /// The second filter, at the rate after the first one.
    fn low_pass(&self) -> LowPass {
        let hz = self.input_hz / self.step as f64;
        LowPass::new(self.band.bandwidth_hz / 2.0 / hz, self.stop_hz / hz, ATTENUATION_DB)
    }

    /// Its taps.
    fn filter(&self) -> Arc<Filter> {
        Arc::new(Filter::new(&self.low_pass(), self.grid.in_steps_of(self.step), 2))
    }
}

/// Length of a transform, and step of the samples after it, for a signal up to this frequency on both sides of 0.
fn transform(input_hz: f64, stop_hz: f64) -> (usize, usize) {
    let mut best = (0, 1);
    for length in LENGTHS {
        // Between the band and half of the rate after it lies the flank of the first filter.
        let flank_hz = FLANK_BINS * input_hz / length as f64;
        let step_max = input_hz / (2.0 * (stop_hz + flank_hz));
        let steps = (1..=length / 8).filter(|step| (length / 8).is_multiple_of(*step));
        let step = steps.take_while(|&step| step as f64 <= step_max).last().unwrap_or(1);
        if step > best.1 {
            best = (length, step);
        }
        if input_hz / step as f64 <= CLOSE * 2.0 * stop_hz {
            break;
        }
    }
    best
}

/// Lengths of transforms, of 2, 3 and 5 as factors: an eighth of each has many divisors.
const LENGTHS: [usize; 7] = [720, 1_440, 2_880, 5_760, 11_520, 23_040, 46_080];
/// Flank of a filter of a quarter of the transform's length that is 100 dB down, with a bin to spare.
const FLANK_BINS: f64 = 27.0;
/// The rate after the transform may be as many times what the second filter needs.
const CLOSE: f64 = 1.7;
/// Lowest rate per bandwidth, and the default.
const NARROWEST: f64 = 1.05;
const KEPT_INVERSE: f64 = 1.25;
/// Of the second filter, with some to spare for the first one and for rounding.
const ATTENUATION_DB: f64 = 85.0;
/// Of the second filter, in its samples.
const REACH_MAX: f64 = 2e6;

#[cfg(test)]
mod tests;
