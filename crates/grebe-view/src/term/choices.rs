//! The open list and the prompt, drawn over the lanes.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Widget, Wrap};

use crate::model::view_model::ViewModel;

/// Draws the list in the middle; it scrolls if it is higher than the lanes.
pub(super) fn list(model: &ViewModel, area: Rect, buf: &mut Buffer) {
    let Some(list) = model.list() else { return };
    let entries = model.list_entries();
    let title = format!(" {} ", model.list_title());
    let longest = entries.iter().map(|entry| entry.text.chars().count()).max().unwrap_or(0);
    let width = (longest + 8).max(title.chars().count() + 2).max(KEYS.chars().count() + 2) as u16;
    let place = centred(area, width, entries.len() as u16 + 2);
    Clear.render(place, buf);
    Block::bordered().title(title).title_bottom(KEYS).render(place, buf);
    let rows = usize::from(place.height.saturating_sub(2));
    let first = (list.marked + 1).saturating_sub(rows);
    for (row, (number, entry)) in entries.iter().enumerate().skip(first).take(rows).enumerate() {
        let mark = match (list.setting.is_many(), entry.is_on) {
            (true, true) => "[x]",
            (true, false) => "[ ]",
            (false, true) => " \u{2022} ",
            (false, false) => "   ",
        };
        let style =
            if number == list.marked { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        let line = Line::styled(format!(" {mark} {:<longest$} ", entry.text), style);
        let inside = Rect { x: place.x + 1, y: place.y + 1 + row as u16, width: place.width - 2, height: 1 };
        line.render(inside, buf);
    }
}

/// Draws the prompt: its text, its error, and its completions.
pub(super) fn prompt(model: &ViewModel, area: Rect, buf: &mut Buffer) {
    let Some(prompt) = &model.open.prompt else { return };
    let names = model.candidates();
    let room = usize::from(area.height.saturating_sub(5)).min(CANDIDATES_MAX);
    let place = centred(area, area.width.min(78), (names.len().min(room) + 4) as u16);
    if place.height < 3 {
        return;
    }
    Clear.render(place, buf);
    Block::bordered().title(format!(" {} ", model.question_words())).render(place, buf);
    let inside = Rect { x: place.x + 2, y: place.y + 1, width: place.width.saturating_sub(4), height: 1 };
    // Show the end of a long path, where the person types.
    let behind = prompt.text.chars().count().saturating_sub(usize::from(inside.width).saturating_sub(1));
    let text: String = prompt.text.chars().skip(behind).collect();
    Line::from(format!("{text}\u{2588}")).render(inside, buf);
    let below = Rect { y: inside.y + 1, height: place.height.saturating_sub(3), ..inside };
    match &prompt.refused {
        Some(why) => {
            let style = Style::new().add_modifier(Modifier::BOLD);
            Paragraph::new(why.as_str()).style(style).wrap(Wrap { trim: true }).render(below, buf);
        }
        None => {
            let lines: Vec<Line<'_>> =
                names.iter().take(room).map(|name| Line::from(name.as_str())).collect();
            Paragraph::new(lines).render(below, buf);
        }
    }
}

fn centred(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}

const KEYS: &str = " \u{2191} \u{2193} choose, enter, esc ";
const CANDIDATES_MAX: usize = 12;
