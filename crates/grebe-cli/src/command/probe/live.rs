//! Progress of a probe on a terminal: a growing table, and charts of goodput, loss and round trip below it.

use std::io::{IsTerminal, Stderr, stderr};
use std::panic::resume_unwind;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use grebe_probe::{ProbeEvent, ProbeOptions, Report, Result, Ticket, TrainResult};
use grebe_view::{draw_in_ascii, is_ascii_locale};
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span as Piece};
use ratatui::widgets::{Axis, Chart, Dataset, GraphType, Paragraph, Widget};
use ratatui::{Terminal, TerminalOptions, Viewport};

use super::panels::{Panel, Span, rate_unit};
use super::table::{Lines, direction_name};
use crate::output::note;

/// Probes in a thread, and shows progress on standard error.
pub(crate) fn probe(ticket: &Ticket, options: &ProbeOptions, is_silent: bool) -> Result<Report> {
    let mut live = Live::new(is_silent);
    let outcome = std::thread::scope(|scope| {
        let (tells, events) = mpsc::channel();
        let probing = scope.spawn(move || {
            grebe_probe::probe(ticket, options, |event| {
                // The receiver outlives the probe.
                let _ = tells.send(event);
            })
        });
        live.follow(&events);
        probing.join()
    });
    live.end();
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Form of the progress.
enum Live {
    /// Standard error is not a terminal.
    Silent,
    /// Lines, for a terminal that cannot move its cursor.
    Lines(Lines),
    Charts(Box<Charts>),
}

impl Live {
    /// The form that suits standard error.
    fn new(is_silent: bool) -> Self {
        match (is_silent || !stderr().is_terminal(), Charts::open()) {
            (true, _) => Self::Silent,
            (false, Some(charts)) => Self::Charts(Box::new(charts)),
            (false, None) => Self::Lines(Lines::default()),
        }
    }

    /// Shows events until the probe ends; the clock runs between them.
    fn follow(&mut self, events: &Receiver<ProbeEvent>) {
        loop {
            match (events.recv_timeout(REFRESH), &mut *self) {
                (Ok(event), Self::Charts(charts)) => charts.show(&event),
                (Ok(event), Self::Lines(lines)) => {
                    lines.of(&event).iter().for_each(|line| note!("{line}"));
                }
                (Err(RecvTimeoutError::Timeout), Self::Charts(charts)) => charts.draw(),
                (Err(RecvTimeoutError::Disconnected), _) => return,
                _ => {}
            }
        }
    }

    /// Leaves the last charts above later output.
    fn end(self) {
        if let Self::Charts(charts) = self {
            charts.end();
        }
    }
}

struct Charts {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    lines: Lines,
    shown: Footer,
}

/// Content below the table.
struct Footer {
    began: Instant,
    part: String,
    trains: [Vec<TrainResult>; 2],
}

impl Charts {
    fn open() -> Option<Self> {
        if !stderr().is_terminal() || std::env::var_os("TERM").is_none_or(|term| term == "dumb") {
            return None;
        }
        let options = TerminalOptions { viewport: Viewport::Inline(HEIGHT) };
        let terminal = Terminal::with_options(CrosstermBackend::new(stderr()), options).ok()?;
        Some(Self { terminal, lines: Lines::default(), shown: Footer::new() })
    }

    fn show(&mut self, event: &ProbeEvent) {
        match event {
            ProbeEvent::Train { is_down, result } => self.shown.trains[usize::from(*is_down)].push(*result),
            ProbeEvent::Part { name, is_down: Some(is_down) } => {
                self.shown.part = format!("{name} {}", direction_name(*is_down));
            }
            ProbeEvent::Part { name, is_down: None } => self.shown.part = (*name).to_owned(),
            _ => {}
        }
        for line in self.lines.of(event) {
            self.above(1, |buffer| Line::raw(line.as_str()).render(buffer.area, buffer));
        }
        self.draw();
    }

    fn end(mut self) {
        let shown =
            std::mem::replace(&mut self.shown, Footer { trains: Default::default(), ..Footer::new() });
        if shown.trains.iter().any(|trains| trains.len() > 1) {
            self.above(CHARTS, |buffer| shown.charts(buffer.area, buffer));
        }
        // A lost terminal needs no cleanup. Later output begins at the place of the charts.
        let _ = self.terminal.clear();
        let top = self.terminal.get_frame().area().as_position();
        let _ = self.terminal.set_cursor_position(top);
        let _ = self.terminal.show_cursor();
    }

    fn above(&mut self, lines: u16, draw: impl FnOnce(&mut Buffer)) {
        // A drawing failure does not end the probe; the report has everything.
        let _ = self.terminal.insert_before(lines, draw);
    }

    fn draw(&mut self) {
        let shown = &self.shown;
        let _ = self.terminal.draw(|frame| {
            let [charts, foot] =
                Layout::vertical([Constraint::Length(CHARTS), Constraint::Length(1)]).areas(frame.area());
            shown.charts(charts, frame.buffer_mut());
            let seconds = shown.began.elapsed().as_secs_f64();
            let words = format!("  {seconds:5.1} s  {}   Ctrl-C ends it", shown.part);
            frame.render_widget(Paragraph::new(words).style(Style::new().dim()), foot);
            if is_ascii_locale() {
                draw_in_ascii(frame.buffer_mut());
            }
        });
    }
}

impl Footer {
    fn new() -> Self {
        Self { began: Instant::now(), part: String::new(), trains: Default::default() }
    }

    fn charts(&self, area: Rect, buffer: &mut Buffer) {
        let all = || self.trains.iter().flatten();
        if all().next().is_none() {
            return;
        }
        let (unit, divisor) = rate_unit(all().map(|train| train.delivered_bps).fold(0.0, f64::max));
        let x = Span::from_zero(all().map(|train| train.at_s));
        let places: [Rect; 3] = Layout::horizontal([Constraint::Ratio(1, 3); 3]).spacing(1).areas(area);
        for (panel, place) in Panel::ALL.into_iter().zip(places) {
            let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(place);
            let key = Line::from(vec![
                Piece::raw(format!("  {}  ", panel.name(unit))),
                Piece::styled("up ", COLORS[0]),
                Piece::styled("down", COLORS[1]),
            ]);
            key.render(head, buffer);
            let points = self.trains.each_ref().map(|trains| {
                let trains = trains.iter();
                trains.map(|train| (train.at_s, panel.value(train, divisor))).collect::<Vec<_>>()
            });
            let values: Vec<f64> = points.iter().flatten().map(|&(_, value)| value).collect();
            let y = panel.span(&values);
            let datasets = points.iter().zip(COLORS).map(|(points, color)| {
                Dataset::default()
                    .data(points)
                    .marker(Marker::Braille)
                    .graph_type(GraphType::Line)
                    .style(Style::new().fg(color))
            });
            let axis = |Span { low, high }: Span, unit: &str| {
                let labels = [low, high].map(|end| format!("{}{unit}", short(end, high - low)));
                Axis::default()
                    .bounds([low, high])
                    .labels(labels)
                    .labels_alignment(Alignment::Right)
                    .style(Style::new().dim())
            };
            Chart::new(datasets.collect())
                .x_axis(axis(x, " s"))
                .y_axis(axis(y, ""))
                .legend_position(None)
                .render(body, buffer);
        }
    }
}

/// A number with enough digits to distinguish the ends of an axis.
fn short(value: f64, width: f64) -> String {
    match width {
        width if width >= 20.0 => format!("{value:.0}"),
        width if width >= 2.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

const COLORS: [Color; 2] = [Color::Cyan, Color::Yellow];
const CHARTS: u16 = 10;
const HEIGHT: u16 = CHARTS + 1;
const REFRESH: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    fn train(at_s: f64, delivered_bps: f64) -> TrainResult {
        TrainResult {
            at_s,
            sent_bps: delivered_bps,
            delivered_bps,
            count: 100,
            lost: 1,
            rtt_ms: 40.0 + at_s,
            failed: None,
        }
    }

    #[test]
    fn charts_of_both_directions_fit_a_small_terminal() {
        let trains = [vec![train(1.0, 30e6), train(2.0, 60e6)], vec![train(3.0, 30e6), train(4.0, 50e6)]];
        let shown = Footer { trains, ..Footer::new() };
        for (width, height) in [(80, CHARTS), (200, CHARTS), (10, 2), (1, 1)] {
            let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
            shown.charts(buffer.area, &mut buffer);
            let text: String = buffer.content.iter().map(|cell| cell.symbol()).collect();
            assert!(
                width < 80
                    || ["arrived, Mbit/s", "lost, %", "round trip, ms"]
                        .iter()
                        .all(|name| text.contains(name)),
                "{text}"
            );
            assert!(width < 80 || text.contains(|c| ('\u{2800}'..='\u{28FF}').contains(&c)), "{text}");
        }
    }
}
