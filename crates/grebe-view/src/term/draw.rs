//! The terminal's screen as a widget: two lines of facts, lanes of dots, the time axis, the keys.

mod dots;
mod help;
mod tables;
mod waterfall;

use grebe_scope::Ticks;
use grebe_scope::raster::{Color as ScopeColor, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget, Wrap};

use super::choices;
use crate::data::lane::LaneId;
use crate::model::channel::ThemeChoice;
use crate::model::channel::hue;
use crate::model::harmonics::Harmonic;
use crate::model::levels::LEVEL_UNIT;
use crate::model::seen::hud::{RunState, Tone};
use crate::model::vertical::ValueRange;
use crate::model::view_model::ViewModel;
use dots::Dots;

/// Columns of dots in a terminal of `width` characters.
pub(super) fn columns(width: u16, gutter: u16) -> usize {
    usize::from(width.saturating_sub(gutter).max(1)) * 2
}

/// Width of the labels left of the lanes, the same for all of these models.
pub(super) fn gutter<'a>(models: impl Iterator<Item = &'a mut ViewModel>) -> u16 {
    let longest = models.map(ViewModel::label_chars).max().unwrap_or(0);
    GUTTER_MIN.max(longest.min(LABEL_CHARS_MAX) as u16 + 1)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Palette {
    /// 24 bits.
    True,
    /// The sixteen ANSI colours.
    Ansi,
}

impl Palette {
    /// Reads `COLORTERM`.
    pub(super) fn of_terminal() -> Palette {
        let says = std::env::var("COLORTERM").unwrap_or_default();
        if says.contains("truecolor") || says.contains("24bit") { Palette::True } else { Palette::Ansi }
    }
}

/// Draws a model on a buffer of any size.
pub(super) struct ScopeScreen<'a> {
    model: &'a mut ViewModel,
    palette: Palette,
    /// Width of the labels left of the lanes.
    gutter: u16,
    /// Whether it is the scope that gets the keys.
    is_marked: bool,
}

impl<'a> ScopeScreen<'a> {
    pub(super) fn new(model: &'a mut ViewModel, palette: Palette, gutter: u16) -> ScopeScreen<'a> {
        ScopeScreen { model, palette, gutter, is_marked: false }
    }

    /// Marks the scope that gets the keys.
    pub(super) fn marked(self, is_marked: bool) -> ScopeScreen<'a> {
        ScopeScreen { is_marked, ..self }
    }

    fn plot_of(&self, area: Rect) -> Rect {
        Rect { x: area.x + self.gutter, width: area.width.saturating_sub(self.gutter), ..area }
    }

    fn theme(&self) -> Theme {
        self.model.controls.theme.colors()
    }

    fn color(&self, color: ScopeColor, ansi: Color) -> Color {
        match self.palette {
            Palette::True => Color::Rgb(color.r, color.g, color.b),
            Palette::Ansi => ansi,
        }
    }

    fn trace_color(&self, lane: LaneId) -> Color {
        let hue = hue(lane);
        self.color(self.theme().trace(hue), ANSI_TRACES[hue % ANSI_TRACES.len()])
    }

    fn dim(&self) -> Style {
        Style::new().fg(self.color(self.theme().text_dim, Color::DarkGray))
    }

    fn bad(&self) -> Style {
        Style::new().fg(self.color(self.theme().gap, Color::Red)).add_modifier(Modifier::BOLD)
    }

    fn good(&self) -> Style {
        let color = match self.model.controls.theme {
            ThemeChoice::Dark => ScopeColor::rgb(80, 200, 120),
            ThemeChoice::Light => ScopeColor::rgb(14, 116, 60),
        };
        Style::new().fg(self.color(color, Color::Green))
    }

