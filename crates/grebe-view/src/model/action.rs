//! What a person can do with the scope: the same in every front end.

use serde::{Deserialize, Serialize};

use crate::data::lane::{LaneId, Part};
use crate::data::math::MathOperation;
use crate::data::trigger::TriggerMode;
use crate::model::receiver::Tunable;
use crate::model::setting::Setting;

/// One thing that a person can do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    Pause,
    Shorter,
    Longer,
    /// Half a screen back in time; holds the picture.
    Earlier,
    Later,
    /// The whole recording, or all of the history.
    FitAll,
    /// Time base, scales and trigger as the newest samples ask for.
    Autoset,
    Zoom(ScreenBox),
    /// Shows what lies between the cursors.
    ZoomToCursors,
    /// Shows the place at a sample index in the middle; holds the picture.
    ShowAt(f64),
    /// The strip with all of the history on or off.
    Overview,
    /// Back to the newest samples, following them.
    Live,
    Channel(usize),
    /// One of the eight channels that the digits switch.
    GroupChannel(usize),
    /// The next eight channels alone; behind the last of them all.
    NextGroup,
    /// A part of complex channels on or off.
    Part(Part),
    /// Selects the next lane for the keys that work on one.
    NextChannel,
    Select(LaneId),
    Vertical(Step),
    /// Moves the trace of the selected channel up, in divisions.
    Position(f64),
    /// The vertical range of the selected channel follows its signal again.
    VerticalAuto,
    Invert,
    Coupling,
    /// One lane for all channels, or one for each.
    Overlay,
    Math(Option<MathOperation>),
    /// The line between samples: straight, or sin(x)/x.
    Interpolation,
    /// The next value of a setting that has more than two; shows the list of them for a while.
    Next(Setting),
    /// Opens the list of what a setting can be.
    Choices(Setting),
    /// Moves down in the list that is open.
    Mark(i32),
    /// Sets the line of the open list that is marked.
    Take,
    /// Sets a line of the open list.
    Choose(usize),
    /// Opens a line for an answer in letters or digits.
    Ask(Question),
    Persistence,
    Channels,
    Trigger(TriggerMode),
    Slope,
    /// Moves the trigger level up, in fortieths of the lane.
    Level(f64),
    /// The trigger level follows the middle of the signal.
    LevelAuto,
    TriggerCoupling,
    /// Widens the trigger's hysteresis, or no longer.
    NoiseReject,
    Corner(Step),
    Holdoff(Step),
    Segments,
    /// Shows a trigger before (negative) or after the one that is shown; holds the picture.
    Segment(i32),
    /// Pins the trigger that is shown to the list, or unpins it.
    Pin,
    Cursors,
    /// The keys move the other time cursor.
    OtherCursor,
    /// Moves a time cursor, in hundredths of the screen.
    MoveCursor(f64),
    /// Value cursors of the selected channel on or off.
    ValueCursors,
    /// The keys move the other value cursor.
    OtherValueCursor,
    /// Moves a value cursor, in hundredths of the lane.
    MoveValueCursor(f64),
    Measure,
    /// Statistics of the selected channel's measurements on or off.
    Statistics,
    Spectrum,
    /// The waterfall of the selected channel on or off.
    Waterfall,
    /// One lane over another on or off.
    Xy,
    TransformSize(Step),
    /// Keeps the highest levels of the spectrum, or no longer.
    PeakHold,
    /// Levels of the waterfall's colours by the noise floor, or as they are now.
    LevelsAuto,
    /// The form of a search, open or closed.
    Find,
    /// Both markers of the spectrum on or off.
    Markers,
    /// Moves one of them, A (0) or B (1).
    MoveMarker(usize, ToPeak),
    /// Marks the fundamental of the selected channel's spectrum and its harmonics, or no longer.
    Harmonics,
    /// Annotates what lies between the cursors.
    Annotate,
    /// Annotates a part of the screen.
    AnnotatePart(AnnotatedPart),
    /// Opens a line for the words of the chosen annotation.
    EditAnnotation,
    /// The chosen annotation lies between the cursors from now on.
    MoveAnnotation,
    DeleteAnnotation,
    /// Takes the last change of annotations back.
    UndoAnnotation,
    /// The table of annotations on or off.
    Annotations,
    Save(SaveWhat),
    /// Keeps what came last for good, or what a held picture shows, from the ring that records the stream.
    Keep,
    GeneratorPause,
    GeneratorRate(Step),
    Help,
    Theme,
    /// Closes what is open.
    Back,
    Quit,
}

/// A part of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScreenBox {
    /// 0.0 left edge, 1.0 right edge, in any order.
    pub(crate) times: Option<[f64; 2]>,
    /// Of a lane: 0.0 lower edge, 1.0 upper edge, in any order.
    pub(crate) values: Option<(LaneId, [f64; 2])>,
}

/// A part of the traces, or of the waterfall.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct AnnotatedPart {
    /// 0.0 left edge, 1.0 right edge of the traces; of a waterfall, 0.0 its last row, 1.0 its first. In any order.
    pub(crate) times: [f64; 2],
    /// Of the frequencies on the screen: 0.0 left edge, 1.0 right edge, in any order. `None`: it is of the traces.
    pub(crate) frequencies: Option<[f64; 2]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    Down,
    Up,
}

/// Where a marker goes: of the selected channel's peaks in the shown part of the spectrum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToPeak {
    Highest,
    /// The next at lower frequencies.
    Left,
    /// The next at higher ones.
    Right,
}

impl ToPeak {
    pub(crate) const ALL: [(ToPeak, &str); 3] = [
        (ToPeak::Highest, "to the highest peak"),
        (ToPeak::Left, "to the next peak left"),
        (ToPeak::Right, "to the next peak right"),
    ];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SaveWhat {
    Picture,
    /// The visible samples, as CSV.
    Samples,
    /// The measurement table with its statistics, as CSV.
    Measurements,
    Recording,
    /// What came last, from the ring that records the stream.
    Last,
    /// What is on the screen, from there.
    Screen,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Question {
    /// The width of pulses, or the time of a dropout.
    TriggerTime,
    /// Symbols a second, of which each is a point.
    SymbolRate,
    File,
    /// What is searched in all of the history.
    Find,
    /// The words of a new annotation, of the chosen one; which are listed.
    Annotation,
    AnnotationWords,
    AnnotationFilter,
    /// What the receiver is to be tuned to.
    Tuning(Tunable),
}
