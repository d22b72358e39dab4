//! The terminal: braille dots, two by four per character; for machines reached through ssh.

pub(crate) mod ascii;
mod choices;
mod draw;
#[cfg(test)]
pub(crate) use draw::tests::screen;

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;

use crate::data::link::ScopeLink;
use crate::error::Error;
use crate::model::action::Action;
use crate::model::common_time::CommonTime;
use crate::model::keys::key_action;
use crate::model::options::ViewOptions;
use crate::model::setting::Setting;
use crate::model::view_model::ViewModel;
use draw::{Palette, ScopeScreen};

/// Shows the scopes in the terminal, one above the other, until the person quits or a link is closed. Keys go to the
/// marked scope; tab marks the next. The terminal is restored at the end.
///
/// # Errors
/// [`Error::Terminal`] if standard output is not a terminal, or a dumb one, or fails.
pub fn run_terminals(scopes: Vec<(ScopeLink, ViewOptions)>) -> Result<(), Error> {
    let failed = |source| Error::Terminal { source };
    if !io::stdout().is_terminal() {
        return Err(failed(io::Error::other("standard output is not one")));
    }
    if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        return Err(failed(io::Error::other(
            "TERM is dumb: it cannot move its cursor; --png draws a picture",
        )));
    }
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let model = |(link, options)| ViewModel::new(link, options, crate::png::encode);
    let ended = show(&mut terminal, scopes.into_iter().map(model).collect());
    // Not `restore`: it prints failures to standard error, and panics if that is a terminal that is gone.
    let _ = ratatui::try_restore();
    ended.map_err(|source| match source.kind() {
        io::ErrorKind::Interrupted => Error::Interrupted,
        _ => failed(source),
    })
}

fn show(terminal: &mut ratatui::DefaultTerminal, mut models: Vec<ViewModel>) -> io::Result<()> {
    let palette = Palette::of_terminal();
    let is_ascii = ascii::is_ascii_locale();
    let mut drawn = Instant::now();
    let mut is_changed = true;
    // The scope that gets the keys.
    let mut active = 0;
    let mut common = CommonTime::default();
    while !models.iter().any(ViewModel::is_done) && !models.is_empty() {
        let size = terminal.size()?;
        let gutter = draw::gutter(models.iter_mut());
        for model in &mut models {
            model.request(draw::columns(size.width, gutter));
        }
        is_changed |= common.refresh(&mut models.iter_mut().collect::<Vec<_>>());
        if is_changed {
            terminal.draw(|frame| {
                draw_all(&mut models, active, palette, frame);
                if is_ascii {
                    ascii::draw_in_ascii(frame.buffer_mut());
                }
            })?;
            drawn = Instant::now();
            is_changed = false;
        }
        // At 200 x 60 characters, 30 pictures per second of 22 KB each are the limit of an ssh connection. While nothing
        // changes, ten checks per second are enough.
        let is_resting = drawn.elapsed() > Duration::from_secs(1);
        let until = drawn + FRAME_INTERVAL;
        loop {
            let wait =
                if is_resting { REST_INTERVAL } else { until.saturating_duration_since(Instant::now()) };
            if !event::poll(wait)? {
                break;
            }
            match event::read()? {
                // A terminal in raw mode sends no signal.
                Event::Key(key) if is_interrupt(key) => return Err(io::ErrorKind::Interrupted.into()),
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    press(&mut models, &mut active, key);
                    is_changed = true;
                }
                Event::Resize(..) => is_changed = true,
                _ => {}
            }
            if is_resting {
                break;
            }
        }
    }
    Ok(())
}

