//! What a person can do with the scope: the same in every front end.

use crate::data::math::MathOperation;
use crate::data::trigger::TriggerMode;

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
