//! Colours: one dark and one light theme, both readable for people with colour vision deficiency.

/// An opaque colour, in sRGB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Color {
    /// Red.
    pub r: u8,
    /// Green.
    pub g: u8,
    /// Blue.
    pub b: u8,
}

impl Color {
    /// From red, green and blue.
    pub const fn rgb(r: u8, g: u8, b: u8) -> Color {
        Color { r, g, b }
    }
}

/// The colours of a scope; the window and the terminal use them too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Theme {
    /// The background of the picture.
    pub background: Color,
    /// The background of the plot.
    pub plot: Color,
    /// Grid lines.
    pub grid: Color,
    /// The line of zero.
    pub grid_zero: Color,
    /// Names and the first piece of the header.
    pub text: Color,
    /// Axis labels and the rest of the header.
    pub text_dim: Color,
    /// Marks of lost samples.
    pub gap: Color,
    /// Cursors and trigger lines.
    pub cursor: Color,
    /// Traces by place; the ninth has the colour of the first.
    pub traces: [Color; 8],
}

impl Theme {
    /// For dark surroundings, and the default.
    pub const fn dark() -> Theme {
        Theme {
            background: Color::rgb(16, 18, 22),
            plot: Color::rgb(9, 10, 13),
            grid: Color::rgb(38, 42, 50),
            grid_zero: Color::rgb(70, 76, 88),
            text: Color::rgb(232, 234, 238),
            text_dim: Color::rgb(158, 164, 176),
            gap: Color::rgb(255, 84, 84),
            cursor: Color::rgb(255, 255, 255),
            traces: [
                Color::rgb(245, 214, 66),
                Color::rgb(86, 190, 245),
                Color::rgb(255, 128, 200),
                Color::rgb(90, 220, 140),
                Color::rgb(255, 159, 64),
                Color::rgb(176, 150, 255),
                Color::rgb(120, 230, 225),
                Color::rgb(225, 225, 225),
            ],
        }
    }

    /// For bright surroundings and for print.
    pub const fn light() -> Theme {
        Theme {
            background: Color::rgb(243, 244, 246),
            plot: Color::rgb(255, 255, 255),
            grid: Color::rgb(222, 225, 230),
            grid_zero: Color::rgb(168, 174, 184),
            text: Color::rgb(22, 24, 29),
            text_dim: Color::rgb(84, 90, 102),
            gap: Color::rgb(200, 22, 30),
            cursor: Color::rgb(40, 40, 40),
            traces: [
                Color::rgb(148, 96, 0),
                Color::rgb(0, 98, 168),
                Color::rgb(176, 22, 116),
                Color::rgb(10, 112, 52),
                Color::rgb(176, 68, 0),
                Color::rgb(96, 60, 190),
                Color::rgb(0, 112, 118),
                Color::rgb(70, 70, 70),
            ],
        }
    }

    /// Colour of the trace at a place.
    pub fn trace(&self, place: usize) -> Color {
        self.traces[place % self.traces.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contrast to another colour, 1.0 (none) to 21.0 (black on white), as WCAG 2.1 defines it.
    fn contrast(a: Color, b: Color) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn luminance(color: Color) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(color.r) + 0.7152 * linear(color.g) + 0.0722 * linear(color.b)
    }

    #[test]
    fn everything_a_person_reads_has_contrast() {
        for theme in [Theme::dark(), Theme::light()] {
            for color in [theme.text, theme.text_dim] {
                assert!(contrast(color, theme.background) >= 4.5, "{color:?}");
            }
            for color in theme.traces.into_iter().chain([theme.gap, theme.cursor]) {
                assert!(contrast(color, theme.plot) >= 4.5, "{color:?} {}", contrast(color, theme.plot));
            }
            assert!(contrast(theme.grid, theme.plot) < 2.0, "the grid must stay behind the traces");
        }
        assert!((contrast(Color::rgb(0, 0, 0), Color::rgb(255, 255, 255)) - 21.0).abs() < 1e-9);
    }
}
