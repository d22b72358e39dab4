//! The keys, with their actions and the words of the help: the one list of all front ends.

use super::action::{Action, SaveWhat, Step};
use crate::data::trigger::TriggerMode;
use crate::model::action::Question;
use crate::model::receiver::Tunable;
use crate::model::setting::Setting;
use crate::model::view_model::ViewModel;

pub(crate) struct KeyGroup {
    pub(crate) title: &'static str,
    pub(crate) keys: &'static [KeyLine],
}

/// A line of the help.
pub(crate) struct KeyLine {
    /// The keys as shown in the help.
    pub(crate) shown: &'static str,
    pub(crate) words: &'static str,
    /// Each key's name and its action. A typed character is its own name; other keys have the names of the DOM (`ArrowUp`).
    keys: &'static [(&'static str, Action)],
}

/// The keys of the help, without those for other sources, a generator, a receiver and a ring if there are none.
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

/// All keys by their names, with their actions.
pub(crate) fn all_keys() -> impl Iterator<Item = (&'static str, Action)> {
    let some = [&FIND_KEYS, &SOURCE_KEYS, &GENERATOR_KEYS, &RECEIVER_KEYS, &RING_KEYS];
    let lines = KEYS.iter().chain(some).flat_map(|group| group.keys);
    lines.flat_map(|line| line.keys.iter().copied())
}

/// The action of a key by its name. `has_list`: a list is open, which takes some of the keys.
pub(crate) fn key_action(name: &str, has_list: bool) -> Option<Action> {
    let in_list = LIST_KEYS.iter().filter(|_| has_list).copied();
    in_list.chain(all_keys()).find(|(key, _)| *key == name).map(|(_, action)| action)
}

/// The action of a typed character. Not of a key's place, because keyboard layouts differ in `+`, `-`, `[` and `?`.
pub(crate) fn char_action(typed: char) -> Option<Action> {
    key_action(typed.encode_utf8(&mut [0; 4]), false)
}

const LIST_KEYS: [(&str, Action); 6] = [
    ("ArrowUp", Action::Mark(-1)),
    ("ArrowDown", Action::Mark(1)),
    ("PageUp", Action::Mark(-10)),
    ("PageDown", Action::Mark(10)),
    ("Enter", Action::Take),
    (" ", Action::Take),
];

const fn line(shown: &'static str, words: &'static str, keys: &'static [(&'static str, Action)]) -> KeyLine {
    KeyLine { shown, words, keys }
}

const RECEIVER_KEYS: KeyGroup = KeyGroup {
    title: "receiver",
    keys: &[
        line("$", "frequency", &[("$", Action::Ask(Question::Tuning(Tunable::Frequency)))]),
        line("^", "gain", &[("^", Action::Ask(Question::Tuning(Tunable::Gain)))]),
        line("%", "rate", &[("%", Action::Ask(Question::Tuning(Tunable::Rate)))]),
    ],
};

const FIND_KEYS: KeyGroup = KeyGroup {
    title: "find",
    keys: &[
        line("\"", "search the whole history", &[("\"", Action::Ask(Question::Find))]),
        line("{ }", "previous / next result", &[]),
    ],
};

const SEVERAL_KEYS: KeyGroup =
    KeyGroup { title: "several streams", keys: &[line("tab", "keys to the next stream (terminal)", &[])] };

const SOURCE_KEYS: KeyGroup = KeyGroup {
    title: "sources",
    keys: &[line("&", "another source of this server", &[("&", Action::Choices(Setting::Source))])],
};

const RING_KEYS: KeyGroup =
    KeyGroup { title: "ring", keys: &[line("!", "save the ring's last seconds", &[("!", Action::Keep)])] };

