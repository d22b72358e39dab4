//! What a person can want, and the keys for it: the same in the window and in the terminal.

use crate::math::MathOperation;
use crate::trigger::TriggerMode;

/// Something a person wants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Action {
    /// Hold the picture, or go on.
    Pause,
    /// The next shorter span of time.
    Shorter,
    /// The next longer span of time.
    Longer,
    /// Half a screen back in time; holds the picture.
    Earlier,
    /// Half a screen forward.
    Later,
    /// To the newest samples, and on with them.
    Live,
    /// A channel on or off, from 0.
    Channel(usize),
    /// The next channel that the keys for one channel work on.
    NextChannel,
    /// That channel, from 0.
    #[cfg_attr(not(feature = "window"), allow(dead_code, reason = "by the pointer alone"))]
    Select(usize),
    /// Fewer or more units a division of the selected channel.
    Vertical(Step),
    /// The trace of the selected channel up by so many divisions.
    Position(f64),
    /// The vertical range of the selected channel follows its signal again.
    VerticalAuto,
    /// The selected channel turned over.
    Invert,
    /// The selected channel without its mean, or with it.
    Coupling,
    /// One lane for all channels, or one for each.
    Overlay,
    /// What the math channel computes: the next operation, none behind the last.
    NextMath,
    /// What the math channel computes, if anything.
    #[cfg_attr(not(feature = "window"), allow(dead_code, reason = "by the pointer alone"))]
    Math(Option<MathOperation>),
    /// The next channel for the first (0) or the second (1) input of the math channel.
    MathInput(usize),
    /// All triggers upon each other, by how often.
    Persistence,
    /// The channel panel on or off.
    Channels,
    /// A trigger mode.
    Trigger(TriggerMode),
    /// The next trigger mode.
    NextTrigger,
    /// What kind of event triggers: the next one.
    TriggerKind,
    /// The other edge.
    Slope,
    /// The next channel that triggers.
    Source,
    /// The trigger level up by so many fortieths of the lane.
    Level(f64),
    /// The trigger level to the middle of the signal, and with it from then on.
    LevelAuto,
    /// The trigger sees all of the signal, or not its slow part.
    TriggerCoupling,
    /// The slow part ends at a lower or higher frequency.
    #[cfg_attr(not(feature = "window"), allow(dead_code, reason = "by the pointer alone"))]
    Corner(Step),
    /// A shorter or longer time after each trigger in which there is none.
    Holdoff(Step),
    /// The trigger to the next place on the screen: a tenth, the middle, nine tenths.
    TriggerPlace,
    /// The list of the last triggers on or off.
    Segments,
    /// To the trigger before or behind the one that is shown; holds the picture.
    Segment(i32),
    /// Keeps the trigger that is shown in the list, or lets it go.
    Pin,
    /// Time cursors on or off.
    Cursors,
    /// The time cursor that moves by keys.
    OtherCursor,
    /// The time cursor that moves, by so many hundredths of the screen.
    MoveCursor(f64),
    /// Value cursors of the selected channel on or off.
    ValueCursors,
    /// The value cursor that moves by keys.
    OtherValueCursor,
    /// The value cursor that moves, by so many hundredths of the lane.
    MoveValueCursor(f64),
    /// The measurement table on or off.
    Measure,
    /// Statistics of the selected channel's measurements on or off.
    Statistics,
    /// The spectrum on or off.
    Spectrum,
    /// The waterfall of the selected channel on or off.
    Waterfall,
    /// Shorter or longer transforms.
    TransformSize(Step),
    /// The next weighting of transforms.
    Weighting,
    /// The next number of averaged spectra.
    Averages,
    /// The highest levels kept, or not.
    PeakHold,
    /// Saves something to a file.
    Save(SaveWhat),
    /// The generator makes nothing, or goes on.
    GeneratorPause,
    /// A lower or higher rate of the generator.
    GeneratorRate(Step),
    /// The next waveform of the generator.
    GeneratorWave,
    /// The key overlay.
    Help,
    /// Dark or light.
    Theme,
    /// Out of the overlay, or else the end.
    Back,
    /// The end.
    Quit,
}

/// One step of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Down,
    Up,
}

