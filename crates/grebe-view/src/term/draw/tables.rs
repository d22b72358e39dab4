//! The tables below the traces: paged if too high, wrapped if too wide.

use ratatui::style::{Color, Style};
use ratatui::text::Line;

use super::ScopeScreen;
use crate::model::readout::{Row, TRIGGER_COLUMNS};
use crate::model::signals::SIGNAL_COLUMNS;
use crate::model::time_frequency_box::BOX_COLUMNS;

impl ScopeScreen<'_> {
    /// The search and the visible tables: cursors, measurements, trigger rate.
    pub(super) fn table_lines(&self, width: u16) -> Vec<Line<'static>> {
        let found = self.model.found_line();
        let found = found.map(|line| Line::styled(format!(" find {line}"), Style::new().fg(Color::Yellow)));
        let mut lines: Vec<Line<'static>> = found.into_iter().collect();
        // Columns beyond the terminal's width wrap below.
        let mut add = |cell: usize, names: &[&str], rows: &[Row]| {
            if rows.is_empty() {
                return;
            }
            let in_a_row = (usize::from(width) / (cell + 1)).saturating_sub(1).max(1);
            for from in (1..names.len()).step_by(in_a_row) {
                let places = from..(from + in_a_row).min(names.len());
                let shown = names[..1].iter().chain(&names[places.clone()]);
                lines.push(Line::styled(cells(cell, shown.copied()), self.dim()));
                lines.extend(rows.iter().map(|row| {
                    let color = row.lane.map_or(Color::Reset, |lane| self.trace_color(lane));
                    let part = row.part(places.clone());
                    Line::styled(cells(cell, part.iter().map(String::as_str)), Style::new().fg(color))
                }));
            }
        };
        // Cursors show all digits.
        add(14, &["", "A", "B", "\u{394}"], &self.model.cursor_rows());
        let (title, boxed) = self.model.box_rows();
        add(13, &[&[title.as_str()], &BOX_COLUMNS[..]].concat(), &boxed);
        if self.model.controls.is_measuring {
            let words = self.model.measured_words();
            let columns = self.model.quantity_columns();
            let names: Vec<&str> =
                [words.as_str()].into_iter().chain(columns.iter().map(|quantity| quantity.name())).collect();
            add(11, &names, &self.model.measurement_rows());
            add(11, &names, &self.model.statistics_rows());
            add(13, &SIGNAL_COLUMNS, &self.model.signal_rows());
            add(11, &TRIGGER_COLUMNS, &self.model.trigger_rows());
        }
        lines
    }

    /// The lines of the present page of a table. If there are several pages, the last line has the page number.
    pub(super) fn page_of(&mut self, mut lines: Vec<Line<'static>>, room: usize) -> Vec<Line<'static>> {
        if lines.len() <= room || room < 2 {
            return lines;
        }
        let (count, page) = (lines.len(), room - 1);
        if self.model.open.table_page * page >= count {
            self.model.open.table_page = 0;
        }
        // The last page is full, too.
        let from = (self.model.open.table_page * page).min(count - page);
        let to = from + page;
        lines = lines.drain(from..to).collect();
        lines.push(Line::styled(
            format!(" lines {} to {to} of {count}: shift tab for more", from + 1),
            self.dim(),
        ));
        lines
    }
}

fn cells<'a>(width: usize, cells: impl Iterator<Item = &'a str>) -> String {
    cells.map(|cell| format!(" {cell:>width$}")).collect()
}
