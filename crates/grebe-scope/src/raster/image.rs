use crate::error::{Error, Result};

/// A finished picture.
#[derive(Debug, Clone)]
pub struct Image {
    pub(super) pixmap: tiny_skia::Pixmap,
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
        let stacked = (height <= 16384).then(|| tiny_skia::Pixmap::new(width, height)).flatten();
        let Some(mut pixmap) = stacked else {
            let got = format!("{width} x {height} pixels");
            return Err(Error::Setting {
                what: "stacked pictures",
                got,
                must: "1 x 1 to 16384 x 16384 pixels",
            });
        };
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
