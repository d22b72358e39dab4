//! Messages from a page: JSON, an object with one key.

use serde::{Deserialize, Serialize};

use crate::data::lane::LaneId;
use crate::model::action::Action;
use crate::model::fields::Field;
use crate::model::widget::Press;

/// A message of an accepted page.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PageRequest {
    Ack(u64),
    Ping { at: f64 },
    Do(Numbered),
}

/// An action with its number. Pictures that show its effect carry this number or a later one.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Numbered {
    pub(super) number: u64,
    pub(super) what: Deed,
}

/// An action of a person on a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Deed {
    /// The sizes of the page's drawing areas changed.
    Size(Sizes),
    /// A key, by its name.
    Key(String),
    /// Shows a range: the sample index of its right edge, and its length in samples.
    Show {
        ending: f64,
        samples: f64,
    },
    /// Steps the time span, around a part of the screen.
    Zoom {
        is_shorter: bool,
        at: f64,
    },
    /// Steps the scale of a lane.
    Scale {
        lane: LaneId,
        is_finer: bool,
    },
    /// Drags the trigger's level: the height in its lane, as a part from below.
    Level(f64),
    /// Drags the trigger's place, a time cursor, a value cursor.
    Place(f64),
    Cursor {
        which: usize,
        at: f64,
    },
    ValueCursor {
        which: usize,
        at: f64,
    },
    /// Drags a marker of the spectrum to a part of its visible range.
    Marker {
        which: usize,
        at: f64,
    },
    /// Sets the visible part of the spectrum.
    Frequencies(f64, f64),
    /// The pointer is over this part of the plot, or outside.
    Hover(Option<f64>),
    /// The answer in the open prompt.
    Answer(String),
    Field {
        field: Field,
        text: String,
    },
    /// A press on a widget.
    #[serde(untagged)]
    Press(Press),
}

/// Sizes of the drawing areas, in points; 0: not visible.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Sizes {
    /// Columns of the traces, and of the overview strip.
    pub(super) columns: usize,
    pub(super) overview: usize,
    /// Width and height.
    pub(super) plot: (f32, f32),
    pub(super) spectrum: (f32, f32),
    pub(super) waterfall: (f32, f32),
    pub(super) xy: (f32, f32),
}

/// Limits an action from a page; `None`: a page must not do it.
pub(super) fn bounded(action: Action) -> Option<Action> {
    let steps = |steps: i32| steps.clamp(-STEPS_MAX, STEPS_MAX);
    match action {
        // Closing the page ends the session.
        Action::Quit => None,
        Action::Mark(by) => Some(Action::Mark(steps(by))),
        Action::Segment(by) => Some(Action::Segment(steps(by))),
        Action::Position(by) => Some(Action::Position(by.clamp(-MOVES_MAX, MOVES_MAX))),
        Action::GroupChannel(place) if place >= crate::model::controls::GROUP => None,
        Action::AnnotatePart(part) | Action::DrawBox(part)
            if !part.times.iter().chain(part.frequencies.iter().flatten()).all(|it| it.is_finite()) =>
        {
            None
        }
        other => Some(other),
    }
}

const STEPS_MAX: i32 = 1000;
/// In divisions.
const MOVES_MAX: f64 = 1e6;
