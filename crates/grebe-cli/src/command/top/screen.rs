//! The live table.

use std::io;
use std::time::{Duration, Instant};

use grebe_flow::telemetry::Report;
use grebe_view::{draw_in_ascii, is_ascii_locale};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::processes::{Process, Processes};
use super::table::{self, Alarm, COLUMNS, HEADS, LESS, Row};
use crate::ending::Ending;
use crate::interrupt;

/// Shows the table until the user quits. Restores the terminal, also after a panic.
pub(super) fn run(processes: Processes) -> io::Result<Ending> {
    interrupt::end_with_terminal();
    let _insisting = interrupt::insist();
    let mut terminal = ratatui::try_init()?;
    let ended = show(&mut terminal, processes);
    // Not `restore`, which reports failures on standard error and panics if that is a lost terminal.
    let _ = ratatui::try_restore();
    ended
}

fn show(terminal: &mut ratatui::DefaultTerminal, mut processes: Processes) -> io::Result<Ending> {
    let mut screen = Screen { nobody: processes.nobody(), ..Screen::default() };
    let is_ascii = is_ascii_locale();
    loop {
        if interrupt::is_pending() {
            return Ok(Ending::Interrupted);
        }
        screen.take(processes.poll());
        terminal.draw(|frame| {
            screen.draw(frame);
            if is_ascii {
                draw_in_ascii(frame.buffer_mut());
            }
        })?;
        let until = Instant::now() + REFRESH;
        loop {
            if !event::poll(until.saturating_duration_since(Instant::now()))? {
                break;
            }
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Release => {}
                Event::Key(key) => match screen.press(key) {
                    Some(ending) => return Ok(ending),
                    None => break,
                },
                Event::Resize(..) => break,
                _ => {}
            }
        }
    }
}

/// Content of the screen.
#[derive(Debug, Default)]
struct Screen {
    all: Vec<Process>,
    order: Order,
    /// First visible line.
    first: usize,
    /// Lines of the last drawn screen.
    page: usize,
    shows_help: bool,
    nobody: String,
}

/// Order of the processes. Parts of a process are in the order of its stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Id,
    Samples,
    Busy,
    Drops,
}

impl Order {
    fn next(self) -> Self {
        match self {
            Order::Id => Order::Samples,
            Order::Samples => Order::Busy,
            Order::Busy => Order::Drops,
            Order::Drops => Order::Id,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Order::Id => "process id",
            Order::Samples => "samples per second",
            Order::Busy => "busiest stage",
            Order::Drops => "drops a second",
        }
    }

    /// Larger keys come first.
    fn key(self, one: &Process) -> f64 {
        let most = |of: &dyn Fn(&Report) -> f64| one.watched.report.as_ref().map_or(0.0, of);
        match self {
            // In the order of host and ID.
            Order::Id => 0.0,
            Order::Samples => {
                most(&|report| report.stages.iter().map(|stage| stage.samples_per_s).fold(0.0, f64::max))
            }
            Order::Busy => {
                most(&|report| report.stages.iter().map(|stage| stage.busy_share).fold(0.0, f64::max))
            }
            Order::Drops => {
                most(&|report| report.queues.iter().map(|queue| queue.dropped_frames_per_s).sum())
            }
        }
    }
}

impl Screen {
    fn take(&mut self, all: Vec<Process>) {
        self.all = all;
        let order = self.order;
        self.all.sort_by(|a, b| order.key(b).total_cmp(&order.key(a)));
    }

    fn press(&mut self, key: KeyEvent) -> Option<Ending> {
        // A terminal in raw mode sends no signal.
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Some(Ending::Interrupted);
        }
        let was_help = std::mem::take(&mut self.shows_help);
        match key.code {
            KeyCode::Esc if was_help => {}
            KeyCode::Char('q') | KeyCode::Esc => return Some(Ending::Good),
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('?') | KeyCode::Char('h') => self.shows_help = !was_help,
            KeyCode::Up | KeyCode::Char('k') => self.first = self.first.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.first += 1,
            KeyCode::PageUp => self.first = self.first.saturating_sub(self.page),
            KeyCode::PageDown => self.first += self.page,
            KeyCode::Home => self.first = 0,
            // Limited to the content when drawn.
            KeyCode::End => self.first = usize::MAX / 2,
            _ => {}
        }
        None
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let layout = [Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)];
        let [head, body, foot] = Layout::vertical(layout).areas(frame.area());
        frame.render_widget(self.head(), head);
        let lines = self.lines(usize::from(body.width));
        self.page = usize::from(body.height).max(1);
        self.first = self.first.min(lines.len().saturating_sub(self.page));
        let shown: Vec<Line<'_>> = lines.into_iter().skip(self.first).take(self.page).collect();
        frame.render_widget(Text::from(shown), body);
        frame.render_widget(Line::styled(KEYS, dim()), foot);
        if self.shows_help {
            help(frame);
        }
    }

    fn head(&self) -> Line<'static> {
        let count = match self.all.len() {
            1 => "1 running".to_owned(),
            count => format!("{count} running"),
        };
        Line::from(vec![
            Span::styled("grebe top", Style::new().add_modifier(Modifier::BOLD)),
            Span::styled(format!("  {count}, by {}", self.order.name()), dim()),
        ])
    }

    fn lines(&self, width: usize) -> Vec<Line<'static>> {
        if self.all.is_empty() {
            return vec![Line::default(), Line::from(self.nobody.clone())];
        }
        let rows: Vec<Row> = self.all.iter().flat_map(table::rows).collect();
        let widths = table::widths(&rows);
        let columns = columns(&widths, width);
        let heads = columns
            .iter()
            .map(|&column| table::cell(HEADS[column], column, widths[column]))
            .collect::<String>();
        let mut lines = Vec::new();
        for row in rows {
            match row {
                Row::Title(title) => {
                    lines
                        .push(Line::styled(title, Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD)));
                    lines.push(Line::styled(heads.clone(), dim()));
                }
                Row::Cells { cells, alarm } => lines.push(cells_line(&cells, alarm, &widths, &columns)),
                Row::Slowest(words) => lines.push(Line::from(format!("  {words}"))),
                Row::Note(words) => lines.push(Line::styled(format!("  {words}"), dim())),
                Row::Blank => lines.push(Line::default()),
            }
        }
        lines
    }
}

