//! What can be chosen from a list.

use serde::{Deserialize, Serialize};

/// A setting that can be more than two things.
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
    /// The lane that delay and phase count from.
    Against,
    /// Which parts of complex channels have lanes.
    Parts,
    TransformSize,
    Weighting,
    Averages,
    /// Where a marker of the spectrum goes.
    Marker,
    Math,
    /// What is drawn to the right (0) and upwards (1), one over the other.
    XyInput(usize),
    /// The channel of the first (0) or the second (1) input of the math channel.
    MathInput(usize),
    /// What is searched, and where.
    FindKind,
    FindLane,
    Wave,
    /// Which of the sources that are served is shown.
    Source,
    /// What to do with annotations, and each of them to go to.
    Annotations,
}

impl Setting {
    /// Whether several lines can be set at once.
    pub(crate) fn is_many(self) -> bool {
        matches!(self, Setting::Quantities | Setting::Parts)
    }

    /// Whether its lines do something, as often as they are chosen.
    pub(crate) fn is_deed(self) -> bool {
        matches!(self, Setting::Marker | Setting::Annotations)
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Setting::All => "settings",
            Setting::TriggerMode => "trigger mode",
            Setting::TriggerKind => "what triggers",
            Setting::TriggerLane => "trigger channel",
            Setting::TriggerPlace => "trigger stands",
            Setting::Quantities => "measurements",
            Setting::Against => "delay, phase to",
            Setting::Parts => "parts of I and Q",
            Setting::TransformSize => "transform",
            Setting::Weighting => "weighting",
            Setting::Averages => "averages",
            Setting::Marker => "spectrum markers",
            Setting::Math => "math channel",
            Setting::XyInput(0) => "to the right",
            Setting::XyInput(_) => "upwards",
            Setting::MathInput(0) => "math input A",
            Setting::MathInput(_) => "math input B",
            Setting::FindKind => "what is searched",
            Setting::FindLane => "search in",
            Setting::Wave => "waveform",
            Setting::Source => "source",
            Setting::Annotations => "annotations",
        }
    }

    pub(super) const EACH: [Setting; 19] = [
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
    ];
}