const GENERATOR_KEYS: KeyGroup = KeyGroup {
    title: "generator",
    keys: &[
        line("G", "pause / run", &[("G", Action::GeneratorPause)]),
        line(
            "z Z",
            "lower / higher rate",
            &[("z", Action::GeneratorRate(Step::Down)), ("Z", Action::GeneratorRate(Step::Up))],
        ),
        line("F", "next waveform", &[("F", Action::Next(Setting::Wave))]),
    ],
};

/// The mouse, in the window and on the page.
pub(crate) const MOUSE: KeyGroup = KeyGroup {
    title: "mouse",
    keys: &[
        line("wheel", "time span, frequency range", &[]),
        line("drag", "back / forward; levels, cursors", &[]),
        line("shift drag", "zoom; on the waterfall a box", &[]),
        line("ctrl drag", "annotate a stretch or a box", &[]),
        line("strip below", "click or drag: go there", &[]),
        line("left numbers", "wheel: scale of a channel", &[]),
        line("click a name", "settings of the channel", &[]),
        line("shift wheel", "scroll the lanes", &[]),
        line("double click", "to the newest samples", &[]),
    ],
};

/// Screens to touch.
pub(crate) const FINGERS: KeyGroup = KeyGroup {
    title: "fingers",
    keys: &[
        line("drag", "back / forward in time, frequencies", &[]),
        line("two fingers", "zoom and move", &[]),
        line("drag a mark", "cursors, markers, trigger level and place", &[]),
        line("strip below", "tap or drag: go there", &[]),
        line("tap a name", "settings of the channel", &[]),
        line("right edge", "scroll lanes that have no room", &[]),
        line("pause, resume", "hold the picture; to the newest samples", &[]),
        line("settings", "list of all settings", &[]),
    ],
};

