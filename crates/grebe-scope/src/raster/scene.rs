//! The elements of a picture.

use super::canvas::Rect;
use super::theme::Color;
use crate::column::Column;
use crate::line::SampleLine;
use crate::value::Value;

/// The horizontal axis: the value at the plot's left and right edge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis<'a> {
    /// Value at the left edge.
    pub start: f64,
    /// Value at the right edge.
    pub end: f64,
    /// Unit without prefix, as `"s"`, `"Hz"` or `"S"`.
    pub unit: &'a str,
}

/// One band of the plot with one trace.
#[derive(Debug, Clone)]
pub struct Lane<'a, V: Value = i16> {
    /// Shown in the lane's corner.
    pub name: &'a str,
    /// Colour of the trace; `None` takes the theme's for the lane's place.
    pub color: Option<Color>,
    /// The trace.
    pub trace: Trace<'a, V>,
    /// Value at the lane's lower edge, in `unit`.
    pub bottom: f64,
    /// Value at the lane's upper edge, in `unit`.
    pub top: f64,
    /// `unit`s per raw count, or per 1.0 of `f32`.
    pub scale: f64,
    /// Value of 0 in the columns, in `unit`.
    pub offset: f64,
    /// Unit without prefix, as `"V"`; empty for raw counts.
    pub unit: &'a str,
    /// Dashed horizontal lines with labels, in `unit`: trigger levels, cursors.
    pub levels: &'a [(f64, &'a str)],
}

/// A trace of a lane.
#[derive(Debug, Clone, Copy)]
pub enum Trace<'a, V: Value = i16> {
    /// Columns, left to right over the whole plot; gaps are marked, and values beyond the lane are clipped, even infinity.
    Columns(&'a [Column<V>]),
    /// The same if samples are farther apart than columns: draws the line between them, and the gaps of the columns.
    Line(&'a [Column<V>], &'a SampleLine<V>),
    /// Several traces over each other, the last one in front.
    Layers(&'a [Layer<'a, V>]),
    /// A waterfall: rows of levels 0.0 to 1.0 in the theme's colours for levels, the first row at the top. 0 is
    /// empty, NaN is missing.
    Intensity {
        /// Cells per row.
        width: usize,
        /// All cells, row after row.
        cells: &'a [f32],
    },
}

/// One of several traces of a lane.
#[derive(Debug, Clone, Copy)]
pub struct Layer<'a, V: Value = i16> {
    /// Its colour.
    pub color: Color,
    /// Columns, left to right over the whole plot.
    pub columns: &'a [Column<V>],
    /// The line that replaces the columns, if samples are farther apart than columns.
    pub line: Option<&'a SampleLine<V>>,
    /// The lane's units per raw count of this trace, or per 1.0 of `f32`.
    pub scale: f64,
    /// Value of 0 in its columns, in the lane's unit.
    pub offset: f64,
}

/// A dashed vertical line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cursor<'a> {
    /// Its place on the picture's axis.
    pub at: f64,
    /// Shown at its top; may be empty.
    pub label: &'a str,
}

impl<'a, V: Value> Lane<'a, V> {
    /// A lane in the columns' own values, from `bottom` to `top`.
    pub fn new(name: &'a str, trace: Trace<'a, V>, bottom: f64, top: f64) -> Lane<'a, V> {
        Lane { name, color: None, trace, bottom, top, scale: 1.0, offset: 0.0, unit: "", levels: &[] }
    }
}

impl Axis<'_> {
    /// The pixel of `value`, `None` beyond the band's edges.
    pub(super) fn x(&self, value: f64, band: Rect) -> Option<i32> {
        let part = (value - self.start) / (self.end - self.start);
        let x = (part * f64::from(band.width)).floor() as i32;
        // The right edge belongs to the last pixel.
        ((-1e-9..=1.0 + 1e-9).contains(&part)).then(|| band.left + x.clamp(0, band.width - 1))
    }
}
