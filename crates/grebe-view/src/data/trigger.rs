//! The trigger, which makes a picture stand still: a trigger is shown as soon as the window after it is filled.

mod levels;
mod search;

use grebe_scope::{Running, Slope};
use serde::{Deserialize, Serialize};

use crate::data::lane::LaneId;
pub(crate) use search::TriggerSearch;

/// What triggers, and where the trigger stands on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TriggerSettings {
    /// When pictures are taken.
    pub mode: TriggerMode,
    /// What kind of event triggers.
    pub kind: TriggerKind,
    /// The lane that triggers. Where the stream has none such, the samples of that channel, or I; of a channel that it has not, the
    /// last.
    pub lane: LaneId,
    /// Direction of the crossing; `Rising` also means pulses above the level, and leaving a window.
    pub slope: Slope,
    /// The level to cross, in raw counts; `None` follows the middle of the signal. Where there are two levels, the middle
    /// between them: they lie a quarter of the signal's height above and below.
    pub level: Option<f64>,
    /// How far the signal must go back beyond the level before it triggers again, in raw counts; `None`: 0.3 of an eighth of the signal's
    /// height, and ten deviations of its noise where that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hysteresis: Option<f64>,
    /// Whether the hysteresis is at least an eighth of the signal's height, which is a division; at most three quarters of what lies
    /// beyond the level.
    #[serde(skip_serializing_if = "is_off")]
    pub is_noise_reject: bool,
    /// Where the trigger stands on the screen: 0.0 left edge, 1.0 right edge.
    pub position: f64,
    /// What of the signal the trigger sees.
    #[serde(flatten)]
    pub coupling: TriggerCoupling,
    /// Seconds without another trigger after each (samples where the rate is unknown); 0 for none.
    pub holdoff_s: f64,
    /// Seconds (samples where the rate is unknown): pulses that are not shorter trigger; `None`: from one sample.
    pub pulse_min_s: Option<f64>,
    /// The same for pulses that are not longer; `None`: a division of the screen, or without end where there is a least width.
    pub pulse_max_s: Option<f64>,
    /// Without a crossing for so long; `None`: a division of the screen.
    pub dropout_s: Option<f64>,
    /// A new number arms the trigger for the next single shot.
    pub shot: u32,
}

/// What of the signal a trigger sees.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "CouplingWords", into = "CouplingWords")]
pub enum TriggerCoupling {
    /// All of it.
    #[default]
    Dc,
    /// Without its slow part: a high-pass filter of first order stands before the trigger. The level then counts from the
    /// wandering baseline.
    LfReject {
        /// The corner (-3 dB) in hertz (cycles per sample where the rate is unknown); `None`: two cycles per screen.
        corner_hz: Option<f64>,
    },
    /// Without its fast part: a low-pass filter of first order stands before the trigger.
    HfReject {
        /// The corner (-3 dB) in hertz (cycles per sample where the rate is unknown); `None`: a hundred cycles per screen.
        corner_hz: Option<f64>,
    },
}

/// A [`TriggerCoupling`], in words.
#[derive(Serialize, Deserialize)]
struct CouplingWords {
    #[serde(default)]
    is_lf_reject: bool,
    #[serde(default, skip_serializing_if = "is_off")]
    is_hf_reject: bool,
    #[serde(default)]
    corner_hz: Option<f64>,
}

/// What is off is not sent: peers that do not know it understand the rest.
fn is_off(is_on: &bool) -> bool {
    !is_on
}

impl From<TriggerCoupling> for CouplingWords {
    fn from(coupling: TriggerCoupling) -> CouplingWords {
        CouplingWords {
            is_lf_reject: coupling.is_lf_reject(),
            is_hf_reject: matches!(coupling, TriggerCoupling::HfReject { .. }),
            corner_hz: coupling.set_corner_hz(),
        }
    }
}

