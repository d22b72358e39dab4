//! The trigger of a scope, as options.

use std::time::Duration;

use clap::{Args, ValueEnum};
use grebe_scope::Slope;
use grebe_view::{TriggerCoupling, TriggerKind, TriggerMode, TriggerOptions};

use crate::units;

/// What holds the picture still. What is not said is as it was the last time.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Trigger")]
pub(crate) struct Trigger {
    /// When pictures are taken [default: auto where any of the options below is given].
    #[arg(long = "trigger", value_enum, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
    /// What triggers.
    #[arg(long = "trigger-kind", value_enum, value_name = "KIND")]
    pub(crate) kind: Option<Kind>,
    /// The channel that triggers, from 1.
    #[arg(long = "trigger-channel", value_name = "N", value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) channel: Option<u8>,
    /// Direction of the crossing; falling also means pulses below the level.
    #[arg(long = "trigger-slope", value_enum, value_name = "SLOPE")]
    pub(crate) slope: Option<SlopeName>,
    /// The level, in units of the channel (--units, --scale): 0.5, 600u [default: the middle of the signal].
    #[arg(long = "trigger-level", value_name = "VALUE", value_parser = units::number, allow_hyphen_values = true)]
    pub(crate) level: Option<f64>,
    /// What of the signal the trigger sees: all, or not its slow part. The level then counts from where the signal wanders.
    #[arg(long = "trigger-coupling", value_enum, value_name = "COUPLING")]
    pub(crate) coupling: Option<Coupling>,
    /// Where the slow part ends: 1, 50k (hertz) [default: two cycles a screen].
    #[arg(long = "trigger-corner", value_name = "RATE", value_parser = units::rate_hz)]
    pub(crate) corner_hz: Option<f64>,
    /// No trigger for so long after one: 200ms.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) holdoff: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// No trigger: the newest samples at the right edge.
    Roll,
    /// A picture at each trigger, or without where none comes.
    Auto,
    /// A picture at each trigger, and only then.
    Normal,
    /// The next trigger, which stays.
    Single,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Edge,
    Pulse,
    Runt,
    Window,
    Dropout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SlopeName {
    Rising,
    Falling,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Coupling {
    Dc,
    LfReject,
}

impl Trigger {
    /// As the scope takes it.
    pub(crate) fn options(&self) -> TriggerOptions {
        let coupling = match (self.coupling, self.corner_hz) {
            (Some(Coupling::Dc), _) => Some(TriggerCoupling::Dc),
            (None, None) => None,
            (_, corner_hz) => Some(TriggerCoupling::LfReject { corner_hz }),
        };
        TriggerOptions {
            mode: self.mode.map(|mode| match mode {
                Mode::Roll => TriggerMode::Roll,
                Mode::Auto => TriggerMode::Auto,
                Mode::Normal => TriggerMode::Normal,
                Mode::Single => TriggerMode::Single,
            }),
            kind: self.kind.map(|kind| match kind {
                Kind::Edge => TriggerKind::Edge,
                Kind::Pulse => TriggerKind::Pulse,
                Kind::Runt => TriggerKind::Runt,
                Kind::Window => TriggerKind::Window,
                Kind::Dropout => TriggerKind::Dropout,
            }),
            channel: self.channel.map(|channel| usize::from(channel) - 1),
            slope: self.slope.map(|slope| match slope {
                SlopeName::Rising => Slope::Rising,
                SlopeName::Falling => Slope::Falling,
            }),
            level: self.level,
            coupling,
            holdoff_s: self.holdoff.map(|holdoff| holdoff.as_secs_f64()),
        }
    }
}
