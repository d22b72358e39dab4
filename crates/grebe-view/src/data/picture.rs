//! What a front end draws: one consistent moment of the stream.

use std::sync::Arc;

use grebe_frame::{Description, SampleFormat, StreamAnnotation, TrackerCounts};
use grebe_scope::{Column, ColumnGrid, SampleLine, Scale};

use serde::{Deserialize, Serialize};

use crate::data::annotations::AnnotationList;
use crate::data::axis::AxisPoint;
use crate::data::lane::{LaneId, LaneMask};
use crate::data::measure::LaneMeasurements;
use crate::data::overview::OverviewView;
use crate::data::persistence::PersistenceView;
use crate::data::signal::SignalMeasurements;
use crate::data::spectrum::SpectrumView;
use crate::data::told::ChangeMark;
use crate::data::trigger::TriggerView;
use crate::data::viewport::Viewport;
use crate::data::xy::XyView;

/// One answer to a [`Viewport`](crate::data::viewport::Viewport).
#[derive(Debug, Clone, Default)]
pub struct Picture {
    /// What the stream is; `None` while nothing has arrived.
    pub stream: Option<StreamInfo>,
    /// What the stream says of itself, for the newest sample.
    pub description: Option<Arc<Description>>,
    /// Of each clock of a host by which times of the stream are known, the sample nearest to the right edge whose time was told.
    pub axis_points: Vec<AxisPoint>,
    /// Places in the picture where the stream became another, oldest first; at most the newest 256.
    pub changes: Vec<ChangeMark>,
    /// Stretches in the picture that somebody labelled; at most the newest 256.
    pub annotations: Vec<Arc<StreamAnnotation>>,
    /// Those of all of the stream, where a list of them was asked for.
    pub(crate) listed: Option<Arc<AnnotationList>>,
    /// What was asked for.
    pub(crate) answers: Option<Viewport>,
    /// Whether the stream's end has arrived, or its source is gone.
    pub is_ended: bool,
    /// Ties columns to samples.
    pub grid: ColumnGrid,
    /// Number of the first column on `grid`; columns below 0 lie before the stream and are [`Column::OUTSIDE`].
    pub first_column: i64,
    /// Absolute sample index of the left edge; negative where the window reaches before the stream.
    pub left_index: f64,
    /// Samples from the left edge to the right edge.
    pub span_samples: f64,
    /// The lanes that were asked for and exist, in order; the math lane is the last.
    pub lanes: Vec<LaneColumns>,
    /// What the math lane's numbers stand for, if there is one.
    pub(crate) math: Option<Scale>,
    /// First sample index that any history still covers.
    pub oldest_index: u64,
    /// The index after the newest sample.
    pub next_index: u64,
    /// What arrived and what is missing, as counted here.
    pub counts: TrackerCounts,
    /// How much arrives.
    pub flow: Flow,
    /// When the newest frame was produced, on its producer's clock.
    pub newest_ts_ns: u64,
    /// Absolute index of that frame's first sample, which the time is of.
    pub newest_first_index: u64,
    /// When the newest batch arrived, on this machine's monotonic clock; 0 before the first.
    pub newest_arrival_ns: u64,
    /// Smallest difference of the two clocks over the last half minute: where the clocks are not the same, latency is
    /// measured from there.
    pub transit_min_ns: i64,
    /// This machine's monotonic clock less that of the machine where the samples arrived; 0 where that is this one.
    pub(crate) clock_ahead_ns: i64,
    /// The trigger's state; `None` where none was asked for.
    pub trigger: Option<TriggerView>,
    /// The gaps in the picture, oldest first; at most the newest 256.
    pub gaps: Vec<GapMark>,
    /// Streams seen: grows when the sender restarts, or changes its channels or its rate.
    pub streams: u64,
    /// Absolute sample indices of the last triggers, shown or not, or of a held picture those around it; the newest last, at most 64.
    pub triggers: Vec<f64>,
    /// The densities of all triggers, where they were asked for and there is a trigger.
    pub(crate) persistence: Option<Arc<PersistenceView>>,
    /// What was asked for and is not shown, and why, in words.
    pub(crate) refused: Option<String>,
    /// Measurements of the lanes, where they were asked for.
    pub measured: Vec<LaneMeasurements>,
    /// Measurements made so far: tells a new one from a repeated one.
    pub(crate) measured_count: u64,
    /// Measurements of the signals, where both they and spectra were asked for.
    pub signals: Vec<SignalMeasurements>,
    /// Spectra, where they were asked for and there are samples for one.
    pub spectrum: Option<Arc<SpectrumView>>,
    /// One lane over another, where it was asked for.
    pub(crate) xy: Option<Arc<XyView>>,
    /// All of the history, where it was asked for.
    pub(crate) overview: Option<Arc<OverviewView>>,
    /// Bytes reserved for history.
    pub memory_bytes: usize,
    /// Whether columns are guessed from some of their samples: those of a recording that was not read yet.
    pub is_estimated: bool,
    /// Of a recording that is still being copied: which part of the samples has come, 0 to 1, in equal parts of the picture from left to
    /// right.
    pub arrived: Option<Arc<[f32]>>,
}

