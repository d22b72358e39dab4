//! The request of a front end for a picture.

use std::ops::Range;
use std::sync::Arc;

use grebe_scope::{
    Band, Interpolation, Scale, Window as Weighting, step_125_down, step_125_up, step_time_down, step_time_up,
};
use serde::{Deserialize, Serialize};

use crate::data::annotations::AnnotationQuery;
use crate::data::lane::{LaneId, LaneMask, PerLane};
use crate::data::math::MathSettings;
use crate::data::trigger::TriggerSettings;

/// The part of the stream to show, its width, and the computations on it.
///
/// Start from [`Viewport::latest`], and set other values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Viewport {
    /// The range of the stream.
    #[serde(rename = "ending", skip_serializing_if = "Window::is_latest")]
    pub window: Window,
    /// Its length: seconds, or samples if the rate is unknown. `None` leaves the choice to the scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<f64>,
    /// Columns of the picture, 1 to 16384: usually one per pixel.
    pub columns: usize,
    /// Lanes of the picture.
    #[serde(flatten)]
    pub lanes: LaneMask,
    /// Interpolation between samples that are farther apart than columns.
    #[serde(rename = "sinc", with = "sinc")]
    pub interpolation: Interpolation,
    /// The trigger; `None` lets the picture roll.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<TriggerSettings>,
    #[serde(with = "shared", skip_serializing_if = "Option::is_none")]
    pub(crate) measure: Option<Scales>,
    /// Reference lane for delay and phase; `None`: the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) against: Option<LaneId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) math: Option<MathSettings>,
    /// Two times whose samples are requested, in units of the axis, and the sample index from which they count.
    /// `None`: from the trigger, or the right edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cursors: Option<CursorTimes>,
    /// Whether to analyse all held samples again, for a picture to be saved.
    pub(crate) is_exact: bool,
    /// Spectra of the newest samples before the right edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spectrum: Option<SpectrumSettings>,
    #[serde(with = "shared", skip_serializing_if = "Option::is_none")]
    pub(crate) persistence: Option<Ranges>,
    /// One lane over another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) xy: Option<XySettings>,
    /// Number of columns for the whole history, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) overview: Option<usize>,
    /// The list of annotations of the whole stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) annotations: Option<AnnotationQuery>,
    /// A box to measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<Region>,
}

/// The range of the stream that a [`Viewport`] shows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "Option<f64>", into = "Option<f64>")]
pub enum Window {
    /// The newest samples, at the right edge.
    Latest,
    /// The range that ends at this absolute sample index, even when newer samples arrive.
    Ending {
        /// Samples per channel since the stream began.
        at: f64,
    },
}

/// Spectra to compute.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpectrumSettings {
    /// Samples per transform, a power of two from 16 to 2^18; fewer while the stream has fewer.
    pub size: usize,
    /// Weighting of the samples.
    pub window: Weighting,
    /// Number of spectra whose power is averaged; 1 for none.
    pub averages: u32,
    /// Whether to hold the highest level of each line.
    pub is_peak_held: bool,
    /// The channel of the waterfall.
    pub(crate) waterfall: Option<usize>,
    /// Level of its cells.
    pub detector: Detector,
    /// The band of the signal measurements, as parts of the rate; `None`: all of it.
    pub band: Option<(f64, f64)>,
}

/// Level of a cell of the waterfall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detector {
    /// The highest of all its spectra and lines: no burst is missed.
    #[default]
    Highest,
    /// The mean of their power: weak steady signals stand out of the noise.
    Mean,
}

/// A box of time and frequency in one channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Region {
    /// The channel, from 0.
    pub channel: usize,
    /// Absolute sample indices, end exclusive.
    pub samples: Range<u64>,
    /// Its frequencies, as parts of the rate.
    pub band: Band,
}

/// Scales of the lanes to be measured.
pub(crate) type Scales = Arc<PerLane<Scale>>;

/// Lowest and highest raw count of the densities, for lanes that have a range.
pub(crate) type Ranges = Arc<PerLane<CountRange>>;

