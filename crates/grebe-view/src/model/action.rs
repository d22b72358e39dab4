//! Actions of a person: the same in every front end.

use serde::{Deserialize, Serialize};

use crate::data::lane::{LaneId, Part};
use crate::data::math::MathOperation;
use crate::data::trigger::TriggerMode;
use crate::model::receiver::Tunable;
use crate::model::setting::Setting;

/// One action.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    Pause,
    Shorter,
    Longer,
    /// Half a screen back in time; holds the picture.
    Earlier,
    Later,
    /// Shows the whole recording, or the whole history.
    FitAll,
    /// Sets time base, scales and trigger from the newest samples.
    Autoset,
    Zoom(ScreenBox),
    /// Shows the range between the cursors.
    ZoomToCursors,
    /// Shows a sample index in the middle; holds the picture.
    ShowAt(f64),
    /// Toggles the overview strip.
    Overview,
    /// Returns to the newest samples, and follows them.
    Live,
    Channel(usize),
    /// One of the eight channels that the digits switch.
    GroupChannel(usize),
    /// The next eight channels alone; after the last group, all of them.
    NextGroup,
    /// Toggles a part of complex channels.
    Part(Part),
    /// Selects the next lane for keys that work on one.
    NextChannel,
    Select(LaneId),
    Vertical(Step),
    /// Moves the trace of the selected channel up, in divisions.
    Position(f64),
    /// Lets the vertical range of the selected channel follow its signal again.
    VerticalAuto,
    Invert,
    Coupling,
    /// Toggles between one lane for all channels and one for each.
    Overlay,
    Math(Option<MathOperation>),
    /// Toggles the line between samples: straight, or sin(x)/x.
    Interpolation,
    /// Takes the next value of a setting with more than two; shows its list for a while.
    Next(Setting),
    /// Opens the list of a setting's values.
    Choices(Setting),
    /// Moves down in the open list.
    Mark(i32),
    /// Takes the marked line of the open list.
    Take,
    /// Takes a line of the open list.
    Choose(usize),
    /// Opens a prompt for an answer in letters or digits.
    Ask(Question),
    Persistence,
    Channels,
    Trigger(TriggerMode),
    Slope,
    /// Moves the trigger level up, in fortieths of the lane.
    Level(f64),
    /// Lets the trigger level follow the middle of the signal.
    LevelAuto,
    TriggerCoupling,
    /// Toggles the wider hysteresis.
    NoiseReject,
    Corner(Step),
    Holdoff(Step),
    Segments,
    /// Shows a trigger before (negative) or after the visible one; holds the picture.
    Segment(i32),
    /// Pins the visible trigger to the list, or unpins it.
    Pin,
    Cursors,
    /// Switches the keys to the other time cursor.
    OtherCursor,
    /// Moves a time cursor, in hundredths of the screen.
    MoveCursor(f64),
    /// Toggles the value cursors of the selected channel.
    ValueCursors,
    /// Switches the keys to the other value cursor.
    OtherValueCursor,
    /// Moves a value cursor, in hundredths of the lane.
    MoveValueCursor(f64),
    Measure,
    /// Toggles the statistics of the selected channel's measurements.
    Statistics,
    Spectrum,
    /// Toggles the waterfall of the selected channel.
    Waterfall,
    /// Toggles the X-Y plot.
    Xy,
    TransformSize(Step),
    /// Toggles peak hold of the spectrum.
    PeakHold,
    /// Toggles the waterfall's levels: from the noise floor, or fixed.
    LevelsAuto,
    /// Toggles the waterfall's cells: highest level, or mean power.
    Detector,
    /// Opens or closes the search form.
    Find,
    /// Toggles both markers of the spectrum.
    Markers,
    /// Zooms the frequency axis around its middle.
    ZoomFrequencies(Step),
    /// Moves the frequency axis by a part of the visible range.
    PanFrequencies(f64),
    /// Moves marker A (0) or B (1).
    MoveMarker(usize, ToPeak),
    /// Toggles the marks at the fundamental of the selected channel's spectrum and its harmonics.
    Harmonics,
    /// Annotates the range between the cursors.
    Annotate,
    /// Annotates a part of the screen.
    AnnotatePart(AnnotatedPart),
    /// Draws a box on the waterfall, to be measured.
    DrawBox(AnnotatedPart),
    Box(BoxDeed),
    /// Opens a prompt for the text of the selected annotation.
    EditAnnotation,
    /// Moves the selected annotation to the range between the cursors.
    MoveAnnotation,
    DeleteAnnotation,
    /// Undoes the last change of annotations.
    UndoAnnotation,
    /// Toggles the table of annotations.
    Annotations,
    Save(SaveWhat),
    /// Saves the newest part of the ring that records the stream, or the visible range of a held picture.
    Keep,
    GeneratorPause,
    GeneratorRate(Step),
    Help,
    Theme,
    /// Closes the open list, prompt or panel.
    Back,
    Quit,
}

/// A part of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScreenBox {
    /// 0.0 left edge, 1.0 right edge, in any order.
    pub(crate) times: Option<[f64; 2]>,
    /// The lane, and the heights on it: 0.0 lower edge, 1.0 upper edge, in any order.
    pub(crate) values: Option<(LaneId, [f64; 2])>,
}

/// A part of the traces, or of the waterfall.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct AnnotatedPart {
    /// 0.0 left edge, 1.0 right edge of the traces; of a waterfall, 0.0 its last row, 1.0 its first. In any order.
    pub(crate) times: [f64; 2],
    /// Of the visible frequencies: 0.0 left edge, 1.0 right edge, in any order. `None`: a part of the traces.
    pub(crate) frequencies: Option<[f64; 2]>,
}

/// An action on the box of the waterfall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BoxDeed {
    /// Puts it between the time cursors, and the markers of the spectrum or its visible edges.
    BetweenMarks,
    /// Moves it to the burst under it.
    Snap,
    Annotate,
    /// Saves it as a recording.
    Cut,
    /// Plays its sound, or ends that.
    Listen,
    /// Plays the sound of its band from now on, or ends that.
    ListenLive,
    /// Searches the history for bursts in its band that last about as long.
    FindLike,
    Remove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    Down,
    Up,
}

/// Target of a marker, among the selected channel's peaks in the visible part of the spectrum.
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
    /// The box on the waterfall, as a recording.
    Box,
    /// The newest part of the ring that records the stream.
    Last,
    /// The visible range, from that ring.
    Screen,
}

/// The subject of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Question {
    /// The width of pulses, or the time of a dropout.
    TriggerTime,
    /// Symbols per second; each symbol is a point.
    SymbolRate,
    File,
    /// A search of the whole history.
    Find,
    /// The text of a new annotation, the text of the selected one, and the filter of the list.
    Annotation,
    AnnotationWords,
    AnnotationFilter,
    /// A frequency, rate or gain of the receiver.
    Tuning(Tunable),
}