/// The columns of one lane.
#[derive(Debug, Clone)]
pub struct LaneColumns {
    /// What the lane shows.
    pub lane: LaneId,
    /// Left to right, in raw counts.
    pub columns: Vec<Column<f32>>,
    /// Where samples lie wider apart than columns: the line between them, not rounded to counts.
    pub line: Option<SampleLine<f32>>,
    /// The samples that the line goes through, beyond the columns too: stretches without a gap, each with its first index.
    pub(crate) line_runs: Vec<(u64, Vec<f32>)>,
    /// Whether the signal is cut off at an end of the range of its samples: two neighbours or more that are shown stand there.
    pub is_clipped: bool,
    /// Mean of the visible samples, in raw counts.
    pub mean: f64,
    /// The samples next to the two cursors, where they are held singly.
    pub(crate) at_cursors: [Option<f64>; 2],
}

/// What the frames say of their stream.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StreamInfo {
    /// Channels.
    pub channels: usize,
    /// What their samples are.
    pub format: SampleFormat,
    /// Samples per second and channel; 0 = unknown.
    pub rate_hz: f64,
    /// Samples per channel in the newest frame.
    pub block_samples: u32,
    /// Samples the generator has dropped since the stream began, as its frames say.
    pub generator_drops: u64,
}

/// Samples that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapMark {
    /// Counts the gaps of a stream from 0.
    pub number: u64,
    /// Absolute index of the first sample that is missing.
    pub start: u64,
    /// Absolute index of the first sample after the gap.
    pub end: u64,
    /// Of them, samples per channel that the generator never made.
    pub generator_samples: u64,
    /// Frames that were sent and did not arrive.
    pub lost_frames: u64,
}

/// How much arrives, over the last second.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Flow {
    /// Frames per second.
    pub frames_per_s: f64,
    /// Samples per second, all channels together.
    pub samples_per_s: f64,
    /// Bytes per second, headers included.
    pub bytes_per_s: f64,
}

/// The age of the newest sample on the screen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Latency {
    /// Seconds from the newest frame's production to now.
    pub(crate) seconds: f64,
    /// Whether this is only the excess over the smallest latency seen, because the producer's clock is another machine's.
    pub(crate) is_relative: bool,
}

impl Picture {
    pub(crate) fn waiting() -> Picture {
        Picture { span_samples: 1.0, ..Picture::default() }
    }

    /// Samples per second where known, else 1: converts a span to samples.
    pub fn rate_or_one(&self) -> f64 {
        self.stream.map_or(1.0, |stream| stream.rate_or_one())
    }

    /// The unit of the time axis: `s`, or `S` (samples) where the stream does not know its rate.
    pub fn axis_unit(&self) -> &'static str {
        if self.stream.is_some_and(|stream| stream.rate_hz > 0.0) { "s" } else { "S" }
    }

    /// The span in [`axis_unit`](Picture::axis_unit)s.
    pub fn span(&self) -> f64 {
        self.span_samples / self.rate_or_one()
    }

    pub(crate) fn right_index(&self) -> f64 {
        self.left_index + self.span_samples
    }

    /// The age of the newest frame at `now_ns`; `None` before the first.
    pub(crate) fn latency(&self, now_ns: u64, is_same_boot: bool) -> Option<Latency> {
        if self.newest_arrival_ns == 0 {
            return None;
        }
        let base_ns = if is_same_boot { 0 } else { self.transit_min_ns };
        let there_ns = (now_ns as i64).wrapping_sub(self.clock_ahead_ns);
        let age_ns = there_ns.wrapping_sub(self.newest_ts_ns as i64).wrapping_sub(base_ns);
        Some(Latency { seconds: age_ns.max(0) as f64 * 1e-9, is_relative: !is_same_boot })
    }
}

impl StreamInfo {
    /// The lanes of a mask that the stream has.
    pub(crate) fn lanes(&self, shown: LaneMask) -> impl Iterator<Item = LaneId> + use<> {
        shown.lanes(self.channels, self.format.is_complex())
    }

    /// The lane of a channel's samples, or of I.
    pub(crate) fn first_lane(&self, channel: usize) -> LaneId {
        LaneId::first_of(channel, self.format.is_complex())
    }

    pub(crate) fn rate_or_one(&self) -> f64 {
        if self.rate_hz > 0.0 { self.rate_hz } else { 1.0 }
    }
}
