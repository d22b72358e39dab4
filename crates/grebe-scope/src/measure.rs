//! The measurement table of an instrument: levels, times and edges of one channel.
//!
//! Terms and methods follow IEEE Std 181: base and top are the modes of the two halves of the histogram; times are
//! taken where straight lines between samples cross 10, 50 and 90 % between them. Under noise, rise and fall times
//! are those of the mean edge.

mod edges;
mod levels;
mod mean_edge;
mod quantity;
mod shift;

use crate::pyramid::RangeStats;
use crate::value::Value;
use edges::Edges;
use levels::{LevelSet, Levels};
use mean_edge::{MeanEdge, NoisyEdges, TRANSITION};
pub use quantity::{Dimension, Quantity, Running};
pub use shift::{Shift, ShiftMeasurer};

/// From raw counts, or values of a stream of `f32`, to a unit: `value = counts * factor + offset`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Scale {
    /// Units per count.
    pub factor: f64,
    /// Value of count 0.
    pub offset: f64,
}

impl Scale {
    /// Raw counts.
    pub const COUNTS: Scale = Scale { factor: 1.0, offset: 0.0 };

    /// Value of a number of counts.
    pub fn value(&self, counts: f64) -> f64 {
        counts * self.factor + self.offset
    }
}

/// One set of measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(from = "Vec<Option<f64>>", into = "Vec<Option<f64>>")
)]
pub struct Measurements {
    values: [Option<f64>; Quantity::ALL.len()],
}

/// In the order of [`Quantity::ALL`]; missing entries at the end were not measured.
impl From<Vec<Option<f64>>> for Measurements {
    fn from(values: Vec<Option<f64>>) -> Measurements {
        Measurements { values: Quantity::ALL.map(|it| values.get(it as usize).copied().flatten()) }
    }
}

impl From<Measurements> for Vec<Option<f64>> {
    fn from(measurements: Measurements) -> Vec<Option<f64>> {
        measurements.values.to_vec()
    }
}

impl Measurements {
    /// The value in the channel's unit, seconds, hertz or as a ratio; `None` if the signal lacks it.
    pub fn get(&self, quantity: Quantity) -> Option<f64> {
        self.values[quantity as usize]
    }

    /// Sets a value that was measured elsewhere.
    pub fn put(&mut self, quantity: Quantity, value: Option<f64>) {
        self.values[quantity as usize] = value;
    }

    fn put_levels(&mut self, levels: &LevelSet, scale: Scale, has_edges: bool) {
        // A negative factor inverts the signal.
        let is_turned = scale.factor < 0.0;
        let pair = |low, high| if is_turned { (high, low) } else { (low, high) };
        let (low, high) = pair(levels.min, levels.max);
        let (base, top) = pair(levels.base, levels.top);
        let (ac, mean) = (levels.deviation * scale.factor.abs(), scale.value(levels.mean));
        self.put(Quantity::PeakToPeak, Some((levels.max - levels.min) * scale.factor.abs()));
        self.put(Quantity::Min, Some(scale.value(low)));
        self.put(Quantity::Max, Some(scale.value(high)));
        self.put(Quantity::Mean, Some(mean));
        self.put(Quantity::Rms, Some(ac.hypot(mean)));
        self.put(Quantity::AcRms, Some(ac));
        self.put(Quantity::Base, Some(scale.value(base)));
        self.put(Quantity::Top, Some(scale.value(top)));
        let amplitude = levels.top - levels.base;
        if has_edges {
            let beyond = if is_turned { levels.base - levels.min } else { levels.max - levels.top };
            self.put(Quantity::Overshoot, Some(beyond / amplitude));
        }
    }

    fn put_times<V: Value>(
        &mut self,
        edges: &Edges<V>,
        rise: Option<f64>,
        fall: Option<f64>,
        rate_hz: f64,
        scale: Scale,
    ) {
        let pair = |a, b| if scale.factor < 0.0 { (b, a) } else { (a, b) };
        let (positive, negative) = pair(edges.high.mean(), edges.low.mean());
        let (rise, fall) = pair(rise, fall);
        let period = edges.period();
        let seconds = |samples: Option<f64>| samples.map(|samples| samples / rate_hz);
        self.put(Quantity::Period, seconds(period));
        self.put(Quantity::Frequency, period.map(|period| rate_hz / period));
        self.put(Quantity::PositiveWidth, seconds(positive));
        self.put(Quantity::NegativeWidth, seconds(negative));
        self.put(Quantity::Duty, positive.zip(period).map(|(width, period)| (width / period).min(1.0)));
        self.put(Quantity::RiseTime, seconds(rise));
        self.put(Quantity::FallTime, seconds(fall));
    }
}

