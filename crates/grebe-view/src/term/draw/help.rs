//! The keys, over the picture.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Widget};

use super::ScopeScreen;
use crate::model::keys::keys;

impl ScopeScreen<'_> {
    /// The keys, in as many columns as the height asks for and the width allows.
    pub(super) fn help(&mut self, area: Rect, buf: &mut Buffer) {
        let lines: Vec<Line<'_>> = keys(self.model)
            .flat_map(|group| {
                let title = Line::styled(format!(" {}", group.title), self.dim());
                let keys =
                    group.keys.iter().map(|line| Line::from(format!(" {:<9} {}", line.shown, line.words)));
                [title].into_iter().chain(keys)
            })
            .collect();
        let room = usize::from(area.height.saturating_sub(2)).max(1);
        let columns =
            lines.len().div_ceil(room).min(usize::from(area.width.saturating_sub(2) / HELP_WIDTH)).max(1);
        let per_column = lines.len().div_ceil(columns).min(room);
        let (width, height) = (columns as u16 * HELP_WIDTH + 2, per_column as u16 + 2);
        let (width, height) = (width.min(area.width), height.min(area.height));
        let place = Rect {
            x: area.x + (area.width - width) / 2,
            y: area.y + (area.height - height) / 2,
            width,
            height,
        };
        Clear.render(place, buf);
        let shown = (columns * per_column).min(lines.len());
        let from = self.model.open.help_from.min(lines.len() - shown);
        self.model.open.help_from = from;
        let title = match shown == lines.len() {
            true => " keys ".to_owned(),
            false => {
                let last = from + shown;
                format!(
                    " keys {} to {last} of {}: \u{2191} \u{2193} scroll, esc closes ",
                    from + 1,
                    lines.len()
                )
            }
        };
        Block::bordered().title(title).render(place, buf);
        for (number, lines) in lines[from..].chunks(per_column).take(columns).enumerate() {
            let x = place.x + 1 + number as u16 * HELP_WIDTH;
            let inside =
                Rect { x, y: place.y + 1, width: HELP_WIDTH.min(place.right() - 1 - x), height: height - 2 };
            Paragraph::new(lines.to_vec()).render(inside, buf);
        }
    }
}

const HELP_WIDTH: u16 = 46;
