//! The terminal's screen as a widget: two lines of facts, lanes of dots, the time axis, the keys.

use grebe_scope::raster::{Color as ScopeColor, Theme};
use grebe_scope::{Column, Quantity, Ticks};
use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Widget};

use crate::controls::KEYS;
use crate::face::Face;
use crate::hud::{RunState, Tone};
use crate::options::ThemeChoice;
use crate::readout::{QUANTITIES, Row};
use crate::vertical::Range;

/// Columns of dots that a terminal `width` characters wide shows.
pub(super) fn columns(width: u16) -> usize {
    usize::from(width.saturating_sub(GUTTER).max(1)) * 2
}

/// How many colours the terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Palette {
    /// 24 bits.
    True,
    /// The sixteen of old.
    Ansi,
}

impl Palette {
    /// As `COLORTERM` says.
    pub(super) fn of_terminal() -> Palette {
        let says = std::env::var("COLORTERM").unwrap_or_default();
        if says.contains("truecolor") || says.contains("24bit") { Palette::True } else { Palette::Ansi }
    }
}

/// A face, to be drawn on a buffer of any size.
pub(super) struct ScopeScreen<'a> {
    face: &'a mut Face,
    palette: Palette,
}

impl<'a> ScopeScreen<'a> {
    pub(super) fn new(face: &'a mut Face, palette: Palette) -> ScopeScreen<'a> {
        ScopeScreen { face, palette }
    }

    fn theme(&self) -> Theme {
        self.face.controls.theme().theme()
    }

    fn color(&self, color: ScopeColor, ansi: Color) -> Color {
        match self.palette {
            Palette::True => Color::Rgb(color.r, color.g, color.b),
            Palette::Ansi => ansi,
        }
    }

    fn trace_color(&self, channel: usize) -> Color {
        self.color(self.theme().trace(channel), ANSI_TRACES[channel % ANSI_TRACES.len()])
    }

    fn dim(&self) -> Style {
        Style::new().fg(self.color(self.theme().text_dim, Color::DarkGray))
    }

    fn bad(&self) -> Style {
        Style::new().fg(self.color(self.theme().gap, Color::Red)).add_modifier(Modifier::BOLD)
    }

    fn good(&self) -> Style {
        let color = match self.face.controls.theme() {
            ThemeChoice::Dark => ScopeColor::rgb(80, 200, 120),
            ThemeChoice::Light => ScopeColor::rgb(14, 116, 60),
        };
        Style::new().fg(self.color(color, Color::Green))
    }

    fn head(&self) -> [Line<'static>; 2] {
        let hud = &self.face.hud;
        let state_style = match hud.state {
            RunState::Live => self.good(),
            RunState::Paused => Style::new().fg(Color::Yellow),
            RunState::Stale => self.bad(),
            RunState::Waiting | RunState::Ended => self.dim(),
        };
        let chip =
            Span::styled(format!(" {} ", hud.state.word()), state_style.add_modifier(Modifier::REVERSED));
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let mut first = vec![chip, Span::raw(" "), Span::styled(hud.source.clone(), bold)];
        first.push(Span::raw(format!("  {}  {}", hud.stream, hud.division)));
        if let Some(trigger) = &hud.trigger {
            first.push(Span::styled(format!("  {}", trigger.text()), self.dim()));
        }
        if let Some(notice) = &hud.notice {
            first.push(Span::styled(format!("  {notice}"), Style::new().fg(Color::Yellow)));
        }
        let mut second = vec![Span::styled(" lost ", self.dim())];
        for item in &hud.losses {
            let style = match item.tone {
                Tone::Bad => self.bad(),
                Tone::Good => self.good(),
                Tone::Plain => Style::new(),
            };
            second.push(Span::styled(format!("{} ", item.label), self.dim()));
            second.push(Span::styled(format!("{}  ", item.value), style));
        }
        for item in &hud.facts {
            second.push(Span::styled("\u{b7} ", self.dim()));
            second.push(Span::raw(format!("{}  ", item.text())));
        }
        [Line::from(first), Line::from(second)]
    }

    fn lane(&mut self, place: usize, area: Rect, buf: &mut Buffer) {
        let range = self.face.range(place);
        let data = &self.face.picture.channels[place];
        let setup = self.face.options.channel(data.channel);
        let ticks = Ticks::new(range.bottom, range.top, u32::from(area.height / 3).clamp(2, 8));
        let plot = plot_of(area);
        for value in ticks.values() {
            let row = (range.top - value) / range.height() * f64::from(plot.height);
            let row = (row as u16).min(plot.height.saturating_sub(1));
            let label = format!("{:>1$} ", ticks.label(value, &setup.unit), usize::from(GUTTER) - 1);
            buf.set_stringn(area.x, area.y + row, label, usize::from(GUTTER), self.dim());
            for x in plot.left()..plot.right() {
                buf[(x, plot.y + row)].set_symbol("\u{2508}").set_style(self.grid());
            }
        }
        let (start, end, divisions) = self.face.axis();
        for value in divisions.values() {
            let x = (f64::from(plot.width) * (value - start) / (end - start)) as u16;
            let x = plot.x + x;
            if x == plot.x || x >= plot.right() {
                continue;
            }
            for y in plot.top()..plot.bottom() {
                buf[(x, y)].set_symbol("\u{250a}").set_style(self.grid());
            }
        }
        let scale = |count: i16| setup.value(f64::from(count));
        let dots = Dots::new(&data.columns, range, scale, plot);
        let color = self.trace_color(data.channel);
        dots.draw(plot, color, self.bad(), buf);
        for cursor in self.face.controls.cursors().into_iter().flatten() {
            let x = (f64::from(plot.width) * (cursor - start) / (end - start)) as i64;
            if (0..i64::from(plot.width)).contains(&x) {
                for y in plot.top()..plot.bottom() {
                    buf[(plot.x + x as u16, y)].set_symbol("\u{2502}").set_style(Style::new());
                }
            }
        }
        let marks = self.face.trigger_marks();
        if let (0, Some(part)) = (place, marks.part) {
            let x = plot.x + (part * f64::from(plot.width)) as u16;
            buf.set_stringn(x.min(plot.right() - 1), plot.y, "\u{25bc}", 1, Style::new());
        }
        if let Some((_, level)) = marks.level.filter(|(channel, _)| *channel == data.channel) {
            let row = (range.top - setup.value(f64::from(level))) / range.height() * f64::from(plot.height);
            if (0.0..f64::from(plot.height)).contains(&row) {
                buf.set_stringn(plot.right() - 1, plot.y + row as u16, "\u{25c0}", 1, Style::new());
            }
        }
        let name = format!(" {} ", setup.label(data.channel));
        let style = Style::new().fg(color).add_modifier(Modifier::REVERSED | Modifier::BOLD);
        buf.set_stringn(plot.x, plot.y, name, usize::from(plot.width), style);
    }

    /// Cursors and measurements, as far as they are on.
    fn table_lines(&self) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let head = |names: Vec<&str>| Line::styled(cells(names.into_iter()), self.dim());
        let mut add = |names: Vec<&str>, rows: Vec<Row>| {
            if rows.is_empty() {
                return;
            }
            lines.push(head(names));
            lines.extend(rows.into_iter().map(|row| {
                let color = row.channel.map_or(Color::Reset, |channel| self.trace_color(channel));
                Line::styled(cells(row.cells.iter().map(String::as_str)), Style::new().fg(color))
            }));
        };
        add(vec!["", "A", "B", "\u{394}"], self.face.cursor_rows());
        if self.face.controls.is_measuring() {
            let names = [""].into_iter().chain(QUANTITIES.map(Quantity::name)).collect();
            add(names, self.face.measurement_rows());
        }
        lines
    }

