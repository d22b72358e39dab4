//! One lane: its grid and labels, its trace, and the marks of lost samples.

use super::canvas::{Canvas, LINE_HEIGHT, Pen, Rect};
use super::scene::{Lane, Layer, Trace};
use super::theme::{Color, Theme};
use crate::column::Column;
use crate::line::SampleLine;
use crate::units::Ticks;
use crate::value::Value;

pub(super) fn draw<V: Value>(
    canvas: &mut Canvas,
    pen: &Pen,
    theme: &Theme,
    lane: &Lane<V>,
    color: Color,
    band: Rect,
) {
    let ticks = ticks(lane, band.height);
    for value in ticks.values() {
        let Some(y) = lane.y_inside(value, band) else { continue };
        let line = if value == 0.0 { theme.grid_zero } else { theme.grid };
        canvas.fill(Rect { top: y, height: 1, ..band }, line);
        let label = ticks.label(value, lane.unit);
        // A lane may be lower than a line of text.
        let top = (y - LINE_HEIGHT / 2).min(band.top + band.height - LINE_HEIGHT).max(band.top - 2);
        pen.draw(canvas, band.left - 6 - pen.width(&label), top, &label, theme.text_dim);
    }
    let own = |columns, line| Layer { color, columns, line, scale: lane.scale, offset: lane.offset };
    match lane.trace {
        Trace::Columns(columns) => draw_layer(canvas, pen, theme, lane, &own(columns, None), band),
        Trace::Line(columns, line) => draw_layer(canvas, pen, theme, lane, &own(columns, Some(line)), band),
        Trace::Layers(layers) => {
            for layer in layers {
                draw_layer(canvas, pen, theme, lane, layer, band);
            }
        }
        Trace::Intensity { width, cells } => draw_intensity(canvas, theme, band, width, cells),
    }
    for &(value, label) in lane.levels {
        let Some(y) = lane.y_inside(value, band) else { continue };
        for x in (band.left..band.left + band.width).filter(|x| x % 8 < 5) {
            canvas.blend(x, y, theme.cursor, 200);
        }
        let left = band.left + band.width - pen.width(label) - 4;
        pen.draw(canvas, left, y - LINE_HEIGHT, label, theme.cursor);
    }
    let name = Rect { left: band.left, top: band.top, width: pen.width(lane.name) + 10, height: LINE_HEIGHT };
    if !lane.name.is_empty() {
        canvas.fill(name, color);
        pen.draw(canvas, name.left + 5, name.top, lane.name, theme.plot);
    }
}

/// Characters of the longest label of a lane that is so high.
pub(super) fn label_chars<V: Value>(lane: &Lane<V>, height: i32) -> usize {
    let ticks = ticks(lane, height);
    ticks.values().map(|value| ticks.label(value, lane.unit).chars().count()).max().unwrap_or(0)
}

fn ticks<V: Value>(lane: &Lane<V>, height: i32) -> Ticks {
    Ticks::of_unit(lane.bottom, lane.top, (height.max(0) as u32 / 32).clamp(3, 10), lane.unit)
}

fn draw_layer<V: Value>(
    canvas: &mut Canvas,
    pen: &Pen,
    theme: &Theme,
    lane: &Lane<V>,
    layer: &Layer<V>,
    band: Rect,
) {
    let Layer { color, columns, .. } = *layer;
    let y_of_value = |value: f64| lane.y_of(value * layer.scale + layer.offset, band);
    let left_of =
        |place: usize| band.left + (place as i64 * i64::from(band.width) / columns.len() as i64) as i32;
    let place_of = |place: usize| {
        let left = left_of(place);
        Rect { left, width: (left_of(place + 1) - left).max(1), ..band }
    };
    let mut previous = Column::OUTSIDE;
    let mut lost: Option<Rect> = None;
    for (place, column) in columns.iter().enumerate() {
        let at = place_of(place);
        if column.has_gap() {
            mark_lost(canvas, theme, at, column.is_empty());
            let run = lost.get_or_insert(Rect { width: 0, ..at });
            run.width = at.left + at.width - run.left;
        } else if let Some(run) = lost.take() {
            name_lost(canvas, pen, theme, run);
        }
        let span = match layer.line {
            Some(line) => line.joined(place).map(|(low, high)| (f64::from(low), f64::from(high))),
            None => column.joined_to(&previous).map(|(low, high)| (low.to_f64(), high.to_f64())),
        };
        if let Some((low, high)) = span {
            let (a, b) = (y_of_value(low), y_of_value(high));
            let (top, bottom) = (a.min(b), a.max(b));
            let edge = band.top + band.height - 1;
            // Nothing is drawn beyond the lane, as on an instrument's screen.
            if bottom >= band.top && top <= edge {
                let (top, bottom) = (top.max(band.top), bottom.min(edge));
                canvas.fill(Rect { top, height: bottom - top + 1, ..at }, color);
            }
        }
        previous = *column;
    }
    if let Some(run) = lost {
        name_lost(canvas, pen, theme, run);
    }
    if let Some(line) = layer.line.filter(|line| line.spacing() >= DOT_SPACING_MIN) {
        draw_samples(canvas, color, band, line, y_of_value);
    }
}

