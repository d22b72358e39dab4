//! The trigger, which aligns pictures. A trigger is shown as soon as its window is filled.

mod levels;
mod search;

use grebe_scope::{Running, Slope};
use serde::{Deserialize, Serialize};

use crate::data::lane::LaneId;
pub(crate) use search::TriggerSearch;

/// Settings of the trigger, with its place on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TriggerSettings {
    /// When pictures are taken.
    pub mode: TriggerMode,
    /// Type of event.
    pub kind: TriggerKind,
    /// The lane that triggers. If the stream lacks it: the samples of that channel, or I; for a missing channel, the
    /// last one.
    pub lane: LaneId,
    /// Direction of the crossing; `Rising` also selects pulses above the level, and leaving a window.
    pub slope: Slope,
    /// The level in raw counts; `None` follows the middle of the signal. With two levels, this is the middle between them:
    /// they are a quarter of the signal's height above and below.
    pub level: Option<f64>,
    /// Distance that the signal must return beyond the level before the next trigger, in raw counts. `None`: 0.3 of
    /// an eighth of the signal's height, but at least ten standard deviations of its noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hysteresis: Option<f64>,
    /// Whether the hysteresis is at least an eighth of the signal's height (a division), but at most three quarters
    /// of the part beyond the level.
    #[serde(skip_serializing_if = "is_off")]
    pub is_noise_reject: bool,
    /// Where the trigger stands on the screen: 0.0 left edge, 1.0 right edge.
    pub position: f64,
    /// Filter before the trigger.
    #[serde(flatten)]
    pub coupling: TriggerCoupling,
    /// Hold-off: minimum time between triggers, in seconds (samples if the rate is unknown); 0 for none.
    pub holdoff_s: f64,
    /// Minimum pulse width in seconds (samples if the rate is unknown); `None`: one sample.
    pub pulse_min_s: Option<f64>,
    /// Maximum pulse width; `None`: a division of the screen, or unlimited if there is a minimum.
    pub pulse_max_s: Option<f64>,
    /// Time without a crossing; `None`: a division of the screen.
    pub dropout_s: Option<f64>,
    /// A new number arms the trigger for the next single shot.
    pub shot: u32,
}

/// Filter before a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "CouplingWords", into = "CouplingWords")]
pub enum TriggerCoupling {
    /// No filter.
    #[default]
    Dc,
    /// A first-order high-pass filter removes the slow part. The level then counts from the wandering baseline.
    LfReject {
        /// The corner (-3 dB) in hertz (cycles per sample if the rate is unknown); `None`: two cycles per screen.
        corner_hz: Option<f64>,
    },
    /// A first-order low-pass filter removes the fast part.
    HfReject {
        /// The corner (-3 dB) in hertz (cycles per sample if the rate is unknown); `None`: a hundred cycles per screen.
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

/// A setting that is off is not sent, so that older peers still understand the rest.
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

    /// The explicit corner.
    pub(crate) fn set_corner_hz(self) -> Option<f64> {
        match self {
            TriggerCoupling::Dc => None,
            TriggerCoupling::LfReject { corner_hz } | TriggerCoupling::HfReject { corner_hz } => corner_hz,
        }
    }

    /// The same with another corner; DC becomes LF reject.
    pub(crate) fn with_corner_hz(self, corner_hz: Option<f64>) -> TriggerCoupling {
        match self {
            TriggerCoupling::HfReject { .. } => TriggerCoupling::HfReject { corner_hz },
            _ => TriggerCoupling::LfReject { corner_hz },
        }
    }

    /// The next of the three filters.
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

/// Type of trigger event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TriggerKind {
    /// A crossing of the level.
    #[default]
    Edge,
    /// A pulse with a width between two limits.
    Pulse,
    /// A pulse that crosses one of two levels, but not the other.
    Runt,
    /// Leaving or entering the range between two levels.
    Window,
    /// No crossing of the level for a time.
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
    /// At each trigger; the newest samples if none comes for a while.
    Auto,
    /// At each trigger, and only then.
    Normal,
    /// At one trigger, whose picture stays.
    Single,
}

/// The trigger's state, for display: a scope without new pictures must show why.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TriggerView {
    /// The settings, with the level in use.
    #[serde(flatten)]
    pub settings: TriggerSettings,
    /// The level in raw counts, the lower one of two; with LF reject, relative to the mean of the visible samples.
    #[serde(skip)]
    pub level: f64,
    /// The upper one of two levels, else the same level.
    #[serde(skip)]
    pub upper: f64,
    /// Hysteresis in raw counts.
    #[serde(rename = "hysteresis_used", default)]
    pub hysteresis: f64,
    /// Whether a picture is being taken.
    #[serde(skip)]
    pub state: TriggerState,
    /// Absolute sample index of the visible trigger.
    #[serde(skip)]
    pub at: Option<f64>,
    /// Triggers since the settings changed, visible or not, without those during hold-off.
    pub found: u64,
    /// Number of searched samples.
    pub searched_samples: u64,
    /// Rate of the triggers.
    pub rate: TriggerRate,
}

/// State of the triggered picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TriggerState {
    /// No trigger yet.
    #[default]
    Ready,
    /// The picture shows a trigger; the scope waits for the next.
    Triggered,
    /// No trigger for a while, so the picture runs free.
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

    /// Whether `other` searches for the same event: its place on the screen does not matter.
    fn is_same_trigger(&self, other: &TriggerSettings) -> bool {
        TriggerSettings { position: other.position, ..*self } == *other
    }
}

/// Default corner of LF reject: anything slower than half a screen counts as baseline.
const CYCLES_PER_SCREEN: f64 = 2.0;
/// Default corner of HF reject. Its delay of `1 / (2 pi corner)` is a 628th of the screen.
const FAST_CYCLES_PER_SCREEN: f64 = 100.0;

/// Intervals between recent triggers: at most 64, as far as the history reaches.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TriggerRate {
    /// From each trigger to the next, in seconds (samples if the rate is unknown). Intervals across missing samples
    /// do not count, because they may hide triggers.
    #[serde(flatten)]
    pub intervals: Running,
    /// Number of intervals that do not count because samples are missing.
    pub gaps: u64,
}

impl TriggerRate {
    /// Triggers per second (per sample if the rate is unknown); `None` below two triggers.
    pub fn rate_hz(&self) -> Option<f64> {
        self.intervals.mean().filter(|mean| *mean > 0.0).map(|mean| 1.0 / mean)
    }

    /// Triggers per minute; `None` above 10 Hz, where the unit is unusual.
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
    /// Whether samples are missing since the previous trigger.
    is_behind_gap: bool,
}

const SLOW_HZ: f64 = 10.0;

#[cfg(test)]
mod tests;
