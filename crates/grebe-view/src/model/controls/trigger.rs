//! Settings of the trigger.

use grebe_scope::{Slope, step_125_down, step_125_up};

use crate::data::lane::LaneId;
use crate::data::picture::Picture;
use crate::data::trigger::{TriggerCoupling, TriggerKind, TriggerMode, TriggerSettings};
use crate::model::action::Step;
use crate::model::channel::ChannelSetup;
use crate::model::controls::lanes::Lanes;

/// The trigger at the start, as far as it is given; the session has the rest.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TriggerOptions {
    /// Trigger mode; `None`: automatic, if any other field is set.
    pub mode: Option<TriggerMode>,
    /// Type of event.
    pub kind: Option<TriggerKind>,
    /// The lane that triggers.
    pub lane: Option<LaneId>,
    /// Direction of the crossing.
    pub slope: Option<Slope>,
    /// The level in units of the channel.
    pub level: Option<f64>,
    /// Hysteresis in units of the channel.
    pub hysteresis: Option<f64>,
    /// Whether the hysteresis is at least a division; `None`: unchanged.
    pub is_noise_reject: Option<bool>,
    /// Filter before the trigger.
    pub coupling: Option<TriggerCoupling>,
    /// Hold-off in seconds.
    pub holdoff_s: Option<f64>,
    /// Minimum pulse width in seconds.
    pub pulse_min_s: Option<f64>,
    /// Maximum pulse width in seconds.
    pub pulse_max_s: Option<f64>,
    /// Seconds without a crossing that count as a dropout.
    pub dropout_s: Option<f64>,
}

/// The trigger's settings.
#[derive(Debug)]
pub(crate) struct TriggerControls {
    pub(crate) settings: TriggerSettings,
    /// Whether the person selected a mode. Until then, the span decides.
    pub(crate) is_mode_chosen: bool,
}

impl TriggerControls {
    pub(super) fn new() -> TriggerControls {
        TriggerControls { settings: TriggerSettings::new(TriggerMode::Auto), is_mode_chosen: false }
    }

    /// Takes over the given values, and leaves the rest unchanged.
    pub(crate) fn adopt(&mut self, given: &TriggerOptions, lanes: &Lanes) {
        let now = self.settings;
        let lane = given.lane.unwrap_or(now.lane);
        let coupling = given.coupling.unwrap_or(now.coupling);
        let (pulse_min_s, pulse_max_s) = match (given.pulse_min_s, given.pulse_max_s) {
            (None, None) => (now.pulse_min_s, now.pulse_max_s),
            given => given,
        };
        self.settings = TriggerSettings {
            mode: given.mode.unwrap_or(now.mode),
            kind: given.kind.unwrap_or(now.kind),
            lane,
            slope: given.slope.unwrap_or(now.slope),
            level: given.level.map(|level| level_count(level, &lanes.setup(lane), coupling)).or(now.level),
            hysteresis: given.hysteresis.map(|it| distance_count(it, &lanes.setup(lane))).or(now.hysteresis),
            is_noise_reject: given.is_noise_reject.unwrap_or(now.is_noise_reject),
            coupling,
            holdoff_s: given.holdoff_s.unwrap_or(now.holdoff_s),
            pulse_min_s,
            pulse_max_s,
            dropout_s: given.dropout_s.or(now.dropout_s),
            ..now
        };
        // Someone who describes a trigger wants one, even with a long span.
        self.is_mode_chosen |= *given != TriggerOptions::default();
    }

    /// The selected mode, or one that suits the span: the eye can follow half a second or more, a shorter span must
    /// stand still.
    pub(super) fn mode(&self, picture: &Picture, span: f64) -> TriggerMode {
        let is_slow = span >= ROLL_SPAN_S || picture.axis_unit() != "s";
        if is_slow && !self.is_mode_chosen { TriggerMode::Roll } else { self.settings.mode }
    }

    pub(super) fn choose_mode(&mut self, mode: TriggerMode) {
        self.settings.mode = mode;
        self.settings.shot += u32::from(mode == TriggerMode::Single);
        self.is_mode_chosen = true;
    }

    pub(crate) fn set_kind(&mut self, kind: TriggerKind) {
        self.settings.kind = kind;
        self.settings.level = None;
    }

    pub(crate) fn set_lane(&mut self, lane: LaneId) {
        self.settings.lane = lane;
        self.settings.level = None;
    }

    pub(super) fn other_slope(&mut self) {
        self.settings.slope = match self.settings.slope {
            Slope::Rising => Slope::Falling,
            _ => Slope::Rising,
        };
    }

    /// Steps through 1-2-5: from none over a hundredth of the screen to a hundred screens.
    pub(super) fn step_holdoff(&mut self, step: Step, picture: &Picture) {
        let least = step_125_up(picture.span() / 100.0);
        let holdoff = self.settings.holdoff_s;
        self.settings.holdoff_s = match step {
            Step::Up if holdoff < least * 0.9 => least,
            Step::Up => step_125_up(holdoff * 1.1).min(least * 1e4),
            Step::Down if holdoff <= least * 1.1 => 0.0,
            Step::Down => step_125_down(holdoff * 0.9),
        };
    }

    /// Sets the filter. LF reject counts the level from another zero, so the level is reset.
    pub(crate) fn set_coupling(&mut self, coupling: TriggerCoupling) {
        if coupling.is_lf_reject() != self.settings.coupling.is_lf_reject() {
            self.settings.level = None;
        }
        self.settings.coupling = coupling;
    }

    /// Steps the filter's corner through 1-2-5; turns LF reject on if no filter is on.
    pub(super) fn step_corner(&mut self, step: Step, picture: &Picture) {
        if self.settings.coupling == TriggerCoupling::Dc {
            self.set_coupling(TriggerCoupling::LfReject { corner_hz: None });
        }
        let corner = self.settings.coupling.corner_hz(picture.span()).unwrap_or(1.0);
        let corner = match step {
            Step::Down => step_125_down(corner * 0.9),
            Step::Up => step_125_up(corner * 1.1).min(picture.rate_or_one() * 0.4),
        };
        self.settings.coupling = self.settings.coupling.with_corner_hz(Some(corner));
    }
}

/// Converts a distance in units to raw counts.
pub(crate) fn distance_count(distance: f64, setup: &ChannelSetup) -> f64 {
    (distance / setup.scale).abs()
}

/// Converts a level in units to a raw count.
pub(crate) fn level_count(level: f64, setup: &ChannelSetup, coupling: TriggerCoupling) -> f64 {
    let setup = setup.resolved(0.0);
    // LF reject counts from the baseline, not from 0.
    let zero = if coupling.is_lf_reject() { 0.0 } else { setup.offset };
    (level - zero) / setup.scale
}

/// Shorter spans use the trigger, longer ones roll, unless the person selected a mode.
const ROLL_SPAN_S: f64 = 0.5;
