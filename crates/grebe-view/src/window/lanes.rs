//! Converts columns to rectangles: grid, traces and marks of loss, each in its lane.

use eframe::egui::{self, Color32, Rect, pos2};
use grebe_scope::raster::{Color, Theme};
use grebe_scope::{Column, SampleLine, Ticks};

use super::quads::Quad;
use crate::model::vertical::ValueRange;

/// A lane: its place on the screen in points, and its content.
pub(super) struct Lane<'a> {
    pub(super) rect: Rect,
    pub(super) columns: &'a [Column<f32>],
    /// The line that replaces the columns, if samples are farther apart than columns.
    pub(super) line: Option<&'a SampleLine<f32>>,
    pub(super) range: ValueRange,
    pub(super) color: Color32,
    /// Units per count, and the value of count 0.
    pub(super) scale: (f64, f64),
}

/// Collects rectangles of one area, in physical pixels.
pub(super) struct LanePainter<'a> {
    pub(super) area: Rect,
    pub(super) pixels_per_point: f32,
    pub(super) theme: &'a Theme,
    pub(super) quads: Vec<Quad>,
    /// Places where losses need a name, in points.
    pub(super) lost: Vec<Rect>,
}

pub(super) fn color32(color: Color) -> Color32 {
    Color32::from_rgb(color.r, color.g, color.b)
}