/// The columns that fit.
fn columns(widths: &[usize; COLUMNS], width: usize) -> Vec<usize> {
    let mut columns: Vec<usize> = (0..COLUMNS).collect();
    for less in LESS {
        if columns.iter().map(|&column| widths[column] + 2).sum::<usize>() <= width {
            break;
        }
        columns.retain(|&column| column != less);
    }
    columns
}

fn cells_line(
    cells: &[String; COLUMNS],
    alarm: Alarm,
    widths: &[usize; COLUMNS],
    columns: &[usize],
) -> Line<'static> {
    let style = |column: usize| match column {
        table::FILL if alarm.is_full => Style::new().fg(Color::Red),
        table::DROPPED if alarm.has_dropped => Style::new().fg(Color::Red),
        0 if alarm.is_slowest => Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD),
        _ => Style::new(),
    };
    let span =
        |&column: &usize| Span::styled(table::cell(&cells[column], column, widths[column]), style(column));
    columns.iter().map(span).collect()
}

fn help(frame: &mut Frame<'_>) {
    let area = frame.area();
    let (width, height) = (area.width.min(76), area.height.min(HELP.len() as u16 + 2));
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    let text = Text::from(HELP.map(Line::from).to_vec());
    frame.render_widget(Paragraph::new(text).block(Block::bordered().title(" Columns and keys ")), place);
}

fn dim() -> Style {
    Style::new().fg(Color::DarkGray)
}

const REFRESH: Duration = Duration::from_millis(250);
const KEYS: &str = "q quit   ↑ ↓ scroll   s sort   ? columns";
const HELP: [&str; 14] = [
    "frames/s     frames through the stage, over the last second",
    "samples/s    samples of one channel",
    "busy         share of the second that the stage worked",
    "waits        share that it waited: for room, a chunk, or its time",
    "p50, p99     from the producer's stamp to this stage; valid if both",
    "             run on this machine",
    "copied       share of its frames whose samples were copied, not lent",
    "input queue  policy, and capacity in batches (and bytes)",
    "full         how full it is; red: the stage is slower than its input",
    "dropped      frames that the queue dropped, in all and per second",
    "slowest      the last stage with a full input, else the busiest",
    "",
    "q quit   up, down, page up, page down, home, end: scroll",
    "s order of the processes: id, samples, busiest, drops",
];

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::command::top::table::tests::viewer;

    fn picture(screen: &mut Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn the_screen_fits_any_size_and_80_columns_show_the_essentials() {
        let mut screen = Screen::default();
        screen.take(vec![viewer(42)]);
        for (width, height) in [(1, 1), (3, 2), (20, 5), (80, 24), (200, 60)] {
            let picture = picture(&mut screen, width, height);
            if width >= 80 {
                for part in ["grebe view", "samples/s", "busy", "full", "dropped", "1,500", "slowest: scope"]
                {
                    assert!(picture.contains(part), "{width} x {height} lacks '{part}':\n{picture}");
                }
            }
        }
    }

    #[test]
    fn keys_scroll_sort_explain_and_quit() {
        let mut screen = Screen::default();
        screen.take((1..=9).map(viewer).collect());
        let press = |screen: &mut Screen, code| screen.press(KeyEvent::new(code, KeyModifiers::NONE));
        assert!(picture(&mut screen, 120, 10).contains("process 1 "));
        assert_eq!(press(&mut screen, KeyCode::End), None);
        let end = picture(&mut screen, 120, 10);
        assert!(end.contains("process 9") && !end.contains("process 1 "), "{end}");
        press(&mut screen, KeyCode::Home);
        assert!(picture(&mut screen, 120, 10).contains("process 1 "));
        press(&mut screen, KeyCode::Char('s'));
        assert!(picture(&mut screen, 120, 10).contains("by samples per second"));
        press(&mut screen, KeyCode::Char('?'));
        assert!(picture(&mut screen, 120, 30).contains("Columns and keys"));
        assert_eq!(press(&mut screen, KeyCode::Esc), None, "it closes the explanation");
        assert_eq!(press(&mut screen, KeyCode::Char('q')), Some(Ending::Good));
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(screen.press(interrupt), Some(Ending::Interrupted));
    }

    #[test]
    fn without_processes_top_says_how_to_start_one() {
        let mut screen = Screen { nobody: "no grebe process runs".to_owned(), ..Screen::default() };
        screen.take(Vec::new());
        assert!(picture(&mut screen, 80, 10).contains("no grebe process runs"));
    }
}
