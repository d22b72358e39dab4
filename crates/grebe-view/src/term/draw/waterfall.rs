//! The waterfall in half blocks: two pixels per character.

use grebe_scope::Ticks;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::{Palette, ScopeScreen};
use crate::model::annotations::WaterfallMark;
use crate::model::channel::ThemeChoice;
use crate::model::levels::LEVEL_UNIT;
use crate::model::vertical::ValueRange;

impl ScopeScreen<'_> {
    /// Draws levels over frequency and time, newest at the top, with boxes and axes.
    pub(super) fn waterfall(&mut self, area: Rect, buf: &mut Buffer) {
        let range = self.model.waterfall_range();
        let lane = Rect { height: area.height - 1, ..area };
        let plot = self.plot_of(lane);
        let (start, end, unit, ticks) = self.model.spectrum_axis(u32::from(plot.width / 12).clamp(2, 12));
        self.axis_labels(Rect { y: lane.bottom(), height: 1, ..area }, [start, end], &ticks, unit, 1, buf);
        let size = (usize::from(plot.width), usize::from(plot.height) * 2);
        let Some(levels) = self.model.waterfall_pixels(size) else { return };
        for (place, upper) in (0..).zip(levels.chunks_exact(size.0 * 2)) {
            let (upper, lower) = upper.split_at(size.0);
            for (x, (upper, lower)) in (plot.left()..).zip(upper.iter().zip(lower)) {
                let [upper, lower] = [*upper, *lower].map(|level| self.level_color(level, range));
                let cell = &mut buf[(x, plot.y + place)];
                cell.set_symbol(HALF_BLOCK).set_style(Style::new().fg(upper).bg(lower));
            }
        }
        if let Some(times) = self.model.waterfall_times() {
            let unit = self.model.seen.picture.axis_unit();
            let ticks = Ticks::of_unit(times.bottom, times.top, u32::from(plot.height / 3).clamp(2, 6), unit);
            for value in ticks.values() {
                let row = ((1.0 - times.part_of(value)) * f64::from(plot.height)) as u16;
                let label = format!("{:>1$} ", ticks.label(value, unit), usize::from(self.gutter) - 1);
                let y = lane.y + row.min(plot.height - 1);
                buf.set_stringn(area.x, y, label, usize::from(self.gutter), self.dim());
            }
        }
        for mark in self.model.waterfall_marks() {
            box_lines(&mark, plot, buf);
        }
        self.level_bar(range, plot, buf);
    }

    /// Draws the note about the levels, and their colours from the lowest to the highest, at the upper right.
    fn level_bar(&self, range: ValueRange, plot: Rect, buf: &mut Buffer) {
        let words = self.model.waterfall_words().unwrap_or_default();
        let words = format!(" {words}  {:.0} ", range.bottom);
        let top = format!(" {:.0} {LEVEL_UNIT} ", range.top);
        let length = |words: &str| words.chars().count() as u16;
        let mut x = plot.right().saturating_sub(length(&words) + BAR_WIDTH + length(&top)).max(plot.x);
        let mut put = |words: &str, style: Style| {
            let room = usize::from(plot.right().saturating_sub(x));
            x = buf.set_stringn(x, plot.y, words, room, style).0;
        };
        let plain = Style::new().fg(Color::Reset).bg(Color::Reset);
        put(&words, plain);
        for place in 0..BAR_WIDTH {
            let level = range.at(f64::from(place) / f64::from(BAR_WIDTH - 1)) as f32;
            put("\u{2588}", Style::new().fg(self.level_color(level, range)).bg(Color::Reset));
        }
        put(&top, plain);
    }

    fn level_color(&self, level: f32, range: ValueRange) -> Color {
        if level.is_nan() {
            return self.color(self.theme().gap, Color::Red);
        }
        let part = range.part_of(f64::from(level)).clamp(0.0, 1.0);
        let of = |count: usize| ((part * count as f64) as usize).min(count - 1);
        let ramp = self.theme().ramp();
        match self.palette {
            Palette::True => self.color(ramp[of(ramp.len())], Color::Reset),
            // Louder is lighter, and darker on a light screen.
            Palette::Ansi => match (of(ANSI_RAMP.len()), self.model.controls.theme) {
                (place, ThemeChoice::Dark) => ANSI_RAMP[place],
                (place, ThemeChoice::Light) => ANSI_RAMP[ANSI_RAMP.len() - 1 - place],
            },
        }
    }
}

