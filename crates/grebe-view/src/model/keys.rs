//! The keys for each action: the same in the window and in the terminal.

use super::action::{Action, SaveWhat, Step};
use crate::data::trigger::TriggerMode;
use crate::model::choices::Setting;
use crate::model::prompt::Question;
use crate::model::receiver::Tunable;
use crate::model::view_model::ViewModel;

pub(crate) struct KeyGroup {
    pub(crate) title: &'static str,
    pub(crate) keys: &'static [(&'static str, &'static str)],
}

/// The keys for the overlay, with those of other sources, a generator, a receiver and a ring only where there are any.
pub(crate) fn keys(model: &ViewModel) -> impl Iterator<Item = &'static KeyGroup> {
    let generator = model.generator.is_there().then_some(&GENERATOR_KEYS);
    let receiver = model.options.receiver.is_some().then_some(&RECEIVER_KEYS);
    let finder = model.has_finder().then_some(&FIND_KEYS);
    let sources = model.has_sources().then_some(&SOURCE_KEYS);
    KEYS.iter()
        .chain(finder)
        .chain(model.standing.is_one_of_several().then_some(&SEVERAL_KEYS))
        .chain(sources)
        .chain(generator)
        .chain(receiver)
        .chain(model.has_keeper().then_some(&RING_KEYS))
}

const RECEIVER_KEYS: KeyGroup =
    KeyGroup { title: "receiver", keys: &[("$", "frequency"), ("^", "gain"), ("%", "rate")] };

const FIND_KEYS: KeyGroup =
    KeyGroup { title: "find", keys: &[("\"", "in all of the history"), ("{ }", "from one to the next")] };

const SEVERAL_KEYS: KeyGroup =
    KeyGroup { title: "several streams", keys: &[("tab", "keys to the next (window: to the pointer's)")] };

const SOURCE_KEYS: KeyGroup = KeyGroup { title: "sources", keys: &[("&", "another source of this server")] };

const RING_KEYS: KeyGroup = KeyGroup { title: "ring", keys: &[("!", "keep the last, or a held picture")] };

const GENERATOR_KEYS: KeyGroup = KeyGroup {
    title: "generator",
    keys: &[("G", "pause / run"), ("z Z", "lower / higher rate"), ("F", "next waveform")],
};

const KEYS: [KeyGroup; 6] = [
    KeyGroup {
        title: "time",
        keys: &[
            ("space", "pause / run"),
            ("\u{2190} \u{2192}  + -", "shorter / longer time span"),
            ("[ ]", "back / forward in time"),
            ("end", "to the newest samples"),
            ("home *", "all of the recording, of the history"),
            ("U", "autoset: time, scales, trigger"),
            ("|", "zoom to what lies between cursors"),
            ("_", "strip with all of the history"),
        ],
    },
    KeyGroup {
        title: "channels",
        keys: &[
            ("1 \u{2026} 8  9", "channel on / off, the next eight"),
            ("/", "parts of I and Q: magnitude, phase, \u{2026}"),
            ("n", "next channel for the keys below"),
            ("y Y  u", "finer / coarser scale, automatic"),
            ("j k", "trace down / up"),
            ("i  a", "invert, AC coupling"),
            ("o  d", "overlay, persistence"),
            ("I", "line between samples: straight, sin(x)/x"),
            ("l", "channel panel"),
            ("E  N B", "math channel, what of"),
        ],
    },
    KeyGroup {
        title: "trigger",
        keys: &[
            ("m  s", "roll, auto, normal; single shot"),
            ("b  T", "what triggers, its pulse width or dropout"),
            ("e  r", "direction, channel"),
            ("\u{2191} \u{2193}  0", "level up / down, automatic"),
            ("p", "left, middle, right of the screen"),
            ("; :  L", "shorter / longer holdoff, LF reject"),
            ("g  { }  P", "last triggers, to each, pin"),
        ],
    },
    KeyGroup {
        title: "measure",
        keys: &[
            ("c  C", "time cursors, value cursors"),
            (", .  x", "move a time cursor, the other"),
            ("J K  X", "move a value cursor, the other"),
            ("v  V", "measurements, their statistics"),
            ("Q", "which measurements"),
        ],
    },
    KeyGroup {
        title: "spectrum",
        keys: &[
            ("f  w", "spectrum, waterfall"),
            ("@  '", "one channel over another, symbol rate"),
            ("( )  W", "shorter / longer transform, window"),
            ("A  H", "averages, peak hold"),
            ("#", "mark harmonics"),
        ],
    },
    KeyGroup {
        title: "more",
        keys: &[
            ("S", "save the picture (PNG)"),
            ("D  M", "save samples, measurements (CSV)"),
            ("R", "save a recording (SigMF)"),
            ("enter", "all settings, to choose"),
            ("O", "open a file"),
            ("t", "dark / light"),
            ("?", "this help"),
            ("q", "quit"),
            ("esc", "close what is open"),
        ],
    },
];

