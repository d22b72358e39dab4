//! What the window shows, and what a person does in it: everything but the window itself, so that tests can drive it.

use std::time::Duration;

use eframe::egui::{self, Align2};
use grebe_flow::monotonic_ns;
use grebe_scope::raster::Theme;

use super::quads::QuadPainter;
use super::style;
use crate::controls::{Action, KEYS, char_action};
use crate::face::Face;
use crate::hud::{RunState, STALE_NS};
use crate::link::ScopeLink;
use crate::options::{ThemeChoice, ViewOptions};

pub(super) struct ScopePanes {
    pub(super) face: Face,
    pub(super) painter: QuadPainter,
    /// What egui was last styled for.
    styled: Option<ThemeChoice>,
}

impl ScopePanes {
    pub(super) fn new(link: ScopeLink, options: ViewOptions, painter: QuadPainter) -> ScopePanes {
        ScopePanes { face: Face::new(link, options), painter, styled: None }
    }

    pub(super) fn theme(&self) -> Theme {
        self.face.controls.theme().theme()
    }

    pub(super) fn is_done(&self) -> bool {
        self.face.is_done()
    }

    #[cfg(test)]
    pub(super) fn channels_shown(&self) -> Vec<usize> {
        self.face.picture.channels.iter().map(|data| data.channel).collect()
    }

    pub(super) fn show(&mut self, ui: &mut egui::Ui) {
        self.keys(ui);
        self.face.refresh();
        if self.styled != Some(self.face.controls.theme()) {
            style::apply(ui.ctx(), self.face.controls.theme());
            self.styled = Some(self.face.controls.theme());
        }
        self.head(ui);
        let below = self.measurements_height();
        let area = ui.available_rect_before_wrap();
        let above = egui::Rect::from_min_max(area.min, area.max - egui::vec2(0.0, below));
        self.plot(ui, above);
        self.measurements(ui, above.bottom());
        if self.face.controls.is_help_open() {
            self.help(ui);
        }
        self.wake_when_stale(ui.ctx());
    }

    fn keys(&mut self, ui: &egui::Ui) {
        // A focused button takes the keys that press it.
        let is_focused = ui.memory(|memory| memory.focused().is_some());
        let actions: Vec<Action> = ui.input(|input| {
            let of = |event: &egui::Event| match event {
                egui::Event::Key { key, pressed: true, modifiers, .. } => {
                    key_action(*key, *modifiers).filter(|_| !is_focused)
                }
                egui::Event::Text(text) => text.chars().next().and_then(char_action),
                _ => None,
            };
            input.events.iter().filter_map(of).collect()
        });
        for action in actions {
            self.face.act(action);
        }
    }

    fn help(&mut self, ui: &egui::Ui) {
        let mut is_open = true;
        egui::Window::new("Keys")
            .open(&mut is_open)
            .collapsible(false)
            .resizable(false)
            .anchor(Align2::CENTER_CENTER, [0.0, 0.0])
            .show(ui.ctx(), |ui| {
                egui::Grid::new("keys").num_columns(2).spacing([24.0, 6.0]).show(ui, |ui| {
                    let mouse = [
                        ("wheel", "time span"),
                        ("drag", "back / forward in time"),
                        ("double click", "to the newest samples"),
                    ];
                    for (key, meaning) in KEYS.into_iter().chain(mouse) {
                        ui.label(egui::RichText::new(key).monospace());
                        ui.label(meaning);
                        ui.end_row();
                    }
                });
            });
        if !is_open {
            self.face.act(Action::Help);
        }
    }

    /// One look at the right moment: a stream that stops shows it, and a picture that rests costs nothing.
    fn wake_when_stale(&self, ctx: &egui::Context) {
        if self.face.hud.state == RunState::Live {
            let age_ns = monotonic_ns().saturating_sub(self.face.picture.newest_arrival_ns);
            ctx.request_repaint_after(Duration::from_nanos(STALE_NS.saturating_sub(age_ns) + 1_000_000));
        }
    }
}

fn key_action(key: egui::Key, modifiers: egui::Modifiers) -> Option<Action> {
    match key {
        egui::Key::C | egui::Key::Q | egui::Key::W if modifiers.ctrl => Some(Action::Quit),
        egui::Key::Space => Some(Action::Pause),
        egui::Key::ArrowLeft => Some(Action::Shorter),
        egui::Key::ArrowRight => Some(Action::Longer),
        egui::Key::ArrowUp => Some(Action::Level(1.0)),
        egui::Key::ArrowDown => Some(Action::Level(-1.0)),
        egui::Key::PageUp => Some(Action::Earlier),
        egui::Key::PageDown => Some(Action::Later),
        egui::Key::End => Some(Action::Live),
        egui::Key::Escape => Some(Action::Back),
        _ => None,
    }
}
