//! The quantities of the table, and their statistics over many measurements.

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
    /// RMS without the mean.
    AcRms,
    /// The level the signal rests at when low.
    Base,
    /// The level the signal rests at when high.
    Top,
    /// Cycles per second.
    Frequency,
    /// Seconds per cycle.
    Period,
    /// Part of a cycle above the middle level, 0 to 1.
    Duty,
    /// Seconds from 10 % to 90 %.
    RiseTime,
    /// Seconds from 90 % to 10 %.
    FallTime,
    /// Height of the largest sample above the top, as a part of top minus base.
    Overshoot,
    /// Seconds from a rising to the next falling edge.
    PositiveWidth,
    /// Seconds from a falling to the next rising edge.
    NegativeWidth,
    /// Seconds by which it is later than the reference channel.
    Delay,
    /// Degrees by which it leads the reference channel, at that channel's fundamental.
    Phase,
}

/// Dimension of a quantity.
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
    /// Degrees.
    Angle,
}

impl Quantity {
    /// All, in the order of a table.
    pub const ALL: [Quantity; 18] = [
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
        Quantity::Delay,
        Quantity::Phase,
    ];

    /// Its name in a table.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].0
    }

    /// Whether it compares two channels.
    pub fn needs_reference(self) -> bool {
        matches!(self, Quantity::Delay | Quantity::Phase)
    }

    /// Its dimension.
    pub fn dimension(self) -> Dimension {
        NAMES[self as usize].1
    }
}

/// By the order of [`Quantity::ALL`].
const NAMES: [(&str, Dimension); Quantity::ALL.len()] = [
    ("Vpp", Dimension::Value),
    ("min", Dimension::Value),
    ("max", Dimension::Value),
    ("mean", Dimension::Value),
    ("RMS", Dimension::Value),
    ("AC RMS", Dimension::Value),
    ("base", Dimension::Value),
    ("top", Dimension::Value),
    ("frequency", Dimension::Frequency),
    ("period", Dimension::Time),
    ("duty", Dimension::Ratio),
    ("rise", Dimension::Time),
    ("fall", Dimension::Time),
    ("overshoot", Dimension::Ratio),
    ("+width", Dimension::Time),
    ("-width", Dimension::Time),
    ("delay", Dimension::Time),
    ("phase", Dimension::Angle),
];

/// Count, smallest, mean, largest and deviation of the values added.
///
/// ```
/// let mut running = grebe_scope::Running::default();
/// for value in [1.0, 2.0, 3.0] {
///     running.add(value);
/// }
/// assert_eq!((running.count(), running.mean(), running.deviation()), (3, Some(2.0), Some(1.0)));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(from = "Counted", into = "Counted")
)]
pub struct Running {
    count: u64,
    min: f64,
    max: f64,
    mean: f64,
    /// Sum of squared distances from the mean (Welford's method: no cancellation).
    squares: f64,
}

impl Running {
    /// Adds a value; ignores NaN.
    pub fn add(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        (self.min, self.max) =
            if self.count == 0 { (value, value) } else { (self.min.min(value), self.max.max(value)) };
        self.count += 1;
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value - self.mean);
    }

    /// Values added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Smallest; `None` without values.
    pub fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min)
    }

    /// Largest; `None` without values.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }

    /// Mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// Standard deviation of a sample (divided by one less than the count); `None` below two values.
    pub fn deviation(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }
}

/// Serialized form of [`Running`].
#[cfg(feature = "serde")]
#[derive(Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
struct Counted {
    count: u64,
    min: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    deviation: Option<f64>,
}

#[cfg(feature = "serde")]
impl From<Running> for Counted {
    fn from(it: Running) -> Counted {
        Counted { count: it.count, min: it.min(), max: it.max(), mean: it.mean(), deviation: it.deviation() }
    }
}

#[cfg(feature = "serde")]
impl From<Counted> for Running {
    fn from(Counted { count, min, max, mean, deviation }: Counted) -> Running {
        let known = min.zip(max).zip(mean);
        known.map_or(Running::default(), |((min, max), mean)| {
            let squares = deviation.unwrap_or(0.0).powi(2) * count.saturating_sub(1) as f64;
            Running { count, min, max, mean, squares }
        })
    }
}