/// A dot at each sample.
fn draw_samples<V: Value>(
    canvas: &mut Canvas,
    color: Color,
    band: Rect,
    line: &SampleLine<V>,
    y_of_value: impl Fn(f64) -> i32,
) {
    let part = |column: f32| f64::from(column) / line.spans.len() as f64 * f64::from(band.width);
    for &(column, sample) in &line.samples {
        let (x, y) = (band.left + part(column).round() as i32, y_of_value(sample.to_f64()));
        for (dy, half) in [(-2, 1), (-1, 2), (0, 2), (1, 2), (2, 1)] {
            if (band.top..band.top + band.height).contains(&(y + dy)) {
                let (left, right) = ((x - half).max(band.left), (x + half).min(band.left + band.width - 1));
                canvas.fill(Rect { left, top: y + dy, width: right - left + 1, height: 1 }, color);
            }
        }
    }
}

/// A tinted, hatched stripe, and a tick at both edges that is seen however narrow the gap is.
fn mark_lost(canvas: &mut Canvas, theme: &Theme, at: Rect, all: bool) {
    canvas.tint(at, theme.gap, if all { 48 } else { 28 });
    for x in at.left..at.left + at.width {
        for y in (at.top..at.top + at.height).filter(|y| (x + y).rem_euclid(8) == 0) {
            canvas.blend(x, y, theme.gap, if all { 130 } else { 60 });
        }
    }
    let height = at.height.min(4);
    canvas.fill(Rect { height, ..at }, theme.gap);
    canvas.fill(Rect { top: at.top + at.height - height, height, ..at }, theme.gap);
}

fn name_lost(canvas: &mut Canvas, pen: &Pen, theme: &Theme, run: Rect) {
    let width = pen.width("lost");
    if run.width > width + 8 && run.height > 3 * LINE_HEIGHT {
        let left = run.left + (run.width - width) / 2;
        pen.draw(canvas, left, run.top + LINE_HEIGHT + 4, "lost", theme.gap);
    }
}

fn draw_intensity(canvas: &mut Canvas, theme: &Theme, band: Rect, width: usize, cells: &[f32]) {
    let rows = cells.len().checked_div(width).unwrap_or(0);
    if rows == 0 {
        return;
    }
    let ramp = theme.ramp();
    for y in 0..band.height {
        let row = y as usize * rows / band.height as usize;
        for x in 0..band.width {
            let cell = cells[row * width + x as usize * width / band.width as usize];
            let (x, y) = (band.left + x, band.top + y);
            match cell {
                cell if cell.is_nan() => canvas.blend(x, y, theme.gap, 90),
                cell if cell > 0.0 => canvas.blend(x, y, ramp[(cell.min(1.0) * 255.0).round() as usize], 255),
                _ => {}
            }
        }
    }
}

impl<V: Value> Lane<'_, V> {
    fn y(&self, value: f64, band: Rect) -> f64 {
        (self.top - value) / (self.top - self.bottom) * f64::from(band.height - 1) + f64::from(band.top)
    }

    fn y_inside(&self, value: f64, band: Rect) -> Option<i32> {
        let y = self.y(value, band).round();
        (y >= f64::from(band.top) && y < f64::from(band.top + band.height)).then_some(y as i32)
    }

    fn y_of(&self, value: f64, band: Rect) -> i32 {
        self.y(value, band).round().clamp(-1e6, 1e6) as i32
    }
}

/// Nearer to each other, in pixels, dots would hide the line.
const DOT_SPACING_MIN: f32 = 8.0;