/// A range of raw counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct CountRange {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Times of the cursors in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct CursorTimes {
    pub(crate) times: [f64; 2],
    /// The sample from which they count; `None`: the trigger, or the right edge.
    #[serde(default)]
    pub(crate) from: Option<f64>,
}

/// Lanes and layout of an X-Y plot.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct XySettings {
    pub(crate) x: LaneId,
    pub(crate) y: LaneId,
    /// Lowest and highest raw count of the horizontal and the vertical axis.
    pub(crate) x_range: (f64, f64),
    pub(crate) y_range: (f64, f64),
    /// Cells in the horizontal and the vertical direction.
    pub(crate) size: (usize, usize),
    /// Samples between points, such as the length of a symbol; `None`: each sample is a point.
    #[serde(default)]
    pub(crate) every: Option<f64>,
}

impl Detector {
    /// Both.
    pub const ALL: [Detector; 2] = [Detector::Highest, Detector::Mean];

    /// As settings, options and texts name it.
    pub const fn name(self) -> &'static str {
        match self {
            Detector::Highest => "highest",
            Detector::Mean => "mean",
        }
    }

    pub(crate) fn other(self) -> Detector {
        match self {
            Detector::Highest => Detector::Mean,
            Detector::Mean => Detector::Highest,
        }
    }
}

impl Window {
    fn is_latest(&self) -> bool {
        *self == Window::Latest
    }
}

impl From<Option<f64>> for Window {
    fn from(ending: Option<f64>) -> Window {
        ending.map_or(Window::Latest, |at| Window::Ending { at })
    }
}

impl From<Window> for Option<f64> {
    fn from(window: Window) -> Option<f64> {
        match window {
            Window::Latest => None,
            Window::Ending { at } => Some(at),
        }
    }
}

impl Default for Viewport {
    fn default() -> Viewport {
        Viewport::latest(1000)
    }
}

impl Default for SpectrumSettings {
    fn default() -> SpectrumSettings {
        SpectrumSettings {
            size: 8192,
            window: Weighting::Hann,
            averages: 1,
            is_peak_held: false,
            waterfall: None,
            detector: Detector::default(),
            band: None,
        }
    }
}

impl Viewport {
    /// The newest samples of all channels (I and Q of complex ones), over a span that the scope chooses.
    pub fn latest(columns: usize) -> Viewport {
        Viewport {
            window: Window::Latest,
            span: None,
            columns,
            lanes: LaneMask::ALL,
            interpolation: Interpolation::default(),
            trigger: None,
            measure: None,
            against: None,
            math: None,
            cursors: None,
            is_exact: false,
            spectrum: None,
            persistence: None,
            xy: None,
            overview: None,
            annotations: None,
            region: None,
        }
    }

    pub(crate) fn columns_in_range(&self) -> usize {
        self.columns.clamp(1, COLUMNS_MAX)
    }
}

/// Maximum columns of each of `lanes` lanes, beside the math lane; an overview has one more at its end.
pub(crate) fn columns_max(lanes: usize) -> usize {
    (ALL_COLUMNS_MAX / (lanes + 1)).saturating_sub(1).max(1)
}

/// The next shorter span, at least 10 samples of `rate_hz`.
pub(crate) fn shorter_span(span: f64, rate_hz: f64) -> f64 {
    let least = 10.0 / if rate_hz > 0.0 { rate_hz } else { 1.0 };
    let shorter = span * 0.9;
    // Divisions of a minute and more use steps of a clock.
    let is_long = rate_hz > 0.0 && shorter >= LONG_SPAN_S;
    let span = if is_long { DIVISIONS * step_time_down(shorter / DIVISIONS) } else { step_125_down(shorter) };
    span.max(step_125_up(least))
}

/// Rounds the span up to two digits, and to at least ten samples of `rate_hz`.
pub(crate) fn fitted_span(span: f64, rate_hz: f64) -> f64 {
    let least = 10.0 / if rate_hz > 0.0 { rate_hz } else { 1.0 };
    two_digits_up(span.max(least)).min(SPAN_MAX)
}

