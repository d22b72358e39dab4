//! Kinds of events and their conditions, as options.

use std::ops::Range;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::{Args, CommandFactory, FromArgMatches, Parser};
use grebe_scope::Slope;
use grebe_view::LaneId;

use crate::ending::one_line_of_clap;
use crate::units;

/// Conditions of an event.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Conditions")]
pub(crate) struct Conditions {
    /// Channels to search: 1,3-8 or 2.magnitude [default: all].
    ///
    /// Parts of complex channels are i, q, magnitude (the default), db, phase and frequency.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = lanes)]
    channels: Vec<Lanes>,
    /// Direction of crossings; falling also selects signals below the level.
    #[arg(long, value_name = "SLOPE", default_value = "rising", value_parser = units::choice(&SLOPES))]
    pub(crate) slope: Slope,
    /// Level in units of the channel: 0.5, 600u; of power and silence in dB: -30.
    #[arg(long, value_name = "VALUE", value_parser = units::number)]
    pub(crate) level: Option<f64>,
    /// Lower level of a runt, or lower edge of a window.
    #[arg(long, value_name = "VALUE", value_parser = units::number)]
    pub(crate) low: Option<f64>,
    /// Upper level of a runt, or upper edge of a window.
    #[arg(long, value_name = "VALUE", value_parser = units::number)]
    pub(crate) high: Option<f64>,
    /// Hysteresis of crossings, in units of the channel.
    #[arg(long, value_name = "VALUE", default_value = "0", value_parser = units::number)]
    pub(crate) hysteresis: f64,
    /// Minimum duration: 1ms.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) longer: Option<Duration>,
    /// Maximum duration: 20us.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) shorter: Option<Duration>,
    /// Averaging window for power.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = units::duration)]
    pub(crate) window: Duration,
    /// Frequencies in which the centre of a burst lies: 433.9M,434.1M.
    ///
    /// On the air if the recording has a centre frequency, otherwise in the signal.
    #[arg(long, value_name = "LOW,HIGH", value_parser = units::band_hz, allow_hyphen_values = true)]
    pub(crate) band: Option<(f64, f64)>,
    /// Minimum SNR of a burst: 12dB.
    #[arg(long, value_name = "DB", value_parser = units::above_db, allow_hyphen_values = true)]
    pub(crate) above: Option<f64>,
    /// False alarms per cell (line of a transform) of noise [default: 1e-7].
    #[arg(long, value_name = "RATE", value_parser = units::false_alarms)]
    pub(crate) false_alarms: Option<f64>,
    /// Samples per transform for bursts: a power of two, 64 to 16384 [default: 1024].
    ///
    /// More of them tell nearer frequencies and weaker signals apart, fewer of them shorter bursts.
    #[arg(long, value_name = "SAMPLES", value_parser = units::transform_samples)]
    pub(crate) transform: Option<usize>,
    /// Hold-off per channel after an event: 200ms.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = units::duration)]
    pub(crate) holdoff: Duration,
}

impl Conditions {
    /// The lanes of `--channels`; none stands for every channel.
    pub(crate) fn lanes(&self) -> Vec<LaneId> {
        self.channels.iter().flat_map(|Lanes(lanes)| lanes).copied().collect()
    }

    /// The name of a condition that the command line has, if any.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let others = first_of([
            (!self.channels.is_empty(), "--channels"),
            (self.longer.is_some(), "--longer"),
            (self.shorter.is_some(), "--shorter"),
            (!self.holdoff.is_zero(), "--holdoff"),
        ]);
        others.or(self.given_level()).or(self.given_of_burst())
    }

    /// The name of a level that the command line has, if any.
    pub(crate) fn given_level(&self) -> Option<&'static str> {
        let [level, low, high] = [self.level, self.low, self.high].map(|value| value.is_some());
        first_of([(level, "--level"), (low, "--low"), (high, "--high")])
    }

    /// The name of a condition of bursts that the command line has, if any.
    pub(crate) fn given_of_burst(&self) -> Option<&'static str> {
        first_of([
            (self.band.is_some(), "--band"),
            (self.above.is_some(), "--above"),
            (self.false_alarms.is_some(), "--false-alarms"),
            (self.transform.is_some(), "--transform"),
        ])
    }
}