    fn grid(&self) -> Style {
        Style::new().fg(self.color(self.theme().grid_zero, Color::DarkGray))
    }

    fn time_axis(&self, area: Rect, buf: &mut Buffer) {
        let plot = plot_of(area);
        let (start, end, ticks) = self.face.axis();
        let every = if plot.width < 100 { 5 } else { 2 };
        for value in ticks.values() {
            // Counted from zero, so that labels stay with their values while the picture moves.
            if (value / ticks.step()).round() as i64 % every != 0 {
                continue;
            }
            let label = ticks.label(value, self.face.picture.axis_unit());
            let width = label.chars().count() as u16;
            let x = (f64::from(plot.width) * (value - start) / (end - start)) as u16;
            let x = (plot.x + x).saturating_sub(width / 2).min(plot.right().saturating_sub(width));
            buf.set_stringn(x, area.y, label, usize::from(width), self.dim());
        }
    }

    fn help(&self, area: Rect, buf: &mut Buffer) {
        let lines: Vec<Line<'_>> =
            KEYS.iter().map(|(key, meaning)| Line::from(format!(" {key:<10}  {meaning}"))).collect();
        let (width, height) = (42.min(area.width), (KEYS.len() as u16 + 2).min(area.height));
        let place = Rect {
            x: area.x + (area.width - width) / 2,
            y: area.y + (area.height - height) / 2,
            width,
            height,
        };
        Clear.render(place, buf);
        Paragraph::new(lines).block(Block::bordered().title(" keys ")).render(place, buf);
    }
}

