//! Draws lanes of columns to an image on the CPU: for PNG files, snapshots, and machines without a GPU.
//!
//! ```
//! use grebe_scope::{Column, ColumnGrid, Pyramid};
//! use grebe_scope::raster::{Axis, Lane, Picture, Theme, Trace, plot_columns};
//!
//! let sine: Vec<i16> = (0..48_000).map(|i| (f64::from(i) * 0.001).sin() * 20_000.0).map(|v| v as i16).collect();
//! let mut pyramid = Pyramid::new(1, 1 << 20)?;
//! pyramid.append(0, &[&sine])?;
//! let mut columns = vec![Column::OUTSIDE; plot_columns(800)];
//! let grid = ColumnGrid::new(48_000.0 / columns.len() as f64);
//! pyramid.columns(0, grid, 0, &mut columns);
//!
//! let lanes = [Lane { scale: 1.0 / 32768.0, unit: "V", ..Lane::new("sine", Trace::Columns(&columns), -1.0, 1.0) }];
//! let picture = Picture {
//!     header: &["48 kS/s", "1 s"],
//!     lanes: &lanes,
//!     axis: Axis { start: 0.0, end: 1.0, unit: "s" },
//!     ..Picture::new(800, 400, Theme::dark())
//! };
//! let png = picture.draw()?.to_png()?;
//! assert_eq!(&png[1..4], b"PNG");
//! # Ok::<(), grebe_scope::Error>(())
//! ```

mod canvas;
mod lane;
mod ramp;
mod scene;
mod theme;

use crate::error::{Error, Result};
use crate::units::Ticks;
use crate::value::Value;
use canvas::{Canvas, LINE_HEIGHT, Pen, Rect};
pub use canvas::{Image, system_font};
pub use scene::{Axis, Cursor, Lane, Layer, Trace};
pub use theme::{Color, Theme};

/// The content of a picture. Make one with [`Picture::new`] and fill in the rest.
///
/// Columns of both kinds come into one picture as `f32`, which is exact: `Column::<f32>::from`.
#[derive(Debug, Clone)]
pub struct Picture<'a, V: Value = i16> {
    /// Width in pixels, 160 to 16384.
    pub width: u32,
    /// Height in pixels, 120 to 16384.
    pub height: u32,
    /// Colours.
    pub theme: Theme,
    /// Pieces of text above the plot, side by side as far as they fit: source, rate, losses, measurements.
    pub header: &'a [&'a str],
    /// Lanes, stacked from the top.
    pub lanes: &'a [Lane<'a, V>],
    /// The horizontal axis.
    pub axis: Axis<'a>,
    /// Vertical lines: cursors, triggers.
    pub cursors: &'a [Cursor<'a>],
    /// For incomplete data: ranges from 0 at the left edge to 1 at the right, with the part of each that has arrived.
    /// A bar below the lanes is brighter where more has arrived.
    pub arrived: Option<&'a [([f64; 2], f32)]>,
    /// Levels of the colours of rows, drawn as a bar right of the lanes.
    pub levels: Option<Axis<'a>>,
    /// Room right of the plot for such a bar, in pixels, even without one: 0 or [`LEVELS_WIDTH`].
    pub right: u32,
    /// Minimum width of the labels beside the lanes in characters, so that the plots of several pictures start at the
    /// same x. The picture's own labels always fit.
    pub label_chars: usize,
}

/// Columns that fill the plot of a picture `width` pixels wide, one per pixel, beside labels of up to nine characters.
pub fn plot_columns(width: u32) -> usize {
    plot_columns_beside(width, 0)
}

/// The same beside labels of `label_chars` characters.
pub fn plot_columns_beside(width: u32, label_chars: usize) -> usize {
    width.saturating_sub(gutter(&Pen::new(), label_chars) + MARGIN_RIGHT) as usize
}

/// Room left of the plot for labels of `label_chars` characters, in pixels.
fn gutter(pen: &Pen, label_chars: usize) -> u32 {
    let labels = pen.width(&"0".repeat(label_chars.min(LABEL_CHARS_MAX)));
    MARGIN_LEFT.max(labels as u32 + LABEL_SPACING)
}

