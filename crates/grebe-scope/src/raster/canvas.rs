//! Pixels: filling, blending and writing on an opaque image, and the finished picture.

use std::cell::OnceCell;
use std::sync::OnceLock;

use ab_glyph::{Font, FontRef, ScaleFont, point};
use tiny_skia::Pixmap;

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
        let mut pixmap = new_pixmap(width, height)?;
        pixmap.fill(tiny_skia::Color::from_rgba8(background.r, background.g, background.b, 255));
        Ok(Canvas { pixmap })
    }

    pub(super) fn into_image(self) -> Image {
        Image { pixmap: self.pixmap }
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
}

/// Distance of two lines of text, in pixels.
pub(super) const LINE_HEIGHT: i32 = 16;
const SIZE: f32 = 13.5;

/// Draws text in the monospaced face that the window uses too (Hack, shipped by `epaint_default_fonts`). If it could not be
/// read, nothing would be drawn.
pub(super) struct Pen {
    font: Option<FontRef<'static>>,
    /// For signs that the first does not have.
    other: OnceCell<Option<FontRef<'static>>>,
}

/// A system font with Chinese, Japanese and Korean signs, and its index in its file; `None` if there is none. Read once.
pub fn system_font() -> Option<(&'static [u8], u32)> {
    static FONT: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let read = || SYSTEM_FONTS.iter().find_map(|path| std::fs::read(path).ok());
    FONT.get_or_init(read).as_deref().map(|bytes| (bytes, 0))
}

/// Where Debian, Fedora, Arch, macOS and Windows keep one.
const SYSTEM_FONTS: [&str; 14] = [
    "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",
    "/usr/share/fonts/noto-cjk/NotoSansCJK-Regular.ttc",
    "/usr/share/fonts/google-noto-cjk/NotoSansCJK-Regular.ttc",
    "/usr/share/fonts/google-noto-sans-cjk-fonts/NotoSansCJK-Regular.ttc",
    "/usr/share/fonts/opentype/ipafont-gothic/ipag.ttf",
    "/usr/share/fonts/opentype/ipaexfont-gothic/ipaexg.ttf",
    "/usr/share/fonts/truetype/takao-gothic/TakaoGothic.ttf",
    "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc",
    "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf",
    "/System/Library/Fonts/\u{30d2}\u{30e9}\u{30ae}\u{30ce}\u{89d2}\u{30b4}\u{30b7}\u{30c3}\u{30af} W3.ttc",
    "/System/Library/Fonts/PingFang.ttc",
    "C:\\Windows\\Fonts\\YuGothM.ttc",
    "C:\\Windows\\Fonts\\msgothic.ttc",
    "C:\\Windows\\Fonts\\msyh.ttc",
];

impl Pen {
    pub(super) fn new() -> Pen {
        let font = FontRef::try_from_slice(epaint_default_fonts::HACK_REGULAR).ok();
        Pen { font, other: OnceCell::new() }
    }

    /// Width of `text` in pixels.
    pub(super) fn width(&self, text: &str) -> i32 {
        let advance =
            |c| self.font_of(c).map_or(0.0, |font| font.as_scaled(SIZE).h_advance(font.glyph_id(c)));
        text.chars().map(advance).sum::<f32>().ceil() as i32
    }

    /// Draws `text` with its upper left corner at `(x, y)`.
    pub(super) fn draw(&self, canvas: &mut Canvas, x: i32, y: i32, text: &str, color: Color) {
        let Some(ascent) = self.font.as_ref().map(|font| font.as_scaled(SIZE).ascent()) else { return };
        let mut at = x as f32;
        for c in text.chars() {
            let Some(font) = self.font_of(c).map(|font| font.as_scaled(SIZE)) else { continue };
            let id = font.glyph_id(c);
            let glyph = id.with_scale_and_position(SIZE, point(at, y as f32 + ascent));
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

    /// The font that has a sign; the first where none has.
    fn font_of(&self, c: char) -> Option<&FontRef<'static>> {
        let has = |font: &&FontRef<'static>| font.glyph_id(c).0 != 0;
        if self.font.as_ref().is_some_and(|font| has(&font)) {
            return self.font.as_ref();
        }
        let other = || {
            let (bytes, index) = system_font()?;
            FontRef::try_from_slice_and_index(bytes, index).ok()
        };
        self.other.get_or_init(other).as_ref().filter(has).or(self.font.as_ref())
    }
}

/// A finished picture.
#[derive(Debug, Clone)]
pub struct Image {
    pixmap: Pixmap,
}

impl Image {
    pub(super) fn width(&self) -> u32 {
        self.pixmap.width()
    }

    pub(super) fn height(&self) -> u32 {
        self.pixmap.height()
    }

    /// Pixels row after row from the top left, four bytes each: red, green, blue, 255.
    pub(super) fn rgba(&self) -> &[u8] {
        self.pixmap.data()
    }

    /// Pictures one below the other, as wide as the widest.
    ///
    /// # Errors
    /// [`Error::Setting`] where all of them are higher than 16384 pixels, or there is none.
    pub fn stack(images: &[Image]) -> Result<Image> {
        let width = images.iter().map(Image::width).max().unwrap_or(0);
        let height: u32 = images.iter().map(Image::height).sum();
        let mut pixmap = new_pixmap(width, height)?;
        let row = |width: u32| width as usize * 4;
        let mut rows = pixmap.data_mut().chunks_exact_mut(row(width).max(1));
        for image in images {
            for from in image.rgba().chunks_exact(row(image.width())) {
                if let Some(to) = rows.next() {
                    to[..from.len()].copy_from_slice(from);
                }
            }
        }
        Ok(Image { pixmap })
    }

    /// The picture as a PNG file.
    ///
    /// # Errors
    /// [`Error::Png`] where the encoder fails.
    pub fn to_png(&self) -> Result<Vec<u8>> {
        self.pixmap.encode_png().map_err(|why| Error::Png { why: why.to_string() })
    }
}

fn new_pixmap(width: u32, height: u32) -> Result<Pixmap> {
    let fits = width.max(height) <= 16384;
    fits.then(|| Pixmap::new(width, height)).flatten().ok_or_else(|| Error::Setting {
        what: "picture size",
        got: format!("{width} x {height} pixels"),
        must: "at most 16384 x 16384 pixels, and not empty",
    })
}