/// Draws each scope in an equal part of the height.
fn draw_all(models: &mut [ViewModel], active: usize, palette: Palette, frame: &mut ratatui::Frame<'_>) {
    let (area, count) = (frame.area(), models.len() as u16);
    let gutter = draw::gutter(models.iter_mut());
    for (number, model) in (0..).zip(models) {
        let (from, to) = (area.height * number / count, area.height * (number + 1) / count);
        let part = Rect { y: area.y + from, height: to - from, ..area };
        let is_marked = count > 1 && usize::from(number) == active;
        frame.render_widget(&mut ScopeScreen::new(model, palette, gutter).marked(is_marked), part);
    }
}

fn is_interrupt(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}

/// Handles a key: in the open prompt, in the open list, or else in the scope that has the keys.
fn press(models: &mut [ViewModel], active: &mut usize, key: KeyEvent) {
    let count = models.len();
    let Some(model) = models.get_mut(*active) else { return };
    let is_prompt = model.open.prompt.is_some();
    match key.code {
        KeyCode::BackTab if !is_prompt => return model.open.table_page += 1,
        KeyCode::Tab if !is_prompt => return *active = (*active + 1) % count,
        _ => {}
    }
    if is_prompt {
        return type_on(model, key);
    }
    let is_help_open = model.controls.is_help_open;
    let has_list = model.list().is_some() || is_help_open;
    let Some(action) = key_name(key).and_then(|name| key_action(&name, has_list)) else { return };
    // Close the help, so that the key's effect is visible.
    if is_help_open && !matches!(action, Action::Mark(_) | Action::Help | Action::Back | Action::Quit) {
        model.act(Action::Help);
    }
    match missing(action) {
        Some(what) => model.say(format!("the terminal has no {what}; the window and the page have")),
        // The panel does not fit, so open its list instead.
        None if action == Action::Annotations => model.act(Action::Choices(Setting::Annotations)),
        None => model.act(action),
    }
}

/// The name of a view that the terminal has no room for.
fn missing(action: Action) -> Option<&'static str> {
    match action {
        Action::Xy => Some("plot of one channel over another"),
        Action::Channels => Some("channel panel: enter lists the settings"),
        Action::Segments => Some("list of triggers: { and } go from one to the next"),
        Action::Overview => Some("strip with all of the history: home shows it"),
        _ => None,
    }
}

fn type_on(model: &mut ViewModel, key: KeyEvent) {
    match key.code {
        KeyCode::Esc => model.act(Action::Back),
        KeyCode::Enter => model.answer(),
        KeyCode::Tab => model.complete(),
        KeyCode::Backspace => model.type_text(|text| {
            text.pop();
        }),
        KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => model.type_text(String::clear),
        KeyCode::Char(typed) => model.type_text(|text| text.push(typed)),
        _ => {}
    }
}

/// The name of a key in the common list of keys.
fn key_name(key: KeyEvent) -> Option<String> {
    let has_shift = key.modifiers.contains(KeyModifiers::SHIFT);
    let name = match key.code {
        KeyCode::Char(typed) => return Some(typed.into()),
        KeyCode::Left if has_shift => "Shift+ArrowLeft",
        KeyCode::Right if has_shift => "Shift+ArrowRight",
        KeyCode::Up if has_shift => "Shift+ArrowUp",
        KeyCode::Down if has_shift => "Shift+ArrowDown",
        KeyCode::Left => "ArrowLeft",
        KeyCode::Right => "ArrowRight",
        KeyCode::Up => "ArrowUp",
        KeyCode::Down => "ArrowDown",
        KeyCode::PageUp => "PageUp",
        KeyCode::PageDown => "PageDown",
        KeyCode::End => "End",
        KeyCode::Home => "Home",
        KeyCode::Esc => "Escape",
        KeyCode::Enter => "Enter",
        KeyCode::Delete => "Delete",
        KeyCode::Backspace => "Backspace",
        KeyCode::F(number) => return Some(format!("F{number}")),
        _ => return None,
    };
    Some(name.into())
}

const FRAME_INTERVAL: Duration = Duration::from_millis(33);
const REST_INTERVAL: Duration = Duration::from_millis(100);