impl From<CouplingWords> for TriggerCoupling {
    fn from(words: CouplingWords) -> TriggerCoupling {
        match (words.is_lf_reject, words.is_hf_reject) {
            (true, _) => TriggerCoupling::LfReject { corner_hz: words.corner_hz },
            (false, true) => TriggerCoupling::HfReject { corner_hz: words.corner_hz },
            (false, false) => TriggerCoupling::Dc,
        }
    }
}

impl TriggerCoupling {
    /// The corner for a screen of `span` seconds; `None` for DC.
    pub(crate) fn corner_hz(self, span: f64) -> Option<f64> {
        let cycles = match self {
            TriggerCoupling::Dc => return None,
            TriggerCoupling::LfReject { .. } => CYCLES_PER_SCREEN,
            TriggerCoupling::HfReject { .. } => FAST_CYCLES_PER_SCREEN,
        };
        Some(self.set_corner_hz().unwrap_or(cycles / span))
    }

    /// The corner that is set.
    pub(crate) fn set_corner_hz(self) -> Option<f64> {
        match self {
            TriggerCoupling::Dc => None,
            TriggerCoupling::LfReject { corner_hz } | TriggerCoupling::HfReject { corner_hz } => corner_hz,
        }
    }

    /// The same with another corner; LF reject in place of DC.
    pub(crate) fn with_corner_hz(self, corner_hz: Option<f64>) -> TriggerCoupling {
        match self {
            TriggerCoupling::HfReject { .. } => TriggerCoupling::HfReject { corner_hz },
            _ => TriggerCoupling::LfReject { corner_hz },
        }
    }

    /// The next one of the three.
    pub(crate) fn next(self) -> TriggerCoupling {
        match self {
            TriggerCoupling::Dc => TriggerCoupling::LfReject { corner_hz: None },
            TriggerCoupling::LfReject { .. } => TriggerCoupling::HfReject { corner_hz: None },
            TriggerCoupling::HfReject { .. } => TriggerCoupling::Dc,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            TriggerCoupling::Dc => "DC",
            TriggerCoupling::LfReject { .. } => "LF reject",
            TriggerCoupling::HfReject { .. } => "HF reject",
        }
    }

    /// Whether the level counts from the wandering baseline.
    pub(crate) fn is_lf_reject(self) -> bool {
        matches!(self, TriggerCoupling::LfReject { .. })
    }
}

/// What kind of event triggers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TriggerKind {
    /// The level is crossed.
    #[default]
    Edge,
    /// A pulse of a width between two limits.
    Pulse,
    /// A pulse that passes one of two levels and not the other.
    Runt,
    /// The range between two levels is left or entered.
    Window,
    /// The level is not crossed for a time.
    Dropout,
}

impl TriggerKind {
    pub(crate) const ALL: [TriggerKind; 5] =
        [TriggerKind::Edge, TriggerKind::Pulse, TriggerKind::Runt, TriggerKind::Window, TriggerKind::Dropout];

    pub(crate) fn name(self) -> &'static str {
        match self {
            TriggerKind::Edge => "edge",
            TriggerKind::Pulse => "pulse",
            TriggerKind::Runt => "runt",
            TriggerKind::Window => "window",
            TriggerKind::Dropout => "dropout",
        }
    }

    pub(crate) fn has_two_levels(self) -> bool {
        matches!(self, TriggerKind::Runt | TriggerKind::Window)
    }

    pub(crate) fn is_timed(self) -> bool {
        matches!(self, TriggerKind::Pulse | TriggerKind::Dropout)
    }
}

/// When triggered pictures are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TriggerMode {
    /// No trigger: the newest samples at the right edge.
    Roll,
    /// At each trigger; the newest samples where none comes for a while.
    Auto,
    /// At each trigger, and only then.
    Normal,
    /// At one trigger, whose picture stays.
    Single,
}

