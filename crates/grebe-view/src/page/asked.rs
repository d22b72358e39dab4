//! What a page says: JSON, an object with one key.

use serde::{Deserialize, Serialize};

use crate::data::lane::LaneId;
use crate::model::action::Action;
use crate::model::fields::Field;
use crate::model::widget::Press;

/// A message of a page that was let in.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    Ack(u64),
    Ping { at: f64 },
    Do(Numbered),
}

/// A deed with its number: pictures that follow from it bear that, or a later one.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Numbered {
    pub(super) number: u64,
    pub(super) what: Deed,
}

/// What a person does on a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Deed {
    /// How large what is drawn is now.
    Size(Sizes),
    /// A key, by its name.
    Key(String),
    /// Shows a stretch: the sample index of its right edge, and samples.
    Show {
        ending: f64,
        samples: f64,
    },
    /// A step of the time span around a part of the screen.
    Zoom {
        is_shorter: bool,
        at: f64,
    },
    /// A finer or coarser scale of a lane.
    Scale {
        lane: LaneId,
        is_finer: bool,
    },
    /// Drags the trigger's level: the part of its lane's height, from below.
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
    /// Drags a marker of the spectrum: to a part of what is shown.
    Marker {
        which: usize,
        at: f64,
    },
    /// The shown part of the spectrum.
    Frequencies(f64, f64),
    /// The pointer is over this part of the plot, or nowhere.
    Hover(Option<f64>),
    /// The answer that is typed into the open line.
    Answer(String),
    Field {
        field: Field,
        text: String,
    },
    /// A press on a widget.
    #[serde(untagged)]
    Press(Press),
}

/// Sizes of what is drawn, in points; 0: it is not there.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Sizes {
    /// Columns of the traces, and of the strip with all of the history.
    pub(super) columns: usize,
    pub(super) overview: usize,
    /// Width and height.
    pub(super) plot: (f32, f32),
    pub(super) spectrum: (f32, f32),
    pub(super) waterfall: (f32, f32),
    pub(super) xy: (f32, f32),
}

/// An action that may come from anywhere, within what there is; `None`: not from here.
pub(super) fn bounded(action: Action) -> Option<Action> {
    let steps = |steps: i32| steps.clamp(-STEPS_MAX, STEPS_MAX);
    match action {
        // Closing the page ends it.
        Action::Quit => None,
        Action::Mark(by) => Some(Action::Mark(steps(by))),
        Action::Segment(by) => Some(Action::Segment(steps(by))),
        Action::Position(by) => Some(Action::Position(by.clamp(-MOVES_MAX, MOVES_MAX))),
        Action::GroupChannel(place) if place >= crate::model::controls::GROUP => None,
        Action::AnnotatePart(part)
            if !part.times.iter().chain(part.frequencies.iter().flatten()).all(|it| it.is_finite()) =>
        {
            None
        }
        other => Some(other),
    }
}

const STEPS_MAX: i32 = 1000;
/// Divisions.
const MOVES_MAX: f64 = 1e6;
