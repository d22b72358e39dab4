//! What the trigger is told.

use grebe_scope::{step_125_down, step_125_up};

use super::Controls;
use crate::keys::Step;
use crate::options::TriggerOptions;
use crate::picture::Picture;
use crate::trigger::{TriggerCoupling, TriggerMode, TriggerSettings};

impl Controls {
    /// The trigger, and whether its mode was chosen.
    pub(crate) fn trigger_settings(&self) -> (TriggerSettings, bool) {
        (self.trigger, self.is_mode_chosen)
    }

    pub(crate) fn set_trigger(&mut self, trigger: TriggerSettings, is_mode_chosen: bool) {
        (self.trigger, self.is_mode_chosen) = (trigger, is_mode_chosen);
    }

    /// Takes over what was given, and leaves the rest as it is.
    pub(super) fn set_trigger_options(&mut self, given: &TriggerOptions) {
        let now = self.trigger;
        let channel = given.channel.unwrap_or(now.channel).min(7);
        let coupling = given.coupling.unwrap_or(now.coupling);
        // LF reject counts from where the signal wanders, not from 0.
        let setup = self.setups[channel].resolved(0.0);
        let zero = if coupling.is_lf_reject() { 0.0 } else { setup.offset };
        let count = |value: f64| ((value - zero) / setup.scale).round() as i16;
        self.trigger = TriggerSettings {
            mode: given.mode.unwrap_or(now.mode),
            kind: given.kind.unwrap_or(now.kind),
            channel,
            slope: given.slope.unwrap_or(now.slope),
            level: given.level.map(count).or(now.level),
            coupling,
            holdoff_s: given.holdoff_s.unwrap_or(now.holdoff_s),
            ..now
        };
        // Who describes a trigger wants one, also where the span is long.
        self.is_mode_chosen |= *given != TriggerOptions::default();
    }

    /// The trigger mode: the one chosen, or one that suits the span. What takes half a second to pass can be followed
    /// by eye; what is shorter needs to be held.
    pub(crate) fn mode(&self, picture: &Picture) -> TriggerMode {
        let is_slow = self.span.unwrap_or(picture.span()) >= ROLL_SPAN_S || picture.axis_unit() != "s";
        if is_slow && !self.is_mode_chosen { TriggerMode::Roll } else { self.trigger.mode }
    }

    pub(super) fn choose_mode(&mut self, mode: TriggerMode) {
        self.trigger.mode = mode;
        self.trigger.shot += u32::from(mode == TriggerMode::Single);
        self.is_mode_chosen = true;
        self.held_at = None;
    }

    /// The trigger level, in raw counts.
    pub(crate) fn set_level(&mut self, level: i16) {
        self.trigger.level = Some(level);
    }

    /// Where on the screen the trigger stands, 0.0 to 1.0.
    #[cfg(feature = "window")]
    pub(crate) fn set_trigger_position(&mut self, position: f64) {
        self.trigger.position = position.clamp(0.0, 1.0);
    }

    /// From none over a hundredth of the screen in steps of 1-2-5 to a hundred screens.
    pub(super) fn step_holdoff(&mut self, step: Step, picture: &Picture) {
        let least = step_125_up(picture.span() / 100.0);
        let holdoff = self.trigger.holdoff_s;
        self.trigger.holdoff_s = match step {
            Step::Up if holdoff < least * 0.9 => least,
            Step::Up => step_125_up(holdoff * 1.1).min(least * 1e4),
            Step::Down if holdoff <= least * 1.1 => 0.0,
            Step::Down => step_125_down(holdoff * 0.9),
        };
    }

    /// DC or LF reject; a level counts from elsewhere then.
    pub(super) fn toggle_trigger_coupling(&mut self) {
        self.trigger.level = None;
        self.trigger.coupling = match self.trigger.coupling {
            TriggerCoupling::Dc => TriggerCoupling::LfReject { corner_hz: None },
            TriggerCoupling::LfReject { .. } => TriggerCoupling::Dc,
        };
    }

    /// A corner of LF reject of its own, in steps of 1-2-5; switches it on.
    pub(super) fn step_corner(&mut self, step: Step, picture: &Picture) {
        if !self.trigger.coupling.is_lf_reject() {
            self.toggle_trigger_coupling();
        }
        let corner = self.trigger.coupling.corner_hz(picture.span()).unwrap_or(1.0);
        let corner = match step {
            Step::Down => step_125_down(corner * 0.9),
            Step::Up => step_125_up(corner * 1.1).min(picture.rate_or_one() * 0.4),
        };
        self.trigger.coupling = TriggerCoupling::LfReject { corner_hz: Some(corner) };
    }
}

/// Shorter spans are triggered, longer ones roll, until the person says otherwise.
const ROLL_SPAN_S: f64 = 0.5;