/// The action for a typed character. Not for a key's place: keyboard layouts differ in `+`, `-`, `[` and `?`.
pub(crate) fn char_action(typed: char) -> Option<Action> {
    Some(match typed {
        '+' | '=' => Action::Shorter,
        '-' => Action::Longer,
        '[' => Action::Earlier,
        ']' => Action::Later,
        '?' | 'h' => Action::Help,
        't' => Action::Theme,
        '*' => Action::FitAll,
        'U' => Action::Autoset,
        '|' => Action::ZoomToCursors,
        '_' => Action::Overview,
        'm' => Action::Next(Setting::TriggerMode),
        's' => Action::Trigger(TriggerMode::Single),
        'b' => Action::Next(Setting::TriggerKind),
        'e' => Action::Slope,
        'r' => Action::Next(Setting::TriggerLane),
        '0' => Action::LevelAuto,
        'g' => Action::Segments,
        '{' => Action::Segment(-1),
        '}' => Action::Segment(1),
        'P' => Action::Pin,
        'c' => Action::Cursors,
        'x' => Action::OtherCursor,
        ',' => Action::MoveCursor(-1.0),
        '.' => Action::MoveCursor(1.0),
        '<' => Action::MoveCursor(-10.0),
        '>' => Action::MoveCursor(10.0),
        'C' => Action::ValueCursors,
        'X' => Action::OtherValueCursor,
        'J' => Action::MoveValueCursor(-1.0),
        'K' => Action::MoveValueCursor(1.0),
        'p' => Action::Next(Setting::TriggerPlace),
        ';' => Action::Holdoff(Step::Down),
        ':' => Action::Holdoff(Step::Up),
        'L' => Action::TriggerCoupling,
        'v' => Action::Measure,
        'V' => Action::Statistics,
        'Q' => Action::Choices(Setting::Quantities),
        'T' => Action::Ask(Question::TriggerTime),
        'O' => Action::Ask(Question::File),
        '"' => Action::Ask(Question::Find),
        'n' => Action::NextChannel,
        'y' => Action::Vertical(Step::Down),
        'Y' => Action::Vertical(Step::Up),
        'u' => Action::VerticalAuto,
        'j' => Action::Position(-0.5),
        'k' => Action::Position(0.5),
        'i' => Action::Invert,
        'a' => Action::Coupling,
        'o' => Action::Overlay,
        'I' => Action::Interpolation,
        'd' => Action::Persistence,
        'l' => Action::Channels,
        'E' => Action::Next(Setting::Math),
        'N' => Action::Next(Setting::MathInput(0)),
        'B' => Action::Next(Setting::MathInput(1)),
        'f' => Action::Spectrum,
        'w' => Action::Waterfall,
        '(' => Action::TransformSize(Step::Down),
        ')' => Action::TransformSize(Step::Up),
        'W' => Action::Next(Setting::Weighting),
        'A' => Action::Next(Setting::Averages),
        'H' => Action::PeakHold,
        '#' => Action::Harmonics,
        'S' => Action::Save(SaveWhat::Picture),
        'D' => Action::Save(SaveWhat::Samples),
        'M' => Action::Save(SaveWhat::Measurements),
        'R' => Action::Save(SaveWhat::Recording),
        '&' => Action::Choices(Setting::Source),
        '!' => Action::Keep,
        'G' => Action::GeneratorPause,
        'z' => Action::GeneratorRate(Step::Down),
        'Z' => Action::GeneratorRate(Step::Up),
        'F' => Action::Next(Setting::Wave),
        'q' => Action::Quit,
        '1'..='8' => Action::GroupChannel(typed as usize - '1' as usize),
        '9' => Action::NextGroup,
        '$' => Action::Ask(Question::Tuning(Tunable::Frequency)),
        '^' => Action::Ask(Question::Tuning(Tunable::Gain)),
        '%' => Action::Ask(Question::Tuning(Tunable::Rate)),
        '/' => Action::Choices(Setting::Parts),
        '@' => Action::Xy,
        '\'' => Action::Ask(Question::SymbolRate),
        _ => return None,
    })
}
