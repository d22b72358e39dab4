//! Traces in braille: eight dots a character.

use grebe_scope::Column;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};

use crate::model::vertical::ValueRange;

/// A lane's dots, eight bits per character.
pub(super) struct Dots {
    cells: Vec<u8>,
    lost: Vec<bool>,
    width: usize,
}

impl Dots {
    pub(super) fn new(
        columns: &[Column<f32>],
        range: ValueRange,
        value: impl Fn(f32) -> f64,
        plot: Rect,
    ) -> Dots {
        let (width, height) = (usize::from(plot.width), usize::from(plot.height));
        let mut dots = Dots { cells: vec![0; width * height], lost: vec![false; width], width };
        let rows = height as f64 * 4.0;
        let row_of = |count: f32| {
            let row = (range.top - value(count)) / range.height() * rows;
            row.clamp(0.0, rows - 1.0) as usize
        };
        let mut previous = Column::<f32>::OUTSIDE;
        for x in 0..width * 2 {
            // A picture made for another width is stretched until the right one comes.
            let column = columns.get(x * columns.len() / (width * 2)).copied().unwrap_or_default();
            dots.lost[x / 2] |= column.has_gap();
            if let Some((low, high)) = column.joined_to(&previous) {
                let (a, b) = (row_of(low), row_of(high));
                for y in a.min(b)..=a.max(b) {
                    dots.cells[y / 4 * width + x / 2] |= DOT_BITS[x % 2][y % 4];
                }
            }
            previous = column;
        }
        dots
    }

    pub(super) fn draw(&self, plot: Rect, color: Color, lost: Style, buf: &mut Buffer) {
        for (place, &bits) in self.cells.iter().enumerate() {
            let (x, y) = (place % self.width, place / self.width);
            let cell = &mut buf[(plot.x + x as u16, plot.y + y as u16)];
            if bits != 0 {
                let symbol = char::from_u32(0x2800 + u32::from(bits)).unwrap_or(' ');
                cell.set_char(symbol).set_style(Style::new().fg(color));
            } else if self.lost[x] {
                cell.set_symbol("\u{2591}").set_style(lost);
            }
        }
    }
}

/// Bits of a braille character's dots, `[column][row]`.
const DOT_BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_reach_from_edge_to_edge_and_a_flat_line_is_one_row() {
        let plot = Rect::new(0, 0, 3, 2);
        let range = ValueRange { bottom: -32_768.0, top: 32_767.0 };
        let column = |min: f32, max: f32| Column { min, max, ..Column::OUTSIDE };
        let full = Dots::new(&[column(-32_768.0, 32_767.0); 6], range, f64::from, plot);
        assert_eq!(full.cells, [0xff; 6]);
        let flat = Dots::new(&[column(0.0, 0.0); 6], range, f64::from, plot);
        assert_eq!(flat.cells, [0xc0, 0xc0, 0xc0, 0, 0, 0], "the lowest dots of the upper row");
    }
}
