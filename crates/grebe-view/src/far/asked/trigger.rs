//! The settings of a trigger, as they are asked for and told.

use grebe_scope::Slope;
use serde::{Deserialize, Serialize};

use crate::data::lane::LaneId;
use crate::data::trigger::{TriggerCoupling, TriggerKind, TriggerMode, TriggerSettings};

/// The settings of a trigger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct FarTrigger {
    mode: TriggerMode,
    kind: TriggerKind,
    lane: LaneId,
    slope: FarSlope,
    level: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hysteresis: Option<f64>,
    position: f64,
    is_lf_reject: bool,
    corner_hz: Option<f64>,
    holdoff_s: f64,
    pulse_min_s: Option<f64>,
    pulse_max_s: Option<f64>,
    dropout_s: Option<f64>,
    shot: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FarSlope {
    Rising,
    Falling,
    Either,
}

impl FarTrigger {
    pub(crate) fn new(settings: &TriggerSettings) -> FarTrigger {
        FarTrigger {
            mode: settings.mode,
            kind: settings.kind,
            lane: settings.lane,
            slope: match settings.slope {
                Slope::Rising => FarSlope::Rising,
                Slope::Falling => FarSlope::Falling,
                Slope::Either => FarSlope::Either,
            },
            level: settings.level,
            hysteresis: settings.hysteresis,
            position: settings.position,
            is_lf_reject: settings.coupling.is_lf_reject(),
            corner_hz: match settings.coupling {
                TriggerCoupling::LfReject { corner_hz } => corner_hz,
                TriggerCoupling::Dc => None,
            },
            holdoff_s: settings.holdoff_s,
            pulse_min_s: settings.pulse_min_s,
            pulse_max_s: settings.pulse_max_s,
            dropout_s: settings.dropout_s,
            shot: settings.shot,
        }
    }

    pub(crate) fn settings(&self) -> TriggerSettings {
        let time = |time: f64| time.clamp(0.0, SPAN_MAX);
        TriggerSettings {
            mode: self.mode,
            kind: self.kind,
            lane: self.lane,
            slope: match self.slope {
                FarSlope::Rising => Slope::Rising,
                FarSlope::Falling => Slope::Falling,
                FarSlope::Either => Slope::Either,
            },
            level: self.level,
            hysteresis: self.hysteresis.filter(|it| *it >= 0.0),
            position: self.position.clamp(0.0, 1.0),
            coupling: match self.is_lf_reject {
                true => TriggerCoupling::LfReject { corner_hz: self.corner_hz.filter(|hz| *hz > 0.0) },
                false => TriggerCoupling::Dc,
            },
            holdoff_s: time(self.holdoff_s),
            pulse_min_s: self.pulse_min_s.map(time),
            pulse_max_s: self.pulse_max_s.map(time),
            dropout_s: self.dropout_s.map(time),
            shot: self.shot,
        }
    }
}

impl Default for FarTrigger {
    fn default() -> FarTrigger {
        FarTrigger::new(&TriggerSettings::new(TriggerMode::Auto))
    }
}

pub(crate) const SPAN_MAX: f64 = 1e13;
