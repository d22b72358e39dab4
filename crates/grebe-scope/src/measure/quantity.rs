//! The quantities of the table, and their statistics over many measurements.

/// Makes [`Quantity`] of one row per quantity: its meaning, its name in a table and its dimension.
macro_rules! quantities {
    ($($(#[$meaning:meta])* $quantity:ident: $name:literal, $dimension:ident;)*) => {
        /// A quantity of the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Quantity {
            $($(#[$meaning])* $quantity,)*
        }

        impl Quantity {
            /// All, in the order of a table.
            pub const ALL: [Quantity; [$($name),*].len()] = [$(Quantity::$quantity),*];

            /// Its name in a table.
            pub fn name(self) -> &'static str {
                match self {
                    $(Quantity::$quantity => $name,)*
                }
            }

            /// Its dimension.
            pub fn dimension(self) -> Dimension {
                match self {
                    $(Quantity::$quantity => Dimension::$dimension,)*
                }
            }
        }
    };
}

quantities! {
    /// Largest less smallest sample.
    PeakToPeak: "Vpp", Value;
    /// Smallest sample.
    Min: "min", Value;
    /// Largest sample.
    Max: "max", Value;
    /// Mean of all samples.
    Mean: "mean", Value;
    /// Root of the mean square.
    Rms: "RMS", Value;
    /// RMS without the mean.
    AcRms: "AC RMS", Value;
    /// The level the signal rests at when low.
    Base: "base", Value;
    /// The level the signal rests at when high.
    Top: "top", Value;
    /// Cycles per second.
    Frequency: "frequency", Frequency;
    /// Seconds per cycle.
    Period: "period", Time;
    /// Part of a cycle above the middle level, 0 to 1.
    Duty: "duty", Ratio;
    /// Seconds from 10 % to 90 %.
    RiseTime: "rise", Time;
    /// Seconds from 90 % to 10 %.
    FallTime: "fall", Time;
    /// Height of the largest sample above the top, as a part of top minus base.
    Overshoot: "overshoot", Ratio;
    /// Seconds from a rising to the next falling edge.
    PositiveWidth: "+width", Time;
    /// Seconds from a falling to the next rising edge.
    NegativeWidth: "-width", Time;
    /// Seconds by which it is later than the reference channel.
    Delay: "delay", Time;
    /// Degrees by which it leads the reference channel, at that channel's fundamental.
    Phase: "phase", Angle;
}

impl Quantity {
    /// Whether it compares two channels.
    pub fn needs_reference(self) -> bool {
        matches!(self, Quantity::Delay | Quantity::Phase)
    }
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
