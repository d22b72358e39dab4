//! Pixels: filling and blending on an opaque image.

use tiny_skia::{LineJoin, Mask, Paint, PathBuilder, Pixmap, Stroke, Transform};

use super::theme::Color;
use crate::error::{Error, Result};

pub(super) struct Canvas {
    pixmap: Pixmap,
}

/// Whole pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rect {
    pub(super) left: i32,
    pub(super) top: i32,
    pub(super) width: i32,
    pub(super) height: i32,
}

impl Canvas {
    pub(super) fn new(width: u32, height: u32, background: Color) -> Result<Canvas> {
        let refused = || Error::Setting {
            what: "picture size",
            got: format!("{width} x {height}"),
            must: "160 x 120 to 16384 x 16384 pixels",
        };
        let mut pixmap = Pixmap::new(width, height).ok_or_else(refused)?;
        pixmap.fill(tiny_skia::Color::from_rgba8(background.r, background.g, background.b, 255));
        Ok(Canvas { pixmap })
    }

    pub(super) fn into_pixmap(self) -> Pixmap {
        self.pixmap
    }

    pub(super) fn fill(&mut self, rect: Rect, color: Color) {
        self.tint(rect, color, 255);
    }

    /// Lays `color` over a rectangle; `alpha` 255 hides the pixels below.
    pub(super) fn tint(&mut self, rect: Rect, color: Color, alpha: u8) {
        let (width, height) = (self.pixmap.width() as i32, self.pixmap.height() as i32);
        let (left, right) = (rect.left.clamp(0, width), (rect.left + rect.width).clamp(0, width));
        let (top, bottom) = (rect.top.clamp(0, height), (rect.top + rect.height).clamp(0, height));
        for y in top..bottom {
            for x in left..right {
                self.blend(x, y, color, alpha);
            }
        }
    }

    /// Lays `color` over one pixel; nothing happens outside of the image.
    pub(super) fn blend(&mut self, x: i32, y: i32, color: Color, alpha: u8) {
        let (width, height) = (self.pixmap.width() as i32, self.pixmap.height() as i32);
        if !(0..width).contains(&x) || !(0..height).contains(&y) {
            return;
        }
        let at = (y as usize * width as usize + x as usize) * 4;
        let pixel = &mut self.pixmap.data_mut()[at..at + 3];
        for (below, above) in pixel.iter_mut().zip([color.r, color.g, color.b]) {
            let (below_part, above_part) =
                (u32::from(*below) * (255 - u32::from(alpha)), u32::from(above) * u32::from(alpha));
            *below = ((below_part + above_part + 127) / 255) as u8;
        }
    }

    /// A smooth line through `points`, cut at the edges of `clip`.
    pub(super) fn line(&mut self, points: &[(f32, f32)], clip: Rect, color: Color) {
        let mut path = PathBuilder::new();
        for (place, &(x, y)) in points.iter().enumerate() {
            if place == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
        }
        let sides = (clip.left as f32, clip.top as f32, clip.width as f32, clip.height as f32);
        let area = tiny_skia::Rect::from_xywh(sides.0, sides.1, sides.2, sides.3);
        let (Some(path), Some(area), Some(mut mask)) =
            (path.finish(), area, Mask::new(self.pixmap.width(), self.pixmap.height()))
        else {
            return;
        };
        let area = PathBuilder::from_rect(area);
        mask.fill_path(&area, tiny_skia::FillRule::Winding, false, Transform::identity());
        let mut paint = Paint::default();
        paint.set_color_rgba8(color.r, color.g, color.b, 255);
        let stroke = Stroke { width: 1.5, line_join: LineJoin::Round, ..Stroke::default() };
        self.pixmap.stroke_path(&path, &paint, &stroke, Transform::identity(), Some(&mask));
    }
}