const KEYS: [KeyGroup; 7] = [
    KeyGroup {
        title: "time",
        keys: &[
            line("space", "pause / run", &[(" ", Action::Pause)]),
            line(
                "\u{2190} \u{2192}  + -",
                "shorter / longer time span",
                &[
                    ("ArrowLeft", Action::Shorter),
                    ("ArrowRight", Action::Longer),
                    ("+", Action::Shorter),
                    ("=", Action::Shorter),
                    ("-", Action::Longer),
                ],
            ),
            line(
                "[ ]",
                "back / forward in time",
                &[
                    ("[", Action::Earlier),
                    ("]", Action::Later),
                    ("PageUp", Action::Earlier),
                    ("PageDown", Action::Later),
                ],
            ),
            line("end", "go to the newest samples", &[("End", Action::Live)]),
            line("home *", "whole recording or history", &[("Home", Action::FitAll), ("*", Action::FitAll)]),
            line("U", "autoset: time, scales, trigger", &[("U", Action::Autoset)]),
            line("|", "zoom to the range between cursors", &[("|", Action::ZoomToCursors)]),
            line("_", "strip with the whole history", &[("_", Action::Overview)]),
        ],
    },
    KeyGroup {
        title: "channels",
        keys: &[
            line(
                "1 \u{2026} 8  9",
                "channel on / off; next eight",
                &[
                    ("1", Action::GroupChannel(0)),
                    ("2", Action::GroupChannel(1)),
                    ("3", Action::GroupChannel(2)),
                    ("4", Action::GroupChannel(3)),
                    ("5", Action::GroupChannel(4)),
                    ("6", Action::GroupChannel(5)),
                    ("7", Action::GroupChannel(6)),
                    ("8", Action::GroupChannel(7)),
                    ("9", Action::NextGroup),
                ],
            ),
            line("/", "parts: I, Q, magnitude, phase, \u{2026}", &[("/", Action::Choices(Setting::Parts))]),
            line("n", "next channel for the keys below", &[("n", Action::NextChannel)]),
            line(
                "y Y  u",
                "finer / coarser; automatic scale",
                &[
                    ("y", Action::Vertical(Step::Down)),
                    ("Y", Action::Vertical(Step::Up)),
                    ("u", Action::VerticalAuto),
                ],
            ),
            line(
                "j k",
                "move the trace down / up",
                &[("j", Action::Position(-0.5)), ("k", Action::Position(0.5))],
            ),
            line("i  a", "invert; AC coupling", &[("i", Action::Invert), ("a", Action::Coupling)]),
            line(
                "o  d",
                "overlay all channels; persistence",
                &[("o", Action::Overlay), ("d", Action::Persistence)],
            ),
            line("I", "join samples: straight, sin(x)/x", &[("I", Action::Interpolation)]),
            line("l", "channel panel", &[("l", Action::Channels)]),
            line(
                "E  N B",
                "math channel; its two inputs",
                &[
                    ("E", Action::Next(Setting::Math)),
                    ("N", Action::Next(Setting::MathInput(0))),
                    ("B", Action::Next(Setting::MathInput(1))),
                ],
            ),
        ],
    },
    KeyGroup {
        title: "trigger",
        keys: &[
            line(
                "m  s",
                "mode; single shot",
                &[("m", Action::Next(Setting::TriggerMode)), ("s", Action::Trigger(TriggerMode::Single))],
            ),
            line(
                "b  T",
                "kind; pulse width or dropout time",
                &[("b", Action::Next(Setting::TriggerKind)), ("T", Action::Ask(Question::TriggerTime))],
            ),
            line(
                "e  r",
                "other slope; next channel",
                &[("e", Action::Slope), ("r", Action::Next(Setting::TriggerLane))],
            ),
            line(
                "\u{2191} \u{2193}  0",
                "level up / down; automatic level",
                &[
                    ("ArrowUp", Action::Level(1.0)),
                    ("ArrowDown", Action::Level(-1.0)),
                    ("0", Action::LevelAuto),
                ],
            ),
            line("p", "place: left, middle or right", &[("p", Action::Next(Setting::TriggerPlace))]),
            line(
                "; :  L  ~",
                "hold-off; LF, HF, noise reject",
                &[
                    (";", Action::Holdoff(Step::Down)),
                    (":", Action::Holdoff(Step::Up)),
                    ("L", Action::TriggerCoupling),
                    ("~", Action::NoiseReject),
                ],
            ),
            line(
                "g  { }  P",
                "list; previous / next trigger; pin",
                &[
                    ("g", Action::Segments),
                    ("{", Action::Segment(-1)),
                    ("}", Action::Segment(1)),
                    ("P", Action::Pin),
                ],
            ),
        ],
    },
    KeyGroup {
        title: "measure",
        keys: &[
            line(
                "c  C",
                "time cursors; value cursors",
                &[("c", Action::Cursors), ("C", Action::ValueCursors)],
            ),
            line(
                ", .  x",
                "move a time cursor; the other one",
                &[
                    (",", Action::MoveCursor(-1.0)),
                    (".", Action::MoveCursor(1.0)),
                    ("<", Action::MoveCursor(-10.0)),
                    (">", Action::MoveCursor(10.0)),
                    ("x", Action::OtherCursor),
                ],
            ),
            line(
                "J K  X",
                "move a value cursor; the other one",
                &[
                    ("J", Action::MoveValueCursor(-1.0)),
                    ("K", Action::MoveValueCursor(1.0)),
                    ("X", Action::OtherValueCursor),
                ],
            ),
            line(
                "v  V",
                "measurements; their statistics",
                &[("v", Action::Measure), ("V", Action::Statistics)],
            ),
            line("Q", "choose the measurements", &[("Q", Action::Choices(Setting::Quantities))]),
        ],
    },
    KeyGroup {
        title: "spectrum",
        keys: &[
            line("f  w", "spectrum; waterfall", &[("f", Action::Spectrum), ("w", Action::Waterfall)]),
            line(
                "@  '",
                "XY plot; symbol rate",
                &[("@", Action::Xy), ("'", Action::Ask(Question::SymbolRate))],
            ),
            line(
                "( )  W",
                "transform length; window function",
                &[
                    ("(", Action::TransformSize(Step::Down)),
                    (")", Action::TransformSize(Step::Up)),
                    ("W", Action::Next(Setting::Weighting)),
                ],
            ),
            line(
                "A  H",
                "averages; hold the highest levels",
                &[("A", Action::Next(Setting::Averages)), ("H", Action::PeakHold)],
            ),
            line(
                "`  \\  #",
                "markers; move to a peak; harmonics",
                &[("`", Action::Markers), ("\\", Action::Choices(Setting::Marker)), ("#", Action::Harmonics)],
            ),
            line(
                "\u{21e7}\u{2191} \u{2193} \u{2190} \u{2192}",
                "shift: zoom, move the frequencies",
                &[
                    ("Shift+ArrowUp", Action::ZoomFrequencies(Step::Up)),
                    ("Shift+ArrowDown", Action::ZoomFrequencies(Step::Down)),
                    ("Shift+ArrowLeft", Action::PanFrequencies(-0.25)),
                    ("Shift+ArrowRight", Action::PanFrequencies(0.25)),
                ],
            ),
            line(
                "F6  F7",
                "box on the waterfall; mean levels",
                &[("F6", Action::Choices(Setting::Box)), ("F7", Action::Detector)],
            ),
        ],
    },
    KeyGroup {
        title: "annotations",
        keys: &[
            line(
                "F2  F8",
                "annotate between cursors; edit",
                &[("F2", Action::Annotate), ("F8", Action::EditAnnotation)],
            ),
            line(
                "F4  F9",
                "table of annotations; undo",
                &[("F4", Action::Annotations), ("F9", Action::UndoAnnotation)],
            ),
            line(
                "del",
                "delete the chosen annotation",
                &[("Delete", Action::DeleteAnnotation), ("Backspace", Action::DeleteAnnotation)],
            ),
        ],
    },
    KeyGroup {
        title: "more",
        keys: &[
            line("S", "save the picture (PNG)", &[("S", Action::Save(SaveWhat::Picture))]),
            line(
                "D  M",
                "save samples; measurements (CSV)",
                &[("D", Action::Save(SaveWhat::Samples)), ("M", Action::Save(SaveWhat::Measurements))],
            ),
            line("R", "save a recording (SigMF)", &[("R", Action::Save(SaveWhat::Recording))]),
            line("enter", "list of all settings", &[("Enter", Action::Choices(Setting::All))]),
            line("O", "open a file", &[("O", Action::Ask(Question::File))]),
            line("t", "dark / light theme", &[("t", Action::Theme)]),
            line("?", "this help", &[("?", Action::Help), ("h", Action::Help)]),
            line("shift tab", "scroll the tables (terminal)", &[]),
            line("q", "quit", &[("q", Action::Quit)]),
            line("esc", "close the open list or prompt", &[("Escape", Action::Back)]),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_stands_once_and_lists_have_some_of_them() {
        let mut seen = std::collections::BTreeSet::new();
        for (name, _) in all_keys() {
            assert!(seen.insert(name), "{name} stands twice");
        }
        // A column of the terminal cuts longer words.
        let groups = [FIND_KEYS, SEVERAL_KEYS, SOURCE_KEYS, GENERATOR_KEYS, RECEIVER_KEYS, RING_KEYS];
        for line in KEYS.iter().chain(&groups).flat_map(|group| group.keys) {
            let is_short = line.shown.chars().count() <= 9 && line.words.chars().count() <= 34;
            assert!(is_short, "{} {}", line.shown, line.words);
        }
        assert_eq!(char_action('U'), Some(Action::Autoset));
        assert_eq!(key_action("ArrowUp", false), Some(Action::Level(1.0)));
        assert_eq!(key_action("ArrowUp", true), Some(Action::Mark(-1)));
        assert_eq!((key_action("U", true), char_action('\u{a7}')), (Some(Action::Autoset), None));
    }
}