impl<'a> LanePainter<'a> {
    pub(super) fn new(area: Rect, pixels_per_point: f32, theme: &'a Theme) -> LanePainter<'a> {
        LanePainter { area, pixels_per_point, theme, quads: Vec::new(), lost: Vec::new() }
    }

    pub(super) fn grid(&mut self, lane: &Lane<'_>, ticks: &Ticks, divisions: &[f32]) {
        let band = self.pixels(lane.rect);
        self.frame(band);
        let (faint, zero) = (color32(self.theme.grid), color32(self.theme.grid_zero));
        for x in [0.0, 1.0].iter().chain(divisions) {
            let x = (band.left() + band.width() * x).round().min(band.right() - 1.0);
            self.quads.push(Quad::new(x, band.top(), x + 1.0, band.bottom(), faint));
        }
        for value in ticks.values() {
            let y = lane.y(value, band).round();
            if y > band.top() && y < band.bottom() - 1.0 {
                let color = if value == 0.0 { zero } else { faint };
                self.quads.push(Quad::new(band.left(), y, band.right(), y + 1.0, color));
            }
        }
    }

    fn frame(&mut self, band: Rect) {
        let color = color32(self.theme.grid);
        for y in [band.top(), band.bottom() - 1.0] {
            self.quads.push(Quad::new(band.left(), y, band.right(), y + 1.0, color));
        }
    }

    pub(super) fn trace(&mut self, lane: &Lane<'_>) {
        let band = self.pixels(lane.rect);
        let mut previous = Column::<f32>::OUTSIDE;
        let count = lane.columns.len();
        for (place, column) in lane.columns.iter().enumerate() {
            let span = match lane.line {
                Some(line) => line.joined(place).map(|(low, high)| (f64::from(low), f64::from(high))),
                None => column.joined_to(&previous).map(|(low, high)| (f64::from(low), f64::from(high))),
            };
            if let Some((low, high)) = span {
                let (a, b) = (lane.y_of_count(low, band), lane.y_of_count(high, band));
                let (top, bottom) = (a.min(b), a.max(b));
                // A sloped line needs more height for the same thickness.
                let air = ((THICKNESS_PX - (bottom - top)) / 2.0).max(SLOPE_AIR_PX);
                let (top, bottom) = ((top - air).max(band.top()), (bottom + air).min(band.bottom()));
                if top < bottom {
                    let (left, right) = column_edges(place, count, band);
                    let color = lane.color.gamma_multiply(glow(bottom - top));
                    self.quads.push(Quad::new(left, top, right, bottom, color));
                }
            }
            previous = *column;
        }
        let spacing_px = lane.line.map_or(0.0, SampleLine::spacing) * band.width() / count.max(1) as f32;
        if let Some(line) = lane.line.filter(|_| spacing_px >= DOT_SPACING_MIN * self.pixels_per_point) {
            self.dots(lane, line, band);
        }
    }

    /// Draws a dot at each sample.
    fn dots(&mut self, lane: &Lane<'_>, line: &SampleLine<f32>, band: Rect) {
        let radius = DOT_RADIUS * self.pixels_per_point;
        for &(place, sample) in &line.samples {
            let x = band.left() + band.width() * place / line.spans.len() as f32;
            let y = lane.y_of_count(sample.into(), band);
            // Round, made of three rectangles.
            for (top, bottom, half) in [(-1.0, -0.6, 0.6), (-0.6, 0.6, 1.0), (0.6, 1.0, 0.6)] {
                let (left, right) = ((x - half * radius).round(), (x + half * radius).round());
                let top = (y + top * radius).max(band.top());
                let bottom = (y + bottom * radius).min(band.bottom());
                if top < bottom {
                    let (left, right) = (left.max(band.left()), right.min(band.right()));
                    self.quads.push(Quad::new(left, top, right, bottom, lane.color));
                }
            }
        }
    }

    pub(super) fn losses(&mut self, lane: &Lane<'_>) {
        let band = self.pixels(lane.rect);
        let columns = lane.columns;
        let mut place = 0;
        while place < columns.len() {
            let run = columns[place..].iter().take_while(|column| column.has_gap()).count();
            if run == 0 {
                place += 1;
                continue;
            }
            let (left, _) = column_edges(place, columns.len(), band);
            let (_, right) = column_edges(place + run - 1, columns.len(), band);
            self.mark_lost(Rect::from_min_max(pos2(left, band.top()), pos2(right, band.bottom())));
            place += run;
        }
    }

    /// Draws a tinted stripe with solid ends, which are visible at any width.
    fn mark_lost(&mut self, at: Rect) {
        let color = color32(self.theme.gap);
        let tint = if at.width() < 3.0 { 0.6 } else { 0.16 };
        self.quads.push(Quad::new(at.left(), at.top(), at.right(), at.bottom(), color.gamma_multiply(tint)));
        let cap = (4.0 * self.pixels_per_point).round();
        for (top, bottom) in [(at.top(), at.top() + cap), (at.bottom() - cap, at.bottom())] {
            self.quads.push(Quad::new(at.left(), top, at.right(), bottom, color));
        }
        if at.width() > 40.0 * self.pixels_per_point {
            let corner = |pixel: egui::Pos2| self.area.min + pixel.to_vec2() / self.pixels_per_point;
            self.lost.push(Rect::from_min_max(corner(at.min), corner(at.max)));
        }
    }

    /// Converts `rect` to whole physical pixels from the area's corner.
    fn pixels(&self, rect: Rect) -> Rect {
        let pixel = |point: egui::Pos2| ((point - self.area.min) * self.pixels_per_point).round().to_pos2();
        Rect::from_min_max(pixel(rect.min), pixel(rect.max))
    }
}

impl Lane<'_> {
    pub(super) fn y(&self, value: f64, band: Rect) -> f32 {
        let part = (self.range.top - value) / self.range.height();
        // The band clips coordinates far outside, but not infinite ones.
        band.top() + (part.clamp(-1e3, 1e3) as f32) * band.height()
    }

    fn y_of_count(&self, count: f64, band: Rect) -> f32 {
        self.y(count * self.scale.0 + self.scale.1, band)
    }
}

/// Left and right edge of a column: one pixel each if the picture was made for this width.
fn column_edges(place: usize, count: usize, band: Rect) -> (f32, f32) {
    let edge = |place: usize| (band.left() + band.width() * place as f32 / count as f32).round();
    (edge(place), edge(place + 1).max(edge(place) + 1.0))
}

/// Brightness of a column: as on a tube, a beam that crosses many rows spends less time on each.
fn glow(height_px: f32) -> f32 {
    0.5 + 0.5 * (GLOW_PX / (GLOW_PX + (height_px - THICKNESS_PX).max(0.0)))
}

const THICKNESS_PX: f32 = 1.7;
const SLOPE_AIR_PX: f32 = 0.35;
const GLOW_PX: f32 = 40.0;
/// Radius of the dots of samples, in points.
const DOT_RADIUS: f32 = 2.5;
/// Minimum distance of dots, in points: closer ones would hide the line.
const DOT_SPACING_MIN: f32 = 8.0;