/// Statistics of every quantity over many sets of measurements.
#[derive(Debug, Clone, Default)]
pub struct MeasurementStatistics {
    running: [Running; Quantity::ALL.len()],
}

impl MeasurementStatistics {
    /// Adds one set; missing quantities do not count.
    pub fn add(&mut self, measurements: &Measurements) {
        for (running, value) in self.running.iter_mut().zip(measurements.values) {
            if let Some(value) = value {
                running.add(value);
            }
        }
    }

    /// Statistics of one quantity.
    pub fn get(&self, quantity: Quantity) -> &Running {
        &self.running[quantity as usize]
    }
}

/// Measures one channel at a time. Keeps its working memory (10 KiB), so that measuring allocates nothing.
///
/// A window is given as its unbroken runs, so that nothing is measured across a gap.
///
/// ```
/// use grebe_scope::{Measurer, Quantity, Scale};
/// // 10 cycles of a square wave, 30 % high, at 1 kS/s.
/// let square: Vec<i16> = (0..1000).map(|i| if i % 100 < 30 { 8192 } else { 0 }).collect();
/// let mut measurer = Measurer::new();
/// let volts = Scale { factor: 1.0 / 8192.0, offset: 0.0 };
/// let m = measurer.measure(&[&square], 1000.0, volts);
/// assert_eq!(m.get(Quantity::PeakToPeak), Some(1.0));
/// assert_eq!(m.get(Quantity::Frequency), Some(10.0));
/// assert!((m.get(Quantity::Duty).unwrap() - 0.3).abs() < 1e-9);
/// ```
#[derive(Debug, Default)]
pub struct Measurer<V: Value = i16> {
    levels: Levels<V>,
    mean_edge: MeanEdge,
}

impl<V: Value> Measurer<V> {
    /// A measurer with its working memory.
    pub fn new() -> Measurer<V> {
        Measurer::default()
    }

    /// Measures one channel over `runs`, each a run of samples without a gap. `rate_hz` must be positive, or
    /// quantities of time are missing. In `f32`, only minimum and maximum include infinite values; NaN never counts.
    pub fn measure(&mut self, runs: &[&[V]], rate_hz: f64, scale: Scale) -> Measurements {
        self.measure_within(&RangeStats::of(runs), runs, rate_hz, scale)
    }

    /// As [`measure`](Measurer::measure), if `runs` are only the newest samples of a longer window: extremes, mean
    /// and RMS are those of `whole`, and the other quantities are measured over `runs`.
    pub fn measure_within(
        &mut self,
        whole: &RangeStats<V>,
        runs: &[&[V]],
        rate_hz: f64,
        scale: Scale,
    ) -> Measurements {
        let mut set = Measurements { values: [None; Quantity::ALL.len()] };
        let Some(levels) = self.levels.find(whole, runs) else { return set };
        let has_edges = V::are_apart(levels.base, levels.top);
        set.put_levels(&levels, scale, has_edges);
        if has_edges && rate_hz > 0.0 && rate_hz.is_finite() {
            let mut edges = Edges::new(&levels);
            runs.iter().for_each(|run| edges.add(run));
            let [rise, fall] = [true, false].map(|rising| self.transition(runs, &levels, &edges, rising));
            set.put_times(&edges, rise, fall, rate_hz, scale);
        }
        set
    }

    /// Mean number of samples from 10 % to 90 % (or back) of the edges in one direction.
    fn transition(
        &mut self,
        runs: &[&[V]],
        levels: &LevelSet,
        edges: &Edges<V>,
        rising: bool,
    ) -> Option<f64> {
        let mean = edges.transition(rising);
        let noise = levels.noise / (levels.top - levels.base);
        if noise <= NOISE_MAX && mean.is_none_or(|mean| noise * mean <= NOISE_STEP_MAX * TRANSITION) {
            return mean;
        }
        let longest = runs.iter().map(|run| run.len()).max().unwrap_or(0) as f64;
        let room = [&edges.high, &edges.low].map(|widths| widths.mean().unwrap_or(longest));
        let (comparator, count) = (edges.comparator(), edges.count(rising));
        let noisy = NoisyEdges { runs, levels, comparator, rising, count };
        self.mean_edge.time(&noisy, room[0].min(room[1]))
    }
}

/// Maximum standard deviation of the noise, as a part of the amplitude, at which a level does not cross 10 %.
const NOISE_MAX: f64 = 0.03;
/// The same as a part of an edge's rise per sample: the edge crosses 10 % and 90 % once.
const NOISE_STEP_MAX: f64 = 0.5;

#[cfg(test)]
mod tests;