impl Widget for &mut ScopeScreen<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        if area.width < GUTTER + 10 || area.height < 6 {
            Paragraph::new("the terminal is too small").render(area, buf);
            return;
        }
        let [first, second] = self.head();
        let row = |y: u16| Rect { y, height: 1, ..area };
        first.render(row(area.y), buf);
        second.render(row(area.y + 1), buf);
        let table = self.table_lines();
        let below = (table.len() as u16).min(area.height - 6);
        let lanes = Rect { y: area.y + 2, height: area.height - 4 - below, ..area };
        let count = self.face.picture.channels.len() as u16;
        for place in 0..count {
            let (from, to) = (lanes.height * place / count, lanes.height * (place + 1) / count);
            if to > from {
                let lane = Rect { y: lanes.y + from, height: to - from, ..lanes };
                self.lane(usize::from(place), lane, buf);
            }
        }
        if count == 0 {
            let text = match self.face.picture.stream {
                Some(_) => "every channel is switched off: press 1 \u{2026} 8".to_owned(),
                None => format!("waiting for {}", self.face.hud.source),
            };
            let middle = Rect { y: lanes.y + lanes.height / 2, height: 1, ..lanes };
            Paragraph::new(text).alignment(Alignment::Center).style(self.dim()).render(middle, buf);
        } else {
            self.time_axis(row(area.bottom() - 2 - below), buf);
        }
        for (place, line) in (0..below).zip(table) {
            line.render(row(area.bottom() - 1 - below + place), buf);
        }
        let keys =
            " space pause   \u{2190} \u{2192} span   [ ] back/forward   1\u{2026}8 channel   ? keys   q quit";
        Line::styled(keys, self.dim()).render(row(area.bottom() - 1), buf);
        if self.face.controls.is_help_open() {
            self.help(lanes, buf);
        }
    }
}

/// A lane's dots, eight bits a character.
struct Dots {
    cells: Vec<u8>,
    lost: Vec<bool>,
    width: usize,
}

impl Dots {
    fn new(columns: &[Column], range: Range, value: impl Fn(i16) -> f64, plot: Rect) -> Dots {
        let (width, height) = (usize::from(plot.width), usize::from(plot.height));
        let mut dots = Dots { cells: vec![0; width * height], lost: vec![false; width], width };
        let rows = height as f64 * 4.0;
        let row_of = |count: i16| {
            let row = (range.top - value(count)) / range.height() * rows;
            row.clamp(0.0, rows - 1.0) as usize
        };
        let mut previous = Column::OUTSIDE;
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

    fn draw(&self, plot: Rect, color: Color, lost: Style, buf: &mut Buffer) {
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

fn cells<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    cells.map(|cell| format!(" {cell:>11}")).collect()
}

fn plot_of(area: Rect) -> Rect {
    Rect { x: area.x + GUTTER, width: area.width.saturating_sub(GUTTER), ..area }
}

/// Bits of a braille character's dots, `[column][row]`.
const DOT_BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
/// Left of the lanes, for their labels.
const GUTTER: u16 = 10;
const ANSI_TRACES: [Color; 8] = [
    Color::Yellow,
    Color::Cyan,
    Color::Magenta,
    Color::Green,
    Color::LightRed,
    Color::LightBlue,
    Color::LightCyan,
    Color::White,
];

#[cfg(test)]
mod tests;