/// Draws the edges of a box, and its words under the upper one.
fn box_lines(mark: &WaterfallMark, plot: Rect, buf: &mut Buffer) {
    let place = |part: f64, from: u16, count: u16| from + ((part * f64::from(count)) as u16).min(count - 1);
    let [left, right] = mark.parts.map(|part| place(part, plot.x, plot.width));
    let [top, bottom] = mark.rows.map(|part| place(part, plot.y, plot.height));
    let bold = if mark.is_chosen { Modifier::BOLD } else { Modifier::empty() };
    let color = mark.color.map_or(Color::White, |[r, g, b]| Color::Rgb(r, g, b));
    let style = Style::new().fg(color).bg(Color::Black).add_modifier(bold);
    for y in top..=bottom {
        for x in left..=right {
            let symbol = match (y == top, y == bottom, x == left, x == right) {
                (true, false, true, false) => "\u{250c}",
                (true, false, false, true) => "\u{2510}",
                (false, true, true, false) => "\u{2514}",
                (false, true, false, true) => "\u{2518}",
                (_, _, true, _) | (_, _, _, true) if top != bottom => "\u{2502}",
                (true, ..) | (_, true, ..) => "\u{2500}",
                _ => continue,
            };
            buf[(x, y)].set_symbol(symbol).set_style(style);
        }
    }
    let below = if top + 1 < bottom { top + 1 } else { bottom + 1 };
    if below < plot.bottom() && !mark.words.is_empty() {
        let from = (left + 1).min(plot.right() - 1);
        buf.set_stringn(from, below, &mark.words, usize::from(plot.right() - from), style);
    }
}

