//! What a person can do with the scope: the same in every front end.

use crate::data::math::MathOperation;
use crate::data::trigger::TriggerMode;

/// One thing that a person can do.
#[derive(Debug, Clone, Copy, PartialEq)]
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
    /// Selects the next channel for the keys that work on one.
    NextChannel,
    Select(usize),
    Vertical(Step),
    /// Moves the trace of the selected channel up, in divisions.
    Position(f64),
    /// The vertical range of the selected channel follows its signal again.
    VerticalAuto,
    Invert,
    Coupling,
    /// One lane for all channels, or one for each.
    Overlay,
    /// The next operation of the math channel; none after the last.
    NextMath,
    Math(Option<MathOperation>),
    /// The next channel for the first (0) or the second (1) input of the math channel.
    MathInput(usize),
    /// The line between samples: straight, or sin(x)/x.
    Interpolation,
    Persistence,
    Channels,
    Trigger(TriggerMode),
    NextTrigger,
    TriggerKind,
    Slope,
    Source,
    /// Moves the trigger level up, in fortieths of the lane.
    Level(f64),
    /// The trigger level follows the middle of the signal.
    LevelAuto,
    TriggerCoupling,
    Corner(Step),
    Holdoff(Step),
    /// The trigger stands at the next of three places on the screen: a tenth, the middle, nine tenths.
    TriggerPlace,
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
    TransformSize(Step),
    Weighting,
    Averages,
    /// Keeps the highest levels of the spectrum, or no longer.
    PeakHold,
    /// Marks the fundamental of the selected channel's spectrum and its harmonics, or no longer.
    Harmonics,
    Save(SaveWhat),
    GeneratorPause,
    GeneratorRate(Step),
    GeneratorWave,
    Help,
    Theme,
    /// Closes the overlay of keys.
    Back,
    Quit,
}

/// A part of the screen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ScreenBox {
    /// 0.0 left edge, 1.0 right edge, in any order.
    pub(crate) times: Option<[f64; 2]>,
    /// Of the lane of a channel: 0.0 lower edge, 1.0 upper edge, in any order.
    pub(crate) values: Option<(usize, [f64; 2])>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Down,
    Up,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SaveWhat {
    Picture,
    /// The visible samples, as CSV.
    Samples,
    /// The measurement table with its statistics, as CSV.
    Measurements,
    Recording,
}
