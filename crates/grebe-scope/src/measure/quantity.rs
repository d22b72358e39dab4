//! The quantities of the table.

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