/// The next number of two digits: a readable division.
pub(crate) fn two_digits_up(value: f64) -> f64 {
    let exponent = value.log10().floor() as i32 - 1;
    let digits = (value / 10f64.powi(exponent) - 1e-6).ceil();
    // Through text, because products of powers of ten get extra digits.
    format!("{digits}e{exponent}").parse().unwrap_or(value)
}

/// The next longer span of a stream of `rate_hz`.
pub(crate) fn longer_span(span: f64, rate_hz: f64) -> f64 {
    let longer = span * 1.1;
    let is_long = rate_hz > 0.0 && longer > LONGEST_PLAIN_SPAN_S;
    let span = if is_long { DIVISIONS * step_time_up(longer / DIVISIONS) } else { step_125_up(longer) };
    span.min(SPAN_MAX)
}

/// The initial span: about 200,000 samples, at most ten seconds.
pub(crate) fn default_span(rate_hz: f64) -> f64 {
    if rate_hz > 0.0 { step_125_up(2e5 / rate_hz).min(10.0) } else { 1e4 }
}

/// Divisions of the time axis.
pub(crate) const DIVISIONS: f64 = 10.0;
const COLUMNS_MAX: usize = 16_384;
/// Limit for all lanes of a picture together: it bounds the memory of a viewer.
pub(crate) const ALL_COLUMNS_MAX: usize = 1 << 21;
/// The span at which a division is a minute.
const LONG_SPAN_S: f64 = 600.0;
const LONGEST_PLAIN_SPAN_S: f64 = 500.0;
/// In seconds, or in samples without a rate: a recording can be this long.
const SPAN_MAX: f64 = 1e13;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_spans_have_divisions_of_a_clock() {
        let spans =
            [100.0, 200.0, 500.0, 600.0, 1_200.0, 3_000.0, 6_000.0, 12_000.0, 18_000.0, 36_000.0, 72_000.0];
        for pair in spans.windows(2) {
            assert_eq!(longer_span(pair[0], 1e3), pair[1]);
            assert_eq!(shorter_span(pair[1], 1e3), pair[0]);
        }
        assert_eq!((longer_span(3_600.0, 1e3), shorter_span(3_600.0, 1e3)), (6_000.0, 3_000.0));
        // Without a rate, the unit is samples.
        assert_eq!((longer_span(500.0, 0.0), shorter_span(2_000.0, 0.0)), (1_000.0, 1_000.0));
    }

    #[test]
    fn spans_step_by_1_2_5_within_their_limits() {
        assert_eq!(longer_span(1e-3, 1e6), 2e-3);
        assert_eq!(longer_span(2e-3, 1e6), 5e-3);
        assert_eq!(shorter_span(1e-3, 25e6), 5e-4);
        assert_eq!(shorter_span(5e-7, 25e6), 5e-7, "ten samples at 25 MS/s are 400 ns");
        assert_eq!((longer_span(1e6, 0.0), longer_span(1e13, 1.0)), (2e6, 1e13));
        assert_eq!(default_span(360.0), 10.0);
        assert_eq!(default_span(25e6), 0.01);
        assert_eq!(default_span(0.0), 1e4);
        assert_eq!((fitted_span(0.0123, 1e6), fitted_span(20.0, 1e3)), (0.013, 20.0));
        assert_eq!((fitted_span(1e-9, 1e6), two_digits_up(0.24), two_digits_up(991.0)), (1e-5, 0.24, 1000.0));
    }
}

/// Serializes an [`Interpolation`] as a boolean: whether it is sin(x)/x.
mod sinc {
    use grebe_scope::Interpolation;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(it: &Interpolation, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bool(*it == Interpolation::Sinc)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Interpolation, D::Error> {
        Ok(if bool::deserialize(from)? { Interpolation::Sinc } else { Interpolation::Linear })
    }
}

/// Serializes an `Arc` as its content.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        it: &Option<Arc<T>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        it.as_deref().serialize(to)
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Arc<T>>, D::Error> {
        Ok(Option::deserialize(from)?.map(Arc::new))
    }
}