impl<'a, V: Value> Picture<'a, V> {
    /// An empty picture.
    pub fn new(width: u32, height: u32, theme: Theme) -> Picture<'a, V> {
        let axis = Axis { start: 0.0, end: 1.0, unit: "s" };
        Picture {
            width,
            height,
            theme,
            header: &[],
            lanes: &[],
            axis,
            cursors: &[],
            arrived: None,
            levels: None,
            right: 0,
            label_chars: 0,
        }
    }

    /// Draws the picture.
    ///
    /// # Errors
    /// [`Error::Setting`] if width or height is out of range.
    pub fn draw(&self) -> Result<Image> {
        let sides = [("width", self.width, 160), ("height", self.height, 120)];
        for (what, got, least) in sides {
            if !(least..=16384).contains(&got) {
                let got = format!("{got} pixels");
                return Err(Error::Setting { what, got, must: "160 x 120 to 16384 x 16384 pixels" });
            }
        }
        let mut canvas = Canvas::new(self.width, self.height, self.theme.background)?;
        let pen = Pen::new();
        self.each_of_header(&pen, |x, y, piece, color| pen.draw(&mut canvas, x, y, piece, color));
        let plot = self.plot(&pen);
        let count = (plot.width as u32 / 90).clamp(2, 20);
        let ticks = Ticks::of_unit(self.axis.start, self.axis.end, count, self.axis.unit);
        let count = self.lanes.len().max(1) as i32;
        for place in 0..count {
            let (from, to) = (plot.height * place / count, plot.height * (place + 1) / count);
            let band = Rect { top: plot.top + from, height: (to - from - LANE_SPACING).max(1), ..plot };
            canvas.fill(band, self.theme.plot);
            self.draw_time_grid(&mut canvas, band, &ticks);
            if let Some(lane) = self.lanes.get(place as usize) {
                let color = lane.color.unwrap_or(self.theme.trace(place as usize));
                lane::draw(&mut canvas, &pen, &self.theme, lane, color, band);
            }
        }
        self.draw_time_labels(&mut canvas, &pen, plot, &ticks);
        self.draw_cursors(&mut canvas, &pen, plot);
        self.draw_arrived(&mut canvas, plot);
        self.draw_levels(&mut canvas, &pen, plot);
        Ok(canvas.into_image())
    }

    /// Width and height in pixels of the plot of one lane. An [`Intensity`](Trace::Intensity) of this size has a cell per pixel.
    /// A larger one loses the cells between the pixels.
    pub fn lane_size(&self) -> (usize, usize) {
        let plot = self.plot(&Pen::new());
        let height = plot.height / self.lanes.len().max(1) as i32 - LANE_SPACING;
        (plot.width as usize, height.max(1) as usize)
    }

    fn plot(&self, pen: &Pen) -> Rect {
        let top = self.each_of_header(pen, |_, _, _, _| {});
        let height = (self.height as i32 - top - MARGIN_BOTTOM as i32).max(1);
        let lane_height = height / self.lanes.len().max(1) as i32 - LANE_SPACING;
        let own = self.lanes.iter().map(|lane| lane::label_chars(lane, lane_height));
        let left = gutter(pen, own.fold(self.label_chars, usize::max)) as i32;
        let width = (self.width as i32 - left - MARGIN_RIGHT as i32 - self.right as i32).max(1);
        Rect { left, top, width, height }
    }

    /// Calls `draw` with the place, text and colour of the header's pieces, in as many rows as they need, and returns where
    /// the plot begins.
    fn each_of_header(&self, pen: &Pen, mut draw: impl FnMut(i32, i32, &str, Color)) -> i32 {
        let (left, right) = (MARGIN_RIGHT as i32, (self.width - MARGIN_RIGHT) as i32);
        let (mut x, mut y) = (left, 6);
        for (place, piece) in self.header.iter().enumerate() {
            let width = pen.width(piece);
            if x > left && x + width > right {
                x = left;
                y += LINE_HEIGHT;
            }
            let color = if place == 0 { self.theme.text } else { self.theme.text_dim };
            draw(x, y, piece, color);
            x += width + HEADER_SPACING;
        }
        if self.header.is_empty() { 8 } else { y + LINE_HEIGHT + 4 }
    }

    fn draw_time_grid(&self, canvas: &mut Canvas, band: Rect, ticks: &Ticks) {
        for value in ticks.values() {
            if let Some(x) = self.axis.x(value, band) {
                canvas.fill(Rect { left: x, width: 1, ..band }, self.theme.grid);
            }
        }
    }

    fn draw_time_labels(&self, canvas: &mut Canvas, pen: &Pen, plot: Rect, ticks: &Ticks) {
        let y = plot.top + plot.height + 3;
        let mut free_from = 0;
        for value in ticks.values() {
            let Some(x) = self.axis.x(value, plot) else { continue };
            let label = ticks.label(value, self.axis.unit);
            let width = pen.width(&label);
            let left = (x - width / 2).min(self.width as i32 - width - 2);
            if left >= free_from {
                pen.draw(canvas, left, y, &label, self.theme.text_dim);
                free_from = left + width + 12;
            }
        }
    }

    fn draw_arrived(&self, canvas: &mut Canvas, plot: Rect) {
        let Some(arrived) = self.arrived else { return };
        let (top, height) = (plot.top + plot.height - ARRIVED_HEIGHT, ARRIVED_HEIGHT);
        canvas.fill(Rect { top, height, ..plot }, self.theme.grid);
        for &([from, to], part) in arrived.iter().filter(|(_, part)| *part > 0.0) {
            let x = |part: f64| plot.left + (part.clamp(0.0, 1.0) * f64::from(plot.width)).round() as i32;
            let alpha = (ARRIVED_ALPHA_MIN + (255.0 - ARRIVED_ALPHA_MIN) * part.clamp(0.0, 1.0)) as u8;
            for x in x(from)..x(to).max(x(from) + 1).min(plot.left + plot.width) {
                (top..top + height).for_each(|y| canvas.blend(x, y, self.theme.cursor, alpha));
            }
        }
    }

    fn draw_levels(&self, canvas: &mut Canvas, pen: &Pen, plot: Rect) {
        let Some(Axis { start, end, unit }) = self.levels else { return };
        let (ramp, left) = (self.theme.ramp(), plot.left + plot.width + LEVELS_SPACING);
        for y in 0..plot.height {
            let part = 1.0 - f64::from(y) / f64::from((plot.height - 1).max(1));
            let row = Rect { left, top: plot.top + y, width: LEVELS_BAR, height: 1 };
            canvas.fill(row, ramp[(part * 255.0).round() as usize]);
        }
        let ticks = Ticks::new(start, end, (plot.height as u32 / 24).clamp(2, 8));
        for value in ticks.values() {
            let y = ((end - value) / (end - start) * f64::from(plot.height)) as i32;
            let top =
                (plot.top + y - LINE_HEIGHT / 2).clamp(plot.top - 2, plot.top + plot.height - LINE_HEIGHT);
            let label = ticks.label(value, unit);
            pen.draw(canvas, left + LEVELS_BAR + 4, top, &label, self.theme.text_dim);
        }
    }

    fn draw_cursors(&self, canvas: &mut Canvas, pen: &Pen, plot: Rect) {
        for cursor in self.cursors {
            let Some(x) = self.axis.x(cursor.at, plot) else { continue };
            for y in (plot.top..plot.top + plot.height).filter(|y| y % 8 < 5) {
                canvas.blend(x, y, self.theme.cursor, 255);
            }
            let width = pen.width(cursor.label);
            let left = if x + 4 + width < plot.left + plot.width { x + 4 } else { x - 4 - width };
            pen.draw(canvas, left, plot.top + 2, cursor.label, self.theme.cursor);
        }
    }
}

const MARGIN_LEFT: u32 = 76;
/// Space beside a label.
const LABEL_SPACING: u32 = 8;
/// Units have no limit of their own.
const LABEL_CHARS_MAX: usize = 24;
const MARGIN_RIGHT: u32 = 12;
/// Width of the level bar with its labels, in pixels.
pub const LEVELS_WIDTH: u32 = 84;
const LEVELS_BAR: i32 = 12;
const LEVELS_SPACING: i32 = 8;
const MARGIN_BOTTOM: u32 = 22;
const LANE_SPACING: i32 = 3;
/// Height of the bar of arrived data.
const ARRIVED_HEIGHT: i32 = 4;
/// Minimum opacity, so that the smallest part is visible.
const ARRIVED_ALPHA_MIN: f32 = 70.0;
const HEADER_SPACING: i32 = 20;

#[cfg(test)]
mod tests;
