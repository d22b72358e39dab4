//! What an instrument's measurement table shows: levels, times and edges of one channel, delays between two.
//!
//! Terms and methods follow IEEE Std 181 (base and top are the modes of the two halves of the histogram; times
//! are taken where straight lines between samples cross 10, 50 and 90 % between them).

mod edges;
mod levels;
mod running;

use edges::{Crossings, Edges};
use levels::Levels;
pub use running::Running;

/// From raw counts to a unit: `value = counts * factor + offset`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Units a count.
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

/// A quantity of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quantity {
    /// Largest less smallest sample.
    PeakToPeak,
    /// Smallest sample.
    Min,
    /// Largest sample.
    Max,
    /// Mean of all samples.
    Mean,
    /// Root of the mean square.
    Rms,
    /// RMS of what is left without the mean.
    AcRms,
    /// The level the signal rests at when low.
    Base,
    /// The level the signal rests at when high.
    Top,
    /// Cycles a second.
    Frequency,
    /// Seconds a cycle.
    Period,
    /// Part of a cycle above the middle, 0 to 1.
    Duty,
    /// Seconds from 10 % to 90 %.
    RiseTime,
    /// Seconds from 90 % to 10 %.
    FallTime,
    /// How far the largest sample lies above the top, as a part of top less base.
    Overshoot,
    /// Seconds from a rising to the next falling edge.
    PositiveWidth,
    /// Seconds from a falling to the next rising edge.
    NegativeWidth,
}

/// Which unit a quantity has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// The channel's own unit.
    Value,
    /// Seconds.
    Time,
    /// Hertz.
    Frequency,
    /// A part of one.
    Ratio,
}

impl Quantity {
    /// All, in the order of a table.
    pub const ALL: [Quantity; 16] = [
        Quantity::PeakToPeak,
        Quantity::Min,
        Quantity::Max,
        Quantity::Mean,
        Quantity::Rms,
        Quantity::AcRms,
        Quantity::Base,
        Quantity::Top,
        Quantity::Frequency,
        Quantity::Period,
        Quantity::Duty,
        Quantity::RiseTime,
        Quantity::FallTime,
        Quantity::Overshoot,
        Quantity::PositiveWidth,
        Quantity::NegativeWidth,
    ];

    /// Its name in a table.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::PeakToPeak => "Vpp",
            Quantity::Min => "min",
            Quantity::Max => "max",
            Quantity::Mean => "mean",
            Quantity::Rms => "RMS",
            Quantity::AcRms => "AC RMS",
            Quantity::Base => "base",
            Quantity::Top => "top",
            Quantity::Frequency => "frequency",
            Quantity::Period => "period",
            Quantity::Duty => "duty",
            Quantity::RiseTime => "rise",
            Quantity::FallTime => "fall",
            Quantity::Overshoot => "overshoot",
            Quantity::PositiveWidth => "+width",
            Quantity::NegativeWidth => "-width",
        }
    }

    /// Which unit it has.
    pub fn dimension(self) -> Dimension {
        match self {
            Quantity::Frequency => Dimension::Frequency,
            Quantity::Duty | Quantity::Overshoot => Dimension::Ratio,
            Quantity::Period
            | Quantity::RiseTime
            | Quantity::FallTime
            | Quantity::PositiveWidth
            | Quantity::NegativeWidth => Dimension::Time,
            _ => Dimension::Value,
        }
    }
}

/// One set of measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurements {
    values: [Option<f64>; Quantity::ALL.len()],
}

impl Measurements {
    /// The value in the channel's unit, seconds, hertz or as a ratio; `None` where the signal does not have it.
    pub fn get(&self, quantity: Quantity) -> Option<f64> {
        self.values[quantity as usize]
    }
}

/// Statistics of every quantity over many sets of measurements.
#[derive(Debug, Clone, Default)]
pub struct MeasurementStatistics {
    running: [Running; Quantity::ALL.len()],
}

impl MeasurementStatistics {
    /// Adds one set; what it does not have changes nothing.
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

/// Time from an edge of one channel to the same edge of another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delay {
    /// Mean delay; positive where the second channel comes later.
    pub seconds: f64,
    /// The same as a part of the first channel's period, -180 to 180 degrees; `None` without a period.
    pub phase_degrees: Option<f64>,
}

