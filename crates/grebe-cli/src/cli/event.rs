//! Events of a signal, as options: which kind, and under which conditions.

use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::{Args, CommandFactory, FromArgMatches, Parser};
use grebe_scope::Slope;
use grebe_view::LaneId;

use crate::units;

/// Where, and what counts.
#[derive(Debug, Clone, Args)]
pub(crate) struct Conditions {
    /// Where, from 1: 1, 1.magnitude, ...; several with commas [default: every channel].
    #[arg(long, value_name = "CHANNEL", value_delimiter = ',')]
    pub(crate) channel: Vec<LaneId>,
    /// Direction of the crossing; falling also means pulses, and levels, below.
    #[arg(long, value_name = "SLOPE", default_value = "rising", value_parser = units::choice(&SLOPES))]
    pub(crate) slope: Slope,
    /// The level: 0.5, 600u; of power and silence in dB: -30.
    #[arg(long, value_name = "VALUE", value_parser = units::number)]
    pub(crate) level: Option<f64>,
    /// The lower level of a runt, or edge of a window.
    #[arg(long, value_name = "VALUE", value_parser = units::number)]
    pub(crate) low: Option<f64>,
    /// The upper one.
    #[arg(long, value_name = "VALUE", value_parser = units::number)]
    pub(crate) high: Option<f64>,
    /// How far the signal must have gone back before a crossing counts again.
    #[arg(long, value_name = "VALUE", default_value = "0", value_parser = units::number)]
    pub(crate) hysteresis: f64,
    /// What is not shorter counts: pulses, dropouts, what lasts.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) longer: Option<Duration>,
    /// What is not longer counts.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) shorter: Option<Duration>,
    /// Over so much of the signal a power is a mean.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = units::duration)]
    pub(crate) window: Duration,
    /// Nothing more of a channel for so long after each: 200ms.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = units::duration)]
    pub(crate) holdoff: Duration,
}

impl Conditions {
    /// The name of one that was given, where any was.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            (!self.channel.is_empty(), "--channel"),
            (self.level.is_some(), "--level"),
            (self.low.is_some(), "--low"),
            (self.high.is_some(), "--high"),
            (self.longer.is_some(), "--longer"),
            (self.shorter.is_some(), "--shorter"),
            (!self.holdoff.is_zero(), "--holdoff"),
        ];
        given.into_iter().find_map(|(is_given, name)| is_given.then_some(name))
    }
}

/// What is looked for, where no command line says it: the words of `grebe find` behind `--trigger`.
#[derive(Debug, Clone, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
pub(crate) struct EventWords {
    /// The kind.
    #[arg(value_name = "KIND", value_parser = event_kind())]
    pub(crate) kind: EventKind,
    #[command(flatten)]
    pub(crate) conditions: Conditions,
}

impl EventWords {
    /// Reads them: `edge --level 0.5`.
    ///
    /// # Errors
    /// One line for a person.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let words = shlex::split(text).ok_or("a quotation mark is open")?;
        let command = super::numbers::with_numbers(Self::command());
        let read = command.try_get_matches_from(words).and_then(|matches| Self::from_arg_matches(&matches));
        read.map_err(|error| {
            let said = error.render().to_string();
            let lines = said.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
            lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned()
        })
    }
}

/// A kind of event, by its name.
pub(super) fn event_kind() -> impl TypedValueParser<Value = EventKind> {
    units::choice(&EVENTS)
}

/// What is looked for in a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    Edge,
    Pulse,
    Runt,
    Window,
    Dropout,
    Level,
    Power,
    Silence,
    Gap,
}

impl EventKind {
    pub(crate) fn name(self) -> &'static str {
        EVENTS.iter().find(|(_, _, kind)| *kind == self).map_or("", |(name, ..)| name)
    }
}

const EVENTS: [(&str, &str, EventKind); 9] = [
    ("edge", "The level is crossed (--level)", EventKind::Edge),
    ("pulse", "A pulse of a width ends (--level, --longer, --shorter)", EventKind::Pulse),
    ("runt", "A pulse passes one of two levels and not the other (--low, --high)", EventKind::Runt),
    ("window", "The range is left, or with --slope falling entered (--low, --high)", EventKind::Window),
    ("dropout", "The level is not crossed for a time (--level, --longer)", EventKind::Dropout),
    (
        "level",
        "The signal stays at or above the level, or with --slope falling below (--level)",
        EventKind::Level,
    ),
    ("power", "The mean power stays at or above a level in dB (--level, --window)", EventKind::Power),
    ("silence", "It stays below (--level, --window)", EventKind::Silence),
    ("gap", "Samples are missing", EventKind::Gap),
];
const SLOPES: [(&str, &str, Slope); 3] =
    [("rising", "", Slope::Rising), ("falling", "", Slope::Falling), ("either", "", Slope::Either)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_a_command_line_is() {
        let words =
            EventWords::parse("pulse --channel 2,1.magnitude --level -0.5 --longer 20us --slope falling")
                .unwrap();
        assert_eq!(
            (words.kind, words.conditions.level, words.conditions.slope),
            (EventKind::Pulse, Some(-0.5), Slope::Falling)
        );
        assert_eq!(words.conditions.longer, Some(Duration::from_micros(20)));
        assert_eq!(words.conditions.channel.len(), 2);
        assert_eq!(EventWords::parse("gap").unwrap().kind, EventKind::Gap);
        for (wrong, said) in [
            ("", "KIND"),
            ("glitch", "edge, pulse"),
            ("edge --level x", "--level"),
            ("edge 'x", "quotation"),
            ("edge --file x", "--file"),
        ] {
            let why = EventWords::parse(wrong).unwrap_err();
            assert!(why.contains(said) && !why.contains('\n'), "{wrong}: {why}");
        }
    }
}
