//! What a trigger is told to do, and what it says of itself.

use grebe_scope::Slope;

use super::rate::TriggerRate;

/// What triggers, and where the trigger stands on the screen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TriggerSettings {
    /// When pictures are taken.
    pub mode: TriggerMode,
    /// What kind of event triggers.
    pub kind: TriggerKind,
    /// The channel that triggers, from 0.
    pub channel: usize,
    /// Direction of the crossing; `Rising` also means pulses above the level, and leaving a window.
    pub slope: Slope,
    /// The level to cross, in raw counts; `None` follows the middle of the signal. Where there are two levels, the middle
    /// between them: they lie a quarter of the signal's height above and below.
    pub level: Option<i16>,
    /// Where the trigger stands on the screen: 0.0 left edge, 1.0 right edge.
    pub position: f64,
    /// What of the signal the trigger sees.
    pub coupling: TriggerCoupling,
    /// Seconds without another trigger after each (samples where the rate is unknown); 0 for none.
    pub holdoff_s: f64,
    /// A new number arms the trigger for the next single shot.
    pub shot: u32,
}

/// What of the signal a trigger sees.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
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
}

impl TriggerCoupling {
    /// The corner for a screen of `span` seconds; `None` for DC.
    pub(crate) fn corner_hz(self, span: f64) -> Option<f64> {
        match self {
            TriggerCoupling::Dc => None,
            TriggerCoupling::LfReject { corner_hz } => Some(corner_hz.unwrap_or(CYCLES_PER_SCREEN / span)),
        }
    }

    pub(crate) fn is_lf_reject(self) -> bool {
        self != TriggerCoupling::Dc
    }
}

/// What kind of event triggers. Times are a division of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TriggerKind {
    /// The level is crossed.
    #[default]
    Edge,
    /// A pulse shorter than a division.
    Pulse,
    /// A pulse that passes one of two levels and not the other.
    Runt,
    /// The range between two levels is left or entered.
    Window,
    /// The level is not crossed for a division.
    Dropout,
}

impl TriggerKind {
    /// The next one, for a key that goes through all.
    pub(crate) fn next(self) -> TriggerKind {
        let at = TriggerKind::ALL.iter().position(|&kind| kind == self).unwrap_or(0);
        TriggerKind::ALL[(at + 1) % TriggerKind::ALL.len()]
    }

    /// All, in the order of a menu.
    pub(crate) const ALL: [TriggerKind; 5] =
        [TriggerKind::Edge, TriggerKind::Pulse, TriggerKind::Runt, TriggerKind::Window, TriggerKind::Dropout];

    /// Its name in a menu.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TriggerKind::Edge => "edge",
            TriggerKind::Pulse => "pulse",
            TriggerKind::Runt => "runt",
            TriggerKind::Window => "window",
            TriggerKind::Dropout => "dropout",
        }
    }

    /// Whether it has two levels.
    pub(crate) fn has_two_levels(self) -> bool {
        matches!(self, TriggerKind::Runt | TriggerKind::Window)
    }

    pub(super) fn is_timed(self) -> bool {
        matches!(self, TriggerKind::Pulse | TriggerKind::Dropout)
    }
}

/// When triggered pictures are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TriggerView {
    /// The settings, with the level that is used.
    pub settings: TriggerSettings,
    /// The level in raw counts, the lower one of two; with LF reject, from the mean of what is visible.
    pub level: i16,
    /// The upper one of two levels, else the same.
    pub upper: i16,
    /// Whether a picture is being taken.
    pub state: TriggerState,
    /// Absolute sample index of the trigger that is shown.
    pub at: Option<f64>,
    /// Triggers since the settings changed, shown or not, without those that were held off.
    pub found: u64,
    /// How often they come.
    pub rate: TriggerRate,
}

/// Whether a triggered picture is being taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerState {
    /// No trigger yet.
    Ready,
    /// The picture shows a trigger; the scope waits for the next.
    Triggered,
    /// None came for a while: the picture runs free.
    Free,
    /// The single shot was taken.
    Stopped,
}

impl TriggerSettings {
    /// A rising edge of the first channel through the middle of the signal, in the middle of the screen.
    pub fn new(mode: TriggerMode) -> TriggerSettings {
        TriggerSettings {
            mode,
            kind: TriggerKind::Edge,
            channel: 0,
            slope: Slope::Rising,
            level: None,
            position: 0.5,
            coupling: TriggerCoupling::Dc,
            holdoff_s: 0.0,
            shot: 0,
        }
    }

    /// Whether `other` looks for the same: where the trigger stands on the screen does not matter.
    pub(super) fn is_same_trigger(&self, other: &TriggerSettings) -> bool {
        TriggerSettings { position: other.position, ..*self } == *other
    }
}

/// The corner of LF reject where none is set: what is slower than half a screen counts as the wandering baseline.
const CYCLES_PER_SCREEN: f64 = 2.0;
