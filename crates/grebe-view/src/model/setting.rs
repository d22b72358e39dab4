//! Settings with a list of values.

use serde::{Deserialize, Serialize};

/// A setting with more than two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Setting {
    /// The list of the settings themselves.
    All,
    TriggerMode,
    TriggerKind,
    TriggerLane,
    /// The trigger's place on the screen: a tenth, the middle, nine tenths.
    TriggerPlace,
    Quantities,
    /// The reference lane for delay and phase.
    Against,
    /// The parts of complex channels with lanes.
    Parts,
    TransformSize,
    Weighting,
    Averages,
    /// Targets of a marker.
    Marker,
    Math,
    /// The lane on the horizontal (0) or the vertical (1) axis of the X-Y plot.
    XyInput(usize),
    /// The channel of the first (0) or the second (1) input of the math channel.
    MathInput(usize),
    /// Type of event and lane of the search form.
    FindKind,
    FindLane,
    Wave,
    /// The visible source of those that are served.
    Source,
    /// Commands for annotations, and the annotations themselves.
    Annotations,
    /// Commands for the box on the waterfall.
    Box,
    /// Modulation of its sound.
    Modulation,
}

impl Setting {
    /// Whether several lines can be on at once.
    pub(crate) fn is_many(self) -> bool {
        matches!(self, Setting::Quantities | Setting::Parts)
    }

    /// Whether its lines are commands, which can repeat.
    pub(crate) fn is_deed(self) -> bool {
        matches!(self, Setting::Marker | Setting::Annotations | Setting::Box)
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Setting::All => "settings",
            Setting::TriggerMode => "trigger mode",
            Setting::TriggerKind => "trigger kind",
            Setting::TriggerLane => "trigger channel",
            Setting::TriggerPlace => "trigger place",
            Setting::Quantities => "measurements",
            Setting::Against => "delay, phase to",
            Setting::Parts => "parts of I and Q",
            Setting::TransformSize => "transform",
            Setting::Weighting => "weighting",
            Setting::Averages => "averages",
            Setting::Marker => "spectrum markers",
            Setting::Math => "math channel",
            Setting::XyInput(0) => "XY, across",
            Setting::XyInput(_) => "XY, upwards",
            Setting::MathInput(0) => "math input A",
            Setting::MathInput(_) => "math input B",
            Setting::FindKind => "kind of event",
            Setting::FindLane => "search in",
            Setting::Wave => "waveform",
            Setting::Source => "source",
            Setting::Annotations => "annotations",
            Setting::Box => "box on the waterfall",
            Setting::Modulation => "modulation",
        }
    }

    pub(super) const EACH: [Setting; 21] = [
        Setting::Source,
        Setting::TriggerMode,
        Setting::TriggerKind,
        Setting::TriggerLane,
        Setting::Parts,
        Setting::TriggerPlace,
        Setting::Quantities,
        Setting::Against,
        Setting::TransformSize,
        Setting::Weighting,
        Setting::Averages,
        Setting::Marker,
        Setting::Math,
        Setting::XyInput(0),
        Setting::XyInput(1),
        Setting::MathInput(0),
        Setting::MathInput(1),
        Setting::Wave,
        Setting::Annotations,
        Setting::Box,
        Setting::Modulation,
    ];
}
