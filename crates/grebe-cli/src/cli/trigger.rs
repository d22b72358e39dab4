//! Options of the trigger of a scope.

use std::time::Duration;

use clap::Args;
use grebe_scope::Slope;
use grebe_view::{LaneId, TriggerCoupling, TriggerKind, TriggerMode, TriggerOptions};

use crate::units;

/// Trigger of a scope. Options that are not given keep their last value.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Trigger")]
pub(crate) struct Trigger {
    /// Trigger mode [default: auto if a trigger option is given].
    #[arg(long = "trigger", value_name = "MODE", value_parser = units::choice(&MODES))]
    pub(crate) mode: Option<TriggerMode>,
    /// Kind of event.
    #[arg(long = "trigger-kind", value_name = "KIND", value_parser = units::choice(&KINDS))]
    pub(crate) kind: Option<TriggerKind>,
    /// Channel from 1; of a complex one its part: 1.magnitude, 1.i.
    ///
    /// Parts are i, q, magnitude, db, phase and frequency.
    #[arg(long = "trigger-channel", value_name = "N")]
    pub(crate) lane: Option<LaneId>,
    /// Direction of the crossing; falling also selects pulses below the level.
    #[arg(long = "trigger-slope", value_name = "SLOPE", value_parser = units::choice(&SLOPES))]
    pub(crate) slope: Option<Slope>,
    /// Level in units of the channel: 0.5, 600u [default: middle of the signal].
    #[arg(long = "trigger-level", value_name = "VALUE", value_parser = units::number, allow_hyphen_values = true)]
    pub(crate) level: Option<f64>,
    /// Hysteresis in units of the channel: 50m [default: 0.3 divisions].
    ///
    /// Noise increases the default.
    #[arg(long = "trigger-hysteresis", value_name = "VALUE", value_parser = units::number)]
    pub(crate) hysteresis: Option<f64>,
    /// Hysteresis of at least a division, for noisy signals.
    #[arg(long = "trigger-noise-reject")]
    pub(crate) is_noise_reject: bool,
    /// Coupling: the whole signal, or the signal without its slow or fast part.
    #[arg(long = "trigger-coupling", value_name = "COUPLING", value_parser = units::choice(&COUPLINGS))]
    pub(crate) coupling: Option<TriggerCoupling>,
    /// Corner frequency in Hz [default: LF 2, HF 100 cycles per screen].
    #[arg(long = "trigger-corner", value_name = "HZ", value_parser = units::rate_hz)]
    pub(crate) corner_hz: Option<f64>,
    /// Hold-off after a trigger: 200ms.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) holdoff: Option<Duration>,
    /// Minimum pulse width: 1ms.
    #[arg(long = "trigger-min-width", value_name = "TIME", value_parser = units::duration)]
    pub(crate) min_width: Option<Duration>,
    /// Maximum pulse width: 20us [default: a division].
    ///
    /// --trigger-min-width removes the default maximum.
    #[arg(long = "trigger-max-width", value_name = "TIME", value_parser = units::duration)]
    pub(crate) max_width: Option<Duration>,
    /// Time without a crossing: 5ms [default: a division].
    #[arg(long = "trigger-dropout", value_name = "TIME", value_parser = units::duration)]
    pub(crate) dropout: Option<Duration>,
}

impl Trigger {
    pub(crate) fn options(&self) -> TriggerOptions {
        let coupling = match (self.coupling, self.corner_hz) {
            (Some(TriggerCoupling::HfReject { .. }), corner_hz) => {
                Some(TriggerCoupling::HfReject { corner_hz })
            }
            (Some(TriggerCoupling::LfReject { .. }), _) | (None, Some(_)) => {
                Some(TriggerCoupling::LfReject { corner_hz: self.corner_hz })
            }
            (coupling, _) => coupling,
        };
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        TriggerOptions {
            mode: self.mode,
            kind: self.kind,
            lane: self.lane,
            slope: self.slope,
            level: self.level,
            hysteresis: self.hysteresis,
            is_noise_reject: self.is_noise_reject.then_some(true),
            coupling,
            holdoff_s: seconds(self.holdoff),
            pulse_min_s: seconds(self.min_width),
            pulse_max_s: seconds(self.max_width),
            dropout_s: seconds(self.dropout),
        }
    }
}

const MODES: [(&str, &str, TriggerMode); 4] = [
    ("roll", "No trigger; the newest samples are at the right edge", TriggerMode::Roll),
    ("auto", "A picture per trigger, and without one if none occurs", TriggerMode::Auto),
    ("normal", "A picture per trigger", TriggerMode::Normal),
    ("single", "One picture, at the next trigger", TriggerMode::Single),
];
const KINDS: [(&str, &str, TriggerKind); 5] = [
    ("edge", "", TriggerKind::Edge),
    ("pulse", "", TriggerKind::Pulse),
    ("runt", "", TriggerKind::Runt),
    ("window", "", TriggerKind::Window),
    ("dropout", "", TriggerKind::Dropout),
];
const SLOPES: [(&str, &str, Slope); 2] = [("rising", "", Slope::Rising), ("falling", "", Slope::Falling)];
const COUPLINGS: [(&str, &str, TriggerCoupling); 3] = [
    ("dc", "", TriggerCoupling::Dc),
    ("lf-reject", "", TriggerCoupling::LfReject { corner_hz: None }),
    ("hf-reject", "", TriggerCoupling::HfReject { corner_hz: None }),
];
