//! A picture for a front end: one consistent moment of the stream.

use std::sync::Arc;

use grebe_frame::{Description, SampleFormat, StreamAnnotation, TrackerCounts};
use grebe_scope::{Column, ColumnGrid, SampleLine, Scale};

use serde::{Deserialize, Serialize};

use crate::data::annotations::AnnotationList;
use crate::data::axis::AxisPoint;
use crate::data::descriptions::ChangeMark;
use crate::data::lane::{LaneId, LaneMask};
use crate::data::measure::LaneMeasurements;
use crate::data::overview::OverviewView;
use crate::data::persistence::PersistenceView;
use crate::data::region::RegionMeasurements;
use crate::data::signal::SignalMeasurements;
use crate::data::spectrum::SpectrumView;
use crate::data::trigger::TriggerView;
use crate::data::viewport::Viewport;
use crate::data::xy::XyView;

/// One answer to a [`Viewport`](crate::data::viewport::Viewport).
#[derive(Debug, Clone, Default)]
pub struct Picture {
    /// The stream's format and rate; `None` before the first frame.
    pub stream: Option<StreamInfo>,
    /// The stream's description, valid for the newest sample.
    pub description: Option<Arc<Description>>,
    /// Samples with known times: for each clock, the one nearest to the right edge.
    pub axis_points: Vec<AxisPoint>,
    /// Places in the picture where the description changed, oldest first; at most the newest 256.
    pub changes: Vec<ChangeMark>,
    /// Annotations in the picture; at most the newest 256.
    pub annotations: Vec<Arc<StreamAnnotation>>,
    /// Annotations of the whole stream, if the viewport asks for a list.
    pub(crate) listed: Option<Arc<AnnotationList>>,
    /// The viewport that this picture answers.
    pub(crate) answers: Option<Viewport>,
    /// Whether the stream's end has arrived, or its source is gone.
    pub is_ended: bool,
    /// Relates columns to samples.
    pub grid: ColumnGrid,
    /// Number of the first column on `grid`; columns below 0 lie before the stream and are [`Column::OUTSIDE`].
    pub first_column: i64,
    /// Absolute sample index of the left edge; negative where the window reaches before the stream.
    pub left_index: f64,
    /// Samples from the left edge to the right edge.
    pub span_samples: f64,
    /// The requested lanes that exist, in order; the math lane is the last.
    pub lanes: Vec<LaneColumns>,
    /// Scale of the math lane, if there is one.
    pub(crate) math: Option<Scale>,
    /// First sample index that the history still covers.
    pub oldest_index: u64,
    /// The index after the newest sample.
    pub next_index: u64,
    /// Samples received and lost, as counted here.
    pub counts: TrackerCounts,
    /// Data rates.
    pub flow: Flow,
    /// When the newest frame was produced, on its producer's clock.
    pub newest_ts_ns: u64,
    /// Absolute index of that frame's first sample, at that time.
    pub newest_first_index: u64,
    /// When the newest batch arrived, on this machine's monotonic clock; 0 before the first.
    pub newest_arrival_ns: u64,
    /// Smallest difference between the two clocks over the last half minute. Between different clocks, latency counts
    /// from there.
    pub transit_min_ns: i64,
    /// This host's monotonic clock minus that of the receiving host; 0 if they are the same host.
    pub(crate) clock_ahead_ns: i64,
    /// The trigger's state; `None` without a trigger.
    pub trigger: Option<TriggerView>,
    /// The gaps in the picture, oldest first; at most the newest 256.
    pub gaps: Vec<GapMark>,
    /// Number of streams so far: grows when the sender restarts, or changes its channels or its rate.
    pub streams: u64,
    /// Absolute sample indices of recent triggers, or, for a held picture, of those around it; the newest last, at most 64.
    pub triggers: Vec<f64>,
    /// Densities of all triggers, if the viewport asks for them and there is a trigger.
    pub(crate) persistence: Option<Arc<PersistenceView>>,
    /// Why a requested item is missing.
    pub(crate) refused: Option<String>,
    /// Measurements of the lanes, if the viewport asks for them.
    pub measured: Vec<LaneMeasurements>,
    /// Number of measurements so far, to detect a new one.
    pub(crate) measured_count: u64,
    /// Measurements of the signals, if the viewport asks for measurements and spectra.
    pub signals: Vec<SignalMeasurements>,
    /// Measurements of the viewport's box, as far as its samples are there.
    pub region: Option<RegionMeasurements>,
    /// Spectra, if the viewport asks for them and there are enough samples.
    pub spectrum: Option<Arc<SpectrumView>>,
    /// One lane over another, if the viewport asks for it.
    pub(crate) xy: Option<Arc<XyView>>,
    /// Columns of the whole history, if the viewport asks for them.
    pub(crate) overview: Option<Arc<OverviewView>>,
    /// Bytes reserved for history.
    pub memory_bytes: usize,
    /// Whether columns are estimates from some of their samples, because the recording was not read completely yet.
    pub is_estimated: bool,
    /// For a recording that is still being copied: the part of the samples that has arrived, 0 to 1, for equal parts
    /// of the picture from left to right.
    pub arrived: Option<Arc<[f32]>>,
}