fn first_of<const N: usize>(given: [(bool, &'static str); N]) -> Option<&'static str> {
    given.into_iter().find_map(|(is_given, name)| is_given.then_some(name))
}

/// Lanes of one item of `--channels`.
#[derive(Debug, Clone)]
struct Lanes(Vec<LaneId>);

/// Parses a channel (`3`), a part (`2.magnitude`) or a range (`5-8`).
fn lanes(text: &str) -> Result<Lanes, String> {
    if let Ok(lane) = text.parse() {
        return Ok(Lanes(vec![lane]));
    }
    let range = units::channels(text)?;
    range.map(|number| number.to_string().parse()).collect::<Result<_, _>>().map(Lanes)
}

/// Event as text: the arguments of `grebe find` after `--trigger`.
#[derive(Debug, Clone, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
pub(crate) struct EventWords {
    #[arg(value_name = "KIND", value_parser = event_kind())]
    pub(crate) kind: EventKind,
    #[command(flatten)]
    pub(crate) conditions: Conditions,
    /// Start of the search, as a time since the start of the stream.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) from: Option<Duration>,
    /// End of the search, as a time since the start of the stream.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) to: Option<Duration>,
}

impl EventWords {
    /// Sample indices to search.
    ///
    /// # Errors
    /// Times are given, and the sample rate is unknown, or the range is empty.
    pub(crate) fn range(&self, rate_hz: f64) -> Result<Range<u64>, String> {
        if (self.from, self.to) == (None, None) {
            return Ok(0..u64::MAX);
        }
        if rate_hz <= 0.0 {
            return Err("--from and --to need a known sample rate".into());
        }
        let index = |time: Duration| (time.as_secs_f64() * rate_hz).round() as u64;
        let range = self.from.map_or(0, index)..self.to.map_or(u64::MAX, index);
        if range.is_empty() { Err("--to must be later than --from".into()) } else { Ok(range) }
    }

    /// Parses text such as `edge --level 0.5`.
    ///
    /// # Errors
    /// The reason in one line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let words = shlex::split(text).ok_or("unbalanced quotation mark")?;
        let command = super::numbers::with_numbers(Self::command());
        let read = command.try_get_matches_from(words).and_then(|matches| Self::from_arg_matches(&matches));
        read.map_err(|error| one_line_of_clap(&error))
    }
}

/// Parser of an event kind.
pub(super) fn event_kind() -> impl TypedValueParser<Value = EventKind> {
    units::choice(&EVENTS)
}

/// Kind of event.
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
    Burst,
    Gap,
}

impl EventKind {
    pub(crate) fn name(self) -> &'static str {
        EVENTS.iter().find(|(_, _, kind)| *kind == self).map_or("", |(name, ..)| name)
    }
}

const EVENTS: [(&str, &str, EventKind); 10] = [
    ("edge", "Crossing of --level", EventKind::Edge),
    ("pulse", "Pulse above --level, of a width (--longer, --shorter)", EventKind::Pulse),
    ("runt", "Pulse that crosses only one of two levels (--low, --high)", EventKind::Runt),
    ("window", "Leaving a range, or entering it with --slope falling (--low, --high)", EventKind::Window),
    ("dropout", "No crossing of --level for a time (--longer)", EventKind::Dropout),
    ("level", "Signal at or above --level, or below it with --slope falling", EventKind::Level),
    ("power", "Mean power at or above --level in dB (--window)", EventKind::Power),
    ("silence", "Mean power below --level in dB (--window)", EventKind::Silence),
    ("burst", "Energy over the noise in time and frequency (--above, --band)", EventKind::Burst),
    ("gap", "Samples are missing", EventKind::Gap),
];
const SLOPES: [(&str, &str, Slope); 3] =
    [("rising", "", Slope::Rising), ("falling", "", Slope::Falling), ("either", "", Slope::Either)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_a_command_line_is() {
        let words = EventWords::parse(
            "pulse --channels 2,1.magnitude,4-5 --level -0.5 --longer 20us --slope falling",
        )
        .unwrap();
        assert_eq!(
            (words.kind, words.conditions.level, words.conditions.slope),
            (EventKind::Pulse, Some(-0.5), Slope::Falling)
        );
        assert_eq!(words.conditions.longer, Some(Duration::from_micros(20)));
        assert_eq!(words.conditions.lanes().len(), 4);
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
