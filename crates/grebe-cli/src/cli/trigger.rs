//! The trigger of a scope, as options.

use std::time::Duration;

use clap::Args;
use grebe_scope::Slope;
use grebe_view::{LaneId, TriggerCoupling, TriggerKind, TriggerMode, TriggerOptions};

use crate::units;

/// What holds the picture still. What is not said is as it was the last time.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Trigger")]
pub(crate) struct Trigger {
    /// When pictures are taken [default: auto where any of the options below is given].
    #[arg(long = "trigger", value_name = "MODE", value_parser = units::choice(&MODES))]
    pub(crate) mode: Option<TriggerMode>,
    /// What triggers.
    #[arg(long = "trigger-kind", value_name = "KIND", value_parser = units::choice(&KINDS))]
    pub(crate) kind: Option<TriggerKind>,
    /// The channel that triggers, from 1; of a complex one a part: 1.magnitude, 1.db, 1.i, 1.q, 1.phase, 1.frequency.
    #[arg(long = "trigger-channel", value_name = "N")]
    pub(crate) lane: Option<LaneId>,
    /// Direction of the crossing; falling also means pulses below the level.
    #[arg(long = "trigger-slope", value_name = "SLOPE", value_parser = units::choice(&SLOPES))]
    pub(crate) slope: Option<Slope>,
    /// The level, in units of the channel (--units, --scale): 0.5, 600u [default: the middle of the signal].
    #[arg(long = "trigger-level", value_name = "VALUE", value_parser = units::number, allow_hyphen_values = true)]
    pub(crate) level: Option<f64>,
    /// Hysteresis, in units of the channel: 50m [default: 0.3 divisions, more for noise].
    #[arg(long = "trigger-hysteresis", value_name = "VALUE", value_parser = units::number)]
    pub(crate) hysteresis: Option<f64>,
    /// What of the signal the trigger sees: all, or not its slow part. The level then counts from where the signal wanders.
    #[arg(long = "trigger-coupling", value_name = "COUPLING", value_parser = units::choice(&COUPLINGS))]
    pub(crate) coupling: Option<TriggerCoupling>,
    /// Where the slow part ends: 1, 50k (hertz) [default: two cycles a screen].
    #[arg(long = "trigger-corner", value_name = "RATE", value_parser = units::rate_hz)]
    pub(crate) corner_hz: Option<f64>,
    /// No trigger for so long after one: 200ms.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) holdoff: Option<Duration>,
    /// Pulses that are not shorter trigger: 1ms.
    #[arg(long = "trigger-longer", value_name = "TIME", value_parser = units::duration)]
    pub(crate) longer: Option<Duration>,
    /// Pulses that are not longer trigger: 20us [default: a division, or any where --trigger-longer is given].
    #[arg(long = "trigger-shorter", value_name = "TIME", value_parser = units::duration)]
    pub(crate) shorter: Option<Duration>,
    /// How long the level is not crossed in a dropout: 5ms [default: a division].
    #[arg(long = "trigger-dropout", value_name = "TIME", value_parser = units::duration)]
    pub(crate) dropout: Option<Duration>,
}

impl Trigger {
    /// As the scope takes it.
    pub(crate) fn options(&self) -> TriggerOptions {
        let coupling = match (self.coupling, self.corner_hz) {
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
            coupling,
            holdoff_s: seconds(self.holdoff),
            pulse_min_s: seconds(self.longer),
            pulse_max_s: seconds(self.shorter),
            dropout_s: seconds(self.dropout),
        }
    }
}

const MODES: [(&str, &str, TriggerMode); 4] = [
    ("roll", "No trigger: the newest samples at the right edge", TriggerMode::Roll),
    ("auto", "A picture at each trigger, or without where none comes", TriggerMode::Auto),
    ("normal", "A picture at each trigger, and only then", TriggerMode::Normal),
    ("single", "The next trigger, which stays", TriggerMode::Single),
];
const KINDS: [(&str, &str, TriggerKind); 5] = [
    ("edge", "", TriggerKind::Edge),
    ("pulse", "", TriggerKind::Pulse),
    ("runt", "", TriggerKind::Runt),
    ("window", "", TriggerKind::Window),
    ("dropout", "", TriggerKind::Dropout),
];
const SLOPES: [(&str, &str, Slope); 2] = [("rising", "", Slope::Rising), ("falling", "", Slope::Falling)];
const COUPLINGS: [(&str, &str, TriggerCoupling); 2] =
    [("dc", "", TriggerCoupling::Dc), ("lf-reject", "", TriggerCoupling::LfReject { corner_hz: None })];