/// The columns of one lane.
#[derive(Debug, Clone)]
pub struct LaneColumns {
    /// The lane.
    pub lane: LaneId,
    /// Left to right, in raw counts.
    pub columns: Vec<Column<f32>>,
    /// If samples are farther apart than columns: the line between them, not rounded to counts.
    pub line: Option<SampleLine<f32>>,
    /// The samples on the line, also beyond the columns: runs without a gap, each with its first index.
    pub(crate) line_runs: Vec<(u64, Vec<f32>)>,
    /// Whether the signal is clipped: at least two neighbouring visible samples stand at an end of the samples' range.
    pub is_clipped: bool,
    /// Mean of the visible samples, in raw counts.
    pub mean: f64,
    /// The samples nearest to the two cursors, if the history holds them.
    pub(crate) at_cursors: [Option<f64>; 2],
}

/// Properties of the stream that the frames state.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StreamInfo {
    /// Channels.
    pub channels: usize,
    /// Sample format.
    pub format: SampleFormat,
    /// Samples per second and channel; 0 = unknown.
    pub rate_hz: f64,
    /// Samples per channel in the newest frame.
    pub block_samples: u32,
    /// Samples that the generator has dropped since the start of the stream, according to its frames.
    pub generator_drops: u64,
}

/// Missing samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapMark {
    /// Number of the gap in its stream, from 0.
    pub number: u64,
    /// Absolute index of the first missing sample.
    pub start: u64,
    /// Absolute index of the first sample after the gap.
    pub end: u64,
    /// Number of these samples that the generator never made.
    pub generator_samples: u64,
    /// Frames that were sent but did not arrive.
    pub lost_frames: u64,
}

/// Data rates over the last second.
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
    /// Whether this is only the excess over the smallest latency so far, because the producer uses another clock.
    pub(crate) is_relative: bool,
}

impl Picture {
    pub(crate) fn waiting() -> Picture {
        Picture { span_samples: 1.0, ..Picture::default() }
    }

    /// Samples per second if known, else 1. Converts a span to samples.
    pub fn rate_or_one(&self) -> f64 {
        self.stream.map_or(1.0, |stream| stream.rate_or_one())
    }

    /// The unit of the time axis: `s`, or `S` (samples) if the rate is unknown.
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
    /// The stream's lanes that a mask selects.
    pub(crate) fn lanes(&self, shown: LaneMask) -> impl Iterator<Item = LaneId> + use<> {
        shown.lanes(self.channels, self.format.is_complex())
    }

    /// The first lane of a channel: its samples, or I.
    pub(crate) fn first_lane(&self, channel: usize) -> LaneId {
        LaneId::first_of(channel, self.format.is_complex())
    }

    pub(crate) fn rate_or_one(&self) -> f64 {
        if self.rate_hz > 0.0 { self.rate_hz } else { 1.0 }
    }
}