/// What can be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SaveWhat {
    /// The picture, as a PNG file.
    Picture,
    /// The visible samples, as CSV.
    Samples,
    /// The measurement table with its statistics, as CSV.
    Measurements,
    /// The visible samples as a recording.
    Recording,
}

/// Keys of one subject.
pub(crate) struct KeyGroup {
    pub(crate) title: &'static str,
    /// Keys and what they do.
    pub(crate) keys: &'static [(&'static str, &'static str)],
}

/// The keys there are, for the overlay: those of a generator where there is one that obeys.
pub(crate) fn keys(has_generator: bool) -> impl Iterator<Item = &'static KeyGroup> {
    KEYS.iter().chain(has_generator.then_some(&GENERATOR_KEYS))
}

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
        ],
    },
    KeyGroup {
        title: "channels",
        keys: &[
            ("1 \u{2026} 8", "channel on / off"),
            ("n", "next channel for the keys below"),
            ("y Y  u", "finer / coarser scale, automatic"),
            ("j k", "trace down / up"),
            ("i  a", "invert, AC coupling"),
            ("o  d", "overlay, persistence"),
            ("l", "channel panel"),
            ("E  N B", "math channel, what of"),
        ],
    },
    KeyGroup {
        title: "trigger",
        keys: &[
            ("m  s", "roll, auto, normal; single shot"),
            ("b", "edge, pulse, runt, window, dropout"),
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
        ],
    },
    KeyGroup {
        title: "spectrum",
        keys: &[
            ("f  w", "spectrum, waterfall"),
            ("( )  W", "shorter / longer transform, window"),
            ("A  H", "averages, peak hold"),
        ],
    },
    KeyGroup {
        title: "more",
        keys: &[
            ("S", "save the picture (PNG)"),
            ("D  M", "save samples, measurements (CSV)"),
            ("R", "save a recording (SigMF)"),
            ("t", "dark / light"),
            ("?", "this help"),
            ("q  esc", "quit"),
        ],
    },
];

/// By what is typed, not by where the key is: layouts differ in `+`, `-`, `[` and `?`.
pub(crate) fn char_action(typed: char) -> Option<Action> {
    Some(match typed {
        '+' | '=' => Action::Longer,
        '-' => Action::Shorter,
        '[' => Action::Earlier,
        ']' => Action::Later,
        '?' | 'h' => Action::Help,
        't' => Action::Theme,
        'm' => Action::NextTrigger,
        's' => Action::Trigger(TriggerMode::Single),
        'b' => Action::TriggerKind,
        'e' => Action::Slope,
        'r' => Action::Source,
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
        'p' => Action::TriggerPlace,
        ';' => Action::Holdoff(Step::Down),
        ':' => Action::Holdoff(Step::Up),
        'L' => Action::TriggerCoupling,
        'v' => Action::Measure,
        'V' => Action::Statistics,
        'n' => Action::NextChannel,
        'y' => Action::Vertical(Step::Down),
        'Y' => Action::Vertical(Step::Up),
        'u' => Action::VerticalAuto,
        'j' => Action::Position(-0.5),
        'k' => Action::Position(0.5),
        'i' => Action::Invert,
        'a' => Action::Coupling,
        'o' => Action::Overlay,
        'd' => Action::Persistence,
        'l' => Action::Channels,
        'E' => Action::NextMath,
        'N' => Action::MathInput(0),
        'B' => Action::MathInput(1),
        'f' => Action::Spectrum,
        'w' => Action::Waterfall,
        '(' => Action::TransformSize(Step::Down),
        ')' => Action::TransformSize(Step::Up),
        'W' => Action::Weighting,
        'A' => Action::Averages,
        'H' => Action::PeakHold,
        'S' => Action::Save(SaveWhat::Picture),
        'D' => Action::Save(SaveWhat::Samples),
        'M' => Action::Save(SaveWhat::Measurements),
        'R' => Action::Save(SaveWhat::Recording),
        'G' => Action::GeneratorPause,
        'z' => Action::GeneratorRate(Step::Down),
        'Z' => Action::GeneratorRate(Step::Up),
        'F' => Action::GeneratorWave,
        'q' => Action::Quit,
        '1'..='8' => Action::Channel(typed as usize - '1' as usize),
        _ => return None,
    })
}