    fn head(&self, width: usize) -> [Line<'static>; 2] {
        let hud = &self.model.seen.hud;
        let state_style = match hud.state {
            RunState::Live | RunState::Recording => self.good(),
            RunState::Paused => Style::new().fg(Color::Yellow),
            RunState::Stale => self.bad(),
            RunState::Waiting | RunState::Ended => self.dim(),
        };
        let chip =
            Span::styled(format!(" {} ", hud.state.word()), state_style.add_modifier(Modifier::REVERSED));
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let mark = if self.is_marked { " \u{25b6} " } else { " " };
        let source = |room: usize| Span::styled(shortened(&hud.source, room), bold);
        let mut rest = vec![Span::raw(format!("  {}  {}", hud.stream, hud.division))];
        if let Some(trigger) = &hud.trigger {
            rest.push(Span::styled(format!("  {}", trigger.text()), self.dim()));
        }
        let first = vec![chip, Span::raw(mark)];
        let room = |rest: &[Span<'_>]| width.saturating_sub(first.iter().chain(rest).map(Span::width).sum());
        let mut least = SOURCE_CHARS_MIN;
        if let Some(notice) = &hud.notice {
            let notice = Span::styled(format!("  {notice}"), Style::new().fg(Color::Yellow));
            if room(&rest) < hud.source.chars().count() + notice.width() {
                // The reason for a lost connection matters more than the last rate and the name.
                (rest, least) = (Vec::new(), 0);
            }
            rest.push(notice);
        }
        let source = source(room(&rest).max(least));
        let first = [first, vec![source], rest].concat();
        let mut second = vec![Span::styled(" lost ", self.dim())];
        // An item that would be cut could be read as another number.
        let mut taken = second[0].width();
        let mut add = |item: [Span<'static>; 2]| {
            taken += item.iter().map(Span::width).sum::<usize>();
            second.extend(item.into_iter().filter(|_| taken <= width + ITEM_SPACING));
        };
        for item in &hud.losses {
            let style = match item.tone {
                Tone::Bad => self.bad(),
                Tone::Good => self.good(),
                Tone::Plain => Style::new(),
            };
            let label = Span::styled(format!("{} ", item.label), self.dim());
            add([label, Span::styled(format!("{}  ", item.value), style)]);
        }
        for item in &hud.facts {
            add([Span::styled("\u{b7} ", self.dim()), Span::raw(format!("{}  ", item.text()))]);
        }
        if !hud.costs.is_empty() {
            add([Span::styled("\u{b7} ", self.dim()), Span::styled(format!("{}  ", hud.costs), self.dim())]);
        }
        [Line::from(first), Line::from(second)]
    }

    /// Draws all channels: one lane each, or one lane with the selected channel in front.
    fn lanes(&mut self, area: Rect, buf: &mut Buffer) {
        let count = self.model.seen.picture.lanes.len() as u16;
        if !self.model.controls.show.overlay {
            // Lower lanes are unreadable, so only those around the selected one are shown.
            let room = (area.height / LANE_HEIGHT_MIN).clamp(1, count.max(1));
            let first =
                (self.model.front_lane() as u16).saturating_sub(room / 2).min(count - room.min(count));
            for place in 0..room.min(count) {
                let (from, to) = (area.height * place / room, area.height * (place + 1) / room);
                let lane = Rect { y: area.y + from, height: to - from, ..area };
                self.lane(usize::from(first + place), lane, true, 0, buf);
            }
            if room < count {
                let words =
                    format!(" lanes {} to {} of {count}: n selects the next ", first + 1, first + room);
                let width = (words.chars().count() as u16).min(area.width);
                let y = area.bottom().saturating_sub(1);
                buf.set_stringn(area.right() - width, y, words, usize::from(width), self.dim());
            }
            return;
        }
        let front = self.model.front_lane();
        let order = (0..self.model.seen.picture.lanes.len()).filter(|&place| place != front).chain([front]);
        let mut chip = 0;
        // The front lane is drawn first for its grid, and once more on top.
        for (turn, place) in [front].into_iter().chain(order).enumerate() {
            let width = self.lane(place, area, turn == 0, chip, buf);
            chip += if turn == 0 { 0 } else { width + 1 };
        }
    }

    /// Draws level labels and both kinds of grid lines.
    fn grid_of(
        &self,
        area: Rect,
        range: ValueRange,
        unit: &str,
        across: [f64; 2],
        divisions: &Ticks,
        buf: &mut Buffer,
    ) {
        let ticks = Ticks::new(range.bottom, range.top, u32::from(area.height / 3).clamp(2, 8));
        let plot = self.plot_of(area);
        for value in ticks.values() {
            let row = (range.top - value) / range.height() * f64::from(plot.height);
            let row = (row as u16).min(plot.height.saturating_sub(1));
            let label = format!("{:>1$} ", ticks.label(value, unit), usize::from(self.gutter) - 1);
            buf.set_stringn(area.x, area.y + row, label, usize::from(self.gutter), self.dim());
            for x in plot.left()..plot.right() {
                buf[(x, plot.y + row)].set_symbol("\u{2508}").set_style(self.grid());
            }
        }
        for value in divisions.values() {
            let x = (f64::from(plot.width) * (value - across[0]) / (across[1] - across[0])) as u16;
            let x = plot.x + x;
            if x == plot.x || x >= plot.right() {
                continue;
            }
            for y in plot.top()..plot.bottom() {
                buf[(x, y)].set_symbol("\u{250a}").set_style(self.grid());
            }
        }
    }

    /// Draws one channel; returns the width of its name.
    fn lane(&mut self, place: usize, area: Rect, has_grid: bool, chip: u16, buf: &mut Buffer) -> u16 {
        let range = self.model.range(place);
        let data = &self.model.seen.picture.lanes[place];
        let setup = self.model.setup(data.lane);
        let plot = self.plot_of(area);
        let (start, end, divisions) = self.model.axis();
        if has_grid {
            self.grid_of(area, range, &setup.unit, [start, end], &divisions, buf);
        }
        let scale = |count: f32| setup.value(f64::from(count));
        let dots = Dots::new(&data.columns, range, scale, plot);
        let color = self.trace_color(data.lane);
        dots.draw(plot, color, self.bad(), buf);
        for cursor in self.model.controls.cursors.times.into_iter().flatten() {
            let x = (f64::from(plot.width) * (cursor - start) / (end - start)) as i64;
            if (0..i64::from(plot.width)).contains(&x) {
                for y in plot.top()..plot.bottom() {
                    buf[(plot.x + x as u16, y)].set_symbol("\u{2502}").set_style(Style::new());
                }
            }
        }
        let labels = self.model.annotation_marks().into_iter();
        let labels = labels.map(|it| (it.parts[0], it.words)).filter(|(from, _)| (0.0..1.0).contains(from));
        for (part, words) in self.model.change_marks().into_iter().chain(labels) {
            let x = plot.x + ((part * f64::from(plot.width)) as u16).min(plot.width - 1);
            for y in plot.top()..plot.bottom() {
                buf[(x, y)].set_symbol("\u{2506}").set_style(Style::new());
            }
            if place == 0 {
                let room = usize::from(plot.right() - x).saturating_sub(1);
                buf.set_stringn(x + 1, plot.y, words, room, Style::new());
            }
        }
        let values = self.model.controls.cursors.values.filter(|_| data.lane == self.model.selected());
        for value in values.into_iter().flatten() {
            let row = (1.0 - range.part_of(value)) * f64::from(plot.height);
            if (0.0..f64::from(plot.height)).contains(&row) {
                for x in plot.left()..plot.right() {
                    buf[(x, plot.y + row as u16)].set_symbol("\u{2500}").set_style(Style::new());
                }
            }
        }
        let marks = self.model.trigger_marks();
        if let (0, Some(part)) = (place, marks.part) {
            let x = plot.x + (part * f64::from(plot.width)) as u16;
            buf.set_stringn(x.min(plot.right() - 1), plot.y, "\u{25bc}", 1, Style::new());
        }
        for &(_, level) in marks.levels.iter().filter(|(lane, _)| *lane == data.lane) {
            let row = (range.top - setup.value(level)) / range.height() * f64::from(plot.height);
            if (0.0..f64::from(plot.height)).contains(&row) {
                buf.set_stringn(plot.right() - 1, plot.y + row as u16, "\u{25c0}", 1, Style::new());
            }
        }
        let clip = if data.is_clipped { "CLIP " } else { "" };
        let name = format!(" {} {clip}", setup.label(data.lane));
        let style = Style::new().fg(color).add_modifier(Modifier::REVERSED | Modifier::BOLD);
        let room = plot.width.saturating_sub(chip);
        buf.set_stringn(plot.x + chip.min(plot.width - 1), plot.y, &name, usize::from(room), style);
        name.chars().count() as u16
    }

    /// Draws the spectra of all channels in one lane, with their axis and the transform's settings.
    fn spectrum(&mut self, area: Rect, buf: &mut Buffer) {
        let range = self.model.spectrum_range();
        let lane = Rect { height: area.height - 1, ..area };
        let plot = self.plot_of(lane);
        let (start, end, unit, ticks) = self.model.spectrum_axis(u32::from(plot.width / 12).clamp(2, 12));
        self.grid_of(lane, range, LEVEL_UNIT, [start, end], &ticks, buf);
        for trace in self.model.spectrum_traces(usize::from(plot.width) * 2) {
            let hold = Dots::new(&trace.hold, range, f64::from, plot);
            hold.draw(plot, self.color(self.theme().text_dim, Color::DarkGray), self.bad(), buf);
            let dots = Dots::new(&trace.columns, range, f64::from, plot);
            dots.draw(plot, self.trace_color(self.model.channel_lane(trace.channel)), self.bad(), buf);
        }
        for harmonic in self.model.harmonics().into_iter().filter(Harmonic::is_shown) {
            let x = plot.x + (f64::from(plot.width) * harmonic.part) as u16;
            let color = self.trace_color(self.model.channel_lane(self.model.harmonics_channel()));
            let room = usize::from(plot.right().saturating_sub(x));
            buf.set_stringn(x, plot.bottom() - 1, harmonic.label(), room, Style::new().fg(color));
        }
        for (part, name) in
            self.model.marker_marks().into_iter().filter(|(part, _)| (0.0..1.0).contains(part))
        {
            let x = plot.x + (f64::from(plot.width) * part) as u16;
            for y in plot.top()..plot.bottom() {
                buf[(x, y)].set_symbol("\u{2502}").set_style(Style::new());
            }
            buf.set_stringn(x, plot.bottom() - 1, name, 1, Style::new());
        }
        let peaks = self.model.peak_rows(1).into_iter().map(|row| row.cells.join(" "));
        let words = [format!(" {}", self.model.spectrum_words())].into_iter().chain(peaks);
        let words: Vec<String> = words.collect();
        let words = words.join("  ") + " ";
        let width = (words.chars().count() as u16).min(plot.width);
        buf.set_stringn(plot.right() - width, plot.y, words, usize::from(width), Style::new());
        self.axis_labels(Rect { y: lane.bottom(), height: 1, ..area }, [start, end], &ticks, unit, 1, buf);
    }

    fn grid(&self) -> Style {
        Style::new().fg(self.color(self.theme().grid_zero, Color::DarkGray))
    }

    fn time_axis(&self, area: Rect, buf: &mut Buffer) {
        let (start, end, ticks) = self.model.axis();
        let every = if self.plot_of(area).width < 100 { 5 } else { 2 };
        self.axis_labels(area, [start, end], &ticks, self.model.seen.picture.axis_unit(), every, buf);
    }

    /// Draws labels at every `every`th tick.
    fn axis_labels(
        &self,
        area: Rect,
        across: [f64; 2],
        ticks: &Ticks,
        unit: &str,
        every: i64,
        buf: &mut Buffer,
    ) {
        let plot = self.plot_of(area);
        let mut free_from = 0;
        for value in ticks.values() {
            // Counts from zero, so that labels keep their values while the picture moves.
            if (value / ticks.step()).round() as i64 % every != 0 {
                continue;
            }
            let label = ticks.label(value, unit);
            let width = label.chars().count() as u16;
            let x = (f64::from(plot.width) * (value - across[0]) / (across[1] - across[0])) as u16;
            let x = (plot.x + x).saturating_sub(width / 2).min(plot.right().saturating_sub(width));
            if x >= free_from {
                free_from = x + width + 1;
                buf.set_stringn(x, area.y, label, usize::from(width), self.dim());
            }
        }
    }

    /// Progress of a recording that is still being copied: a line below the traces, if there is room.
    fn arrival(&self, area: Rect, buf: &mut Buffer) {
        let Some(marks) = self.model.arrival_marks() else { return };
        let plot = self.plot_of(area);
        for x in plot.left()..plot.right() {
            let part = (f64::from(x - plot.x) + 0.5) / f64::from(plot.width);
            let arrived = marks.iter().find(|([from, to], _)| (*from..*to).contains(&part));
            let (symbol, style) = match arrived.map_or(0.0, |(_, arrived)| *arrived) {
                arrived if arrived >= 1.0 => ("\u{2501}", self.good()),
                arrived if arrived > 0.0 => ("\u{2505}", self.good()),
                _ => ("\u{2508}", self.dim()),
            };
            let cell = &mut buf[(x, plot.y)];
            let is_trace = cell.symbol().chars().any(|letter| ('\u{2800}'..'\u{2900}').contains(&letter));
            if !is_trace {
                cell.set_symbol(symbol).set_style(style);
            }
        }
    }
}

impl Widget for &mut ScopeScreen<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        if area.width < self.gutter + 10 || area.height < 6 {
            Paragraph::new("the terminal is too small").render(area, buf);
            return;
        }
        let [first, second] = self.head(usize::from(area.width));
        let row = |y: u16| Rect { y, height: 1, ..area };
        first.render(row(area.y), buf);
        second.render(row(area.y + 1), buf);
        let table = self.table_lines(area.width);
        let below = (table.len() as u16).min((area.height - 6) / 2 + (area.height - 6) % 2);
        let table = self.page_of(table, usize::from(below));
        let lanes = Rect { y: area.y + 2, height: area.height - 4 - below, ..area };
        let count = self.model.seen.picture.lanes.len() as u16;
        let show = self.model.controls.show;
        let has = |is_shown: bool| is_shown && lanes.height >= 10 && count > 0;
        let [spectrum, waterfall] = match (has(show.spectrum), has(show.waterfall)) {
            (true, true) => [lanes.height / 4, lanes.height * 2 / 5],
            (has_spectrum, false) => [if has_spectrum { lanes.height * 2 / 5 } else { 0 }, 0],
            (false, true) => [0, lanes.height * 3 / 5],
        };
        let traces = Rect { height: lanes.height - spectrum - waterfall, ..lanes };
        self.lanes(traces, buf);
        // The time axis lies above the spectrum, its own axis below.
        let y = traces.bottom() + 1;
        if spectrum > 0 {
            self.spectrum(Rect { y, height: spectrum, ..lanes }, buf);
        }
        if waterfall > 0 {
            self.waterfall(Rect { y: y + spectrum, height: waterfall, ..lanes }, buf);
        }
        if count == 0 {
            let lines: Vec<Line<'_>> = self.model.empty_lines().into_iter().map(Line::from).collect();
            let above = lanes.height / 2;
            let middle = Rect { y: lanes.y + above, height: lanes.height - above, ..lanes };
            let text = Paragraph::new(lines).wrap(Wrap { trim: true });
            text.alignment(Alignment::Center).style(self.dim()).render(middle, buf);
        } else {
            self.time_axis(row(traces.bottom()), buf);
            self.arrival(row(traces.bottom().saturating_sub(1)), buf);
        }
        for (place, line) in (0..below).zip(table) {
            line.render(row(area.bottom() - 1 - below + place), buf);
        }
        let keys =
            " space pause  \u{2190} \u{2192} span  [ ] back/forward  f spectrum  v measure  ? keys  q quit";
        Line::styled(keys, self.dim()).render(row(area.bottom() - 1), buf);
        if self.model.controls.is_help_open {
            self.help(lanes, buf);
        }
        choices::list(self.model, lanes, buf);
        choices::prompt(self.model, lanes, buf);
    }
}

/// A text of at most `chars` characters; a longer one ends with an ellipsis.
fn shortened(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars || chars == 0 {
        return text.chars().take(chars).collect();
    }
    text.chars().take(chars - 1).chain(['\u{2026}']).collect()
}

/// Of a source's name, beside the settings.
const SOURCE_CHARS_MIN: usize = 12;
/// Spaces behind an item of the second line.
const ITEM_SPACING: usize = 2;
/// Minimum rows of a lane.
const LANE_HEIGHT_MIN: u16 = 2;
const GUTTER_MIN: u16 = 10;
/// Units have no limit of their own.
const LABEL_CHARS_MAX: usize = 24;
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
pub(super) mod tests;