/// The foreground is the upper pixel.
const HALF_BLOCK: &str = "\u{2580}";
const BAR_WIDTH: u16 = 12;
/// By lightness.
const ANSI_RAMP: [Color; 6] =
    [Color::Black, Color::Blue, Color::Magenta, Color::LightRed, Color::LightYellow, Color::White];

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::data::core::ScopeCore;
    use crate::data::feed::ScopeFeed;
    use crate::data::status::SourceStatus;
    use crate::model::action::Action;
    use crate::model::options::ViewOptions;
    use crate::model::view_model::ViewModel;
    use crate::term::draw::GUTTER_MIN;
    use crate::testing::batch;

    /// Eight seconds at 1,024 Hz, with a tone at 256 Hz from 4 s to 5 s.
    fn model() -> ViewModel {
        let mut core = ScopeCore::new(1 << 20);
        let value = |_: usize, index: u64| {
            let tone = (index as f64 * std::f64::consts::FRAC_PI_2).sin() * 16_384.0;
            if (4096..5120).contains(&index) { tone as i16 } else { 0 }
        };
        for block in 0..32 {
            core.ingest(&batch(block * 256, 1, 256, 1024.0, value), 1_000_000).unwrap();
        }
        let mut options = ViewOptions::new(SourceStatus::default);
        (options.initial.waterfall, options.initial.span) = (true, Some(8.0));
        let (_, link) = ScopeFeed::new(1 << 20);
        let mut model = ViewModel::new(link, options, crate::png::encode);
        model.controls.spectrum.size = 32;
        model.controls.levels = Some(ValueRange { bottom: -100.0, top: 0.0 });
        let viewport = model.controls.viewport(&model.seen.picture, 200);
        model.seen.picture = core.answer(&viewport, 2_000_000);
        model
    }

    fn drawn(model: &mut ViewModel, palette: Palette) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(100, 60)).unwrap();
        let mut screen = ScopeScreen::new(model, palette, GUTTER_MIN);
        terminal.draw(|frame| frame.render_widget(&mut screen, frame.area())).unwrap();
        terminal.backend().buffer().clone()
    }

    /// Columns and pixel rows of some colours that half blocks have.
    fn of_color(buf: &Buffer, colors: &[Color]) -> Vec<(u16, u16)> {
        let cells = (0..buf.area.height).flat_map(|y| (0..buf.area.width).map(move |x| (x, y)));
        let half_blocks = cells.filter(|&place| buf[place].symbol() == HALF_BLOCK);
        let pixels = half_blocks.flat_map(|(x, y)| {
            let style = buf[(x, y)].style();
            [((x, y * 2), style.fg), ((x, y * 2 + 1), style.bg)]
        });
        pixels
            .filter(|(_, own)| own.is_some_and(|own| colors.contains(&own)))
            .map(|(place, _)| place)
            .collect()
    }

    #[test]
    fn a_tone_stands_at_its_time_and_frequency_and_keys_zoom_to_it() {
        let mut model = model();
        let theme = model.controls.theme.colors();
        let loud = (256.0 * (100.0 - 6.02) / 100.0) as usize;
        let loud = &theme.ramp()[loud - 1..=loud + 1];
        for palette in [Palette::True, Palette::Ansi] {
            let buf = drawn(&mut model, palette);
            let (colors, columns) = match palette {
                Palette::True => (loud.iter().map(|it| Color::Rgb(it.r, it.g, it.b)).collect(), 53..62),
                Palette::Ansi => (vec![Color::White], 45..70),
            };
            let pixels = of_color(&buf, &colors);
            // The plot is 90 characters wide; its middle is at 256 Hz.
            assert!(!pixels.is_empty() && pixels.iter().all(|(x, _)| columns.contains(x)), "{pixels:?}");
            let rows = pixels.iter().map(|(_, y)| *y);
            let (first, last) = (rows.clone().min().unwrap(), rows.max().unwrap());
            // An eighth of 66 pixel rows, three eighths from the top.
            assert!((7..=10).contains(&(last - first)), "{first} {last}");
        }
        // On a light screen the tone is dark, and the floor white.
        model.controls.theme = ThemeChoice::Light;
        let light = drawn(&mut model, Palette::Ansi);
        let (tone, floor) = (of_color(&light, &[Color::Black]), of_color(&light, &[Color::White]));
        assert!(!tone.is_empty() && tone.iter().all(|(x, _)| (45..70).contains(x)), "{tone:?}");
        assert!(floor.len() > 10 * tone.len(), "{} {}", floor.len(), tone.len());
        model.controls.theme = ThemeChoice::Dark;
        model.act(Action::ZoomFrequencies(crate::model::action::Step::Up));
        model.act(Action::PanFrequencies(0.25));
        let zoomed = of_color(&drawn(&mut model, Palette::Ansi), &[Color::White]);
        // From 192 to 448 Hz.
        assert!(!zoomed.is_empty() && zoomed.iter().all(|(x, _)| (15..60).contains(x)), "{zoomed:?}");
    }

    #[test]
    fn a_box_of_cursors_and_frequencies_is_drawn_with_its_words() {
        let mut model = model();
        model.controls.cursors.times = Some([-4.0, -3.0]);
        model.controls.markers = Some([0.2, 0.3]);
        model.act(Action::Box(crate::model::action::BoxDeed::BetweenMarks));
        let buf = drawn(&mut model, Palette::Ansi);
        let text = |y: u16| (0..buf.area.width).map(|x| buf[(x, y)].symbol()).collect::<String>();
        let rows: Vec<String> = (0..buf.area.height).map(text).collect();
        let top = rows.iter().position(|row| row.contains('\u{250c}')).unwrap();
        // From 204.8 to 307.2 Hz.
        let place = |row: &str, sign: char| row.chars().position(|it| it == sign).unwrap();
        let edges = (place(&rows[top], '\u{250c}'), place(&rows[top], '\u{2510}'));
        assert!((45..48).contains(&edges.0) && (62..66).contains(&edges.1), "{edges:?}");
        assert!(rows[top + 1].contains("1 s, 256"), "{}", rows[top + 1]);
        assert!(rows.iter().any(|row| row.contains("a cell; highest of all")), "{rows:?}");
    }
}
