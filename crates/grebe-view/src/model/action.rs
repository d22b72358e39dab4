//! What a person can do with the scope: the same in every front end.

use crate::data::math::MathOperation;
use crate::data::trigger::TriggerMode;

/// One thing that a person can do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Action {
    /// Holds the picture, or lets it run.
    Pause,
    /// The next shorter span of time.
    Shorter,
    /// The next longer span of time.
    Longer,
    /// Half a screen back in time; holds the picture.
    Earlier,
    /// Half a screen forward.
    Later,
    /// Back to the newest samples, following them.
    Live,
    /// A channel on or off, from 0.
    Channel(usize),
    /// Selects the next channel for the keys that work on one.
    NextChannel,
    /// Selects a channel, from 0.
    Select(usize),
    /// Fewer or more units per division of the selected channel.
    Vertical(Step),
    /// Moves the trace of the selected channel up, in divisions.
    Position(f64),
    /// The vertical range of the selected channel follows its signal again.
    VerticalAuto,
    /// Inverts the selected channel, or no longer.
    Invert,
    /// AC or DC coupling of the selected channel.
    Coupling,
    /// One lane for all channels, or one for each.
    Overlay,
    /// The next operation of the math channel; none after the last.
    NextMath,
    /// The operation of the math channel, if any.
    Math(Option<MathOperation>),
    /// The next channel for the first (0) or the second (1) input of the math channel.
    MathInput(usize),
    /// Persistence on or off.
    Persistence,
    /// The channel panel on or off.
    Channels,
    /// A trigger mode.
    Trigger(TriggerMode),
    /// The next trigger mode.
    NextTrigger,
    /// The next kind of event that triggers.
    TriggerKind,
    /// The other edge.
    Slope,
    /// The next channel that triggers.
    Source,
    /// Moves the trigger level up, in fortieths of the lane.
    Level(f64),
    /// The trigger level follows the middle of the signal.
    LevelAuto,
    /// DC coupling or LF reject of the trigger.
    TriggerCoupling,
    /// A lower or higher corner of LF reject.
    Corner(Step),
    /// A shorter or longer holdoff.
    Holdoff(Step),
    /// The trigger stands at the next of three places on the screen: a tenth, the middle, nine tenths.
    TriggerPlace,
    /// The list of the last triggers on or off.
    Segments,
    /// Shows a trigger before (negative) or after the one that is shown; holds the picture.
    Segment(i32),
    /// Pins the trigger that is shown to the list, or unpins it.
    Pin,
    /// Time cursors on or off.
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
    /// Keeps the highest levels of the spectrum, or no longer.
    PeakHold,
    /// Saves something to a file.
    Save(SaveWhat),
    /// Pauses the generator, or lets it run.
    GeneratorPause,
    /// A lower or higher rate of the generator.
    GeneratorRate(Step),
    /// The next waveform of the generator.
    GeneratorWave,
    /// The overlay of keys on or off.
    Help,
    /// Dark or light.
    Theme,
    /// Closes the overlay of keys, or ends.
    Back,
    /// Ends.
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