/// The trigger's state, to be shown: a scope that stands still must say why.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TriggerView {
    /// The settings, with the level that is used.
    #[serde(flatten)]
    pub settings: TriggerSettings,
    /// The level in raw counts, the lower one of two; with LF reject, from the mean of what is visible.
    #[serde(skip)]
    pub level: f64,
    /// The upper one of two levels, else the same.
    #[serde(skip)]
    pub upper: f64,
    /// How far the signal goes back before it triggers again, in raw counts.
    #[serde(rename = "hysteresis_used", default)]
    pub hysteresis: f64,
    /// Whether a picture is being taken.
    #[serde(skip)]
    pub state: TriggerState,
    /// Absolute sample index of the trigger that is shown.
    #[serde(skip)]
    pub at: Option<f64>,
    /// Triggers since the settings changed, shown or not, without those that were held off.
    pub found: u64,
    /// Samples that were searched for them.
    pub searched_samples: u64,
    /// How often they come.
    pub rate: TriggerRate,
}

/// Whether a triggered picture is being taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TriggerState {
    /// No trigger yet.
    #[default]
    Ready,
    /// The picture shows a trigger; the scope waits for the next.
    Triggered,
    /// None came for a while: the picture runs free.
    Free,
    /// The single shot was taken.
    Stopped,
}

impl Default for TriggerSettings {
    fn default() -> TriggerSettings {
        TriggerSettings::new(TriggerMode::Auto)
    }
}

impl TriggerSettings {
    /// A rising edge of the first lane through the middle of the signal, in the middle of the screen.
    pub fn new(mode: TriggerMode) -> TriggerSettings {
        TriggerSettings {
            mode,
            kind: TriggerKind::Edge,
            lane: LaneId::real(0),
            slope: Slope::Rising,
            level: None,
            hysteresis: None,
            is_noise_reject: false,
            position: 0.5,
            coupling: TriggerCoupling::Dc,
            holdoff_s: 0.0,
            pulse_min_s: None,
            pulse_max_s: None,
            dropout_s: None,
            shot: 0,
        }
    }

    /// Whether `other` looks for the same: where the trigger stands on the screen does not matter.
    fn is_same_trigger(&self, other: &TriggerSettings) -> bool {
        TriggerSettings { position: other.position, ..*self } == *other
    }
}

/// The corner of LF reject where none is set: what is slower than half a screen counts as the wandering baseline.
const CYCLES_PER_SCREEN: f64 = 2.0;
/// The corner of HF reject where none is set. Its delay of `1 / (2 pi corner)` is then a 628th of the screen.
const FAST_CYCLES_PER_SCREEN: f64 = 100.0;

/// Intervals between the last triggers: at most 64, as far as the history holds them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TriggerRate {
    /// From each trigger to the next, in seconds (samples where the rate is unknown). Intervals across missing samples are
    /// left out: more triggers may lie in them.
    #[serde(flatten)]
    pub intervals: Running,
    /// Intervals left out because of missing samples.
    pub gaps: u64,
}

impl TriggerRate {
    /// Triggers per second (per sample where the rate is unknown); `None` below two triggers.
    pub fn rate_hz(&self) -> Option<f64> {
        self.intervals.mean().filter(|mean| *mean > 0.0).map(|mean| 1.0 / mean)
    }

    /// Triggers per minute; `None` above 10 Hz, where nobody counts so.
    pub fn per_minute(&self) -> Option<f64> {
        self.rate_hz().filter(|rate| *rate < SLOW_HZ).map(|rate| 60.0 * rate)
    }

    /// From triggers, oldest first, at `rate` samples per second.
    fn of(found: impl Iterator<Item = Found>, rate: f64) -> TriggerRate {
        let mut counted = TriggerRate::default();
        let mut before: Option<f64> = None;
        for found in found {
            match before {
                Some(_) if found.is_behind_gap => counted.gaps += 1,
                Some(before) => counted.intervals.add((found.at - before) / rate),
                None => {}
            }
            before = Some(found.at);
        }
        counted
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Found {
    at: f64,
    /// Whether samples are missing between it and the one before.
    is_behind_gap: bool,
}

const SLOW_HZ: f64 = 10.0;

#[cfg(test)]
mod tests;
