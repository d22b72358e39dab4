//! Text in the monospaced face that the window uses too (Hack, shipped by `epaint_default_fonts`).

use ab_glyph::{Font, FontRef, PxScale, ScaleFont, point};

use super::canvas::Canvas;
use super::theme::Color;

/// Distance of two lines of text, in pixels.
pub(super) const LINE_HEIGHT: i32 = 16;
const SIZE: f32 = 13.5;

/// Draws text. The font is built in; if it could not be read, nothing would be drawn.
pub(super) struct Pen {
    font: Option<FontRef<'static>>,
}

impl Pen {
    pub(super) fn new() -> Pen {
        Pen { font: FontRef::try_from_slice(epaint_default_fonts::HACK_REGULAR).ok() }
    }

    /// Width of `text` in pixels.
    pub(super) fn width(&self, text: &str) -> i32 {
        let Some(font) = &self.font else { return 0 };
        let font = font.as_scaled(PxScale::from(SIZE));
        text.chars().map(|c| font.h_advance(font.glyph_id(c))).sum::<f32>().ceil() as i32
    }

    /// Draws `text` with its upper left corner at `(x, y)`.
    pub(super) fn draw(&self, canvas: &mut Canvas, x: i32, y: i32, text: &str, color: Color) {
        let Some(font) = &self.font else { return };
        let font = font.as_scaled(PxScale::from(SIZE));
        let mut at = x as f32;
        for c in text.chars() {
            let id = font.glyph_id(c);
            let glyph = id.with_scale_and_position(SIZE, point(at, y as f32 + font.ascent()));
            at += font.h_advance(id);
            let Some(outline) = font.outline_glyph(glyph) else { continue };
            let bounds = outline.px_bounds();
            let (left, top) = (bounds.min.x as i32, bounds.min.y as i32);
            outline.draw(|dx, dy, cover| {
                let alpha = (cover.clamp(0.0, 1.0) * 255.0).round() as u8;
                canvas.blend(left + dx as i32, top + dy as i32, color, alpha);
            });
        }
    }
}