/// Measures; keeps its working memory (a fixed 200 KiB), so that measuring allocates nothing.
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
#[derive(Debug)]
pub struct Measurer {
    levels: Levels,
    first: Crossings,
    second: Crossings,
}

impl Default for Measurer {
    fn default() -> Self {
        Measurer::new()
    }
}

impl Measurer {
    /// A measurer with its working memory.
    pub fn new() -> Measurer {
        Measurer { levels: Levels::new(), first: Crossings::new(), second: Crossings::new() }
    }

    /// Measures one channel over `runs`, each an unbroken run of samples. `rate_hz` must be positive; where it is
    /// not, quantities of time are left out.
    pub fn measure(&mut self, runs: &[&[i16]], rate_hz: f64, scale: Scale) -> Measurements {
        let mut set = Measurements { values: [None; Quantity::ALL.len()] };
        let Some(levels) = self.levels.find(runs) else { return set };
        let mut put = |quantity: Quantity, value: Option<f64>| set.values[quantity as usize] = value;
        let value = |counts: f64| Some(scale.value(counts));
        // A negative factor turns the signal over.
        let (low, high) =
            if scale.factor < 0.0 { (levels.max, levels.min) } else { (levels.min, levels.max) };
        put(Quantity::PeakToPeak, Some((levels.max - levels.min) * scale.factor.abs()));
        put(Quantity::Min, value(low));
        put(Quantity::Max, value(high));
        put(Quantity::Mean, value(levels.mean));
        let (ac, mean) = (levels.deviation * scale.factor.abs(), scale.value(levels.mean));
        put(Quantity::Rms, Some(ac.hypot(mean)));
        put(Quantity::AcRms, Some(ac));
        let (base, top) =
            if scale.factor < 0.0 { (levels.top, levels.base) } else { (levels.base, levels.top) };
        put(Quantity::Base, value(base));
        put(Quantity::Top, value(top));
        let amplitude = levels.top - levels.base;
        if amplitude < 1.0 {
            return set;
        }
        let beyond = if scale.factor < 0.0 { levels.base - levels.min } else { levels.max - levels.top };
        put(Quantity::Overshoot, Some(beyond / amplitude));

        let mut edges = Edges::new(&levels);
        for run in runs {
            edges.add(run, None);
        }
        if !(rate_hz > 0.0 && rate_hz.is_finite()) {
            return set;
        }
        let time = |samples: Option<f64>| samples.map(|samples| samples / rate_hz);
        let period = edges.period();
        let (positive, negative) = (edges.high.mean(), edges.low.mean());
        let upright = scale.factor >= 0.0;
        let pair = |a, b| if upright { (a, b) } else { (b, a) };
        let (positive, negative) = pair(positive, negative);
        let (rise, fall) = pair(edges.rise.mean(), edges.fall.mean());
        put(Quantity::Period, time(period));
        put(Quantity::Frequency, period.map(|period| rate_hz / period));
        put(Quantity::PositiveWidth, time(positive));
        put(Quantity::NegativeWidth, time(negative));
        put(Quantity::Duty, positive.zip(period).map(|(width, period)| (width / period).min(1.0)));
        put(Quantity::RiseTime, time(rise));
        put(Quantity::FallTime, time(fall));
        set
    }

    /// Mean delay of the rising edges of `second` after those of `first`, each edge paired with the nearest one.
    /// Both begin at the same sample. The first 8192 edges of each are used. `None` where one has none.
    pub fn delay(&mut self, first: &[i16], second: &[i16], rate_hz: f64) -> Option<Delay> {
        if !(rate_hz > 0.0 && rate_hz.is_finite()) {
            return None;
        }
        let levels = self.levels.find(&[first])?;
        self.first.clear();
        let mut edges = Edges::new(&levels);
        edges.add(first, Some(&mut self.first));
        let period = edges.period();
        let levels = self.levels.find(&[second])?;
        self.second.clear();
        Edges::new(&levels).add(second, Some(&mut self.second));

        let samples = self.first.mean_delay_to(&self.second, period)?;
        let phase_degrees = period.map(|period| (samples / period * 360.0 + 180.0).rem_euclid(360.0) - 180.0);
        Some(Delay { seconds: samples / rate_hz, phase_degrees })
    }

    /// Bytes reserved.
    pub fn memory_bytes(&self) -> usize {
        self.levels.memory_bytes() + self.first.memory_bytes() + self.second.memory_bytes()
    }
}

#[cfg(test)]
mod tests;
