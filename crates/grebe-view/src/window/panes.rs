//! What the window shows, and what a person does in it: everything but the window itself, so that tests can drive it.

use std::time::Duration;

use eframe::egui::{self, Align2, Color32, Rect, TextureHandle, pos2};
use grebe_flow::monotonic_ns;
use grebe_scope::raster::Theme;

use super::lanes::color32;
use super::layout::Layout;
use super::quads::QuadPainter;
use super::style;
use crate::face::Face;
use crate::hud::{RunState, STALE_NS};
use crate::keys::{Action, char_action, keys};
use crate::link::ScopeLink;
use crate::math::LANES;
use crate::options::{ThemeChoice, ViewOptions};

pub(super) struct ScopePanes {
    pub(super) face: Face,
    pub(super) painter: QuadPainter,
    /// Tells several scopes of one window apart.
    pub(super) id: egui::Id,
    /// `None` while it is being drawn.
    pub(super) layout: Option<Layout>,
    /// Which waterfall is drawn, with what its colours mean, and its picture.
    pub(super) waterfall: Option<(u64, i32, TextureHandle)>,
    /// The densities that are drawn, by channel, and which they are.
    pub(super) densities: [Option<TextureHandle>; 8],
    pub(super) persistence_number: u64,
    /// Room that the controls of both rows took in the last frame.
    pub(super) buttons_width: f32,
    pub(super) trigger_width: f32,
    /// The trigger that the list was last scrolled to.
    pub(super) listed_segment: Option<f64>,
    /// Whether keys are for this one of several.
    pub(super) has_keys: bool,
    /// Whether keys go to a field.
    pub(super) is_typing: bool,
    /// What egui was last styled for.
    styled: Option<ThemeChoice>,
}

impl ScopePanes {
    /// The first of a window.
    #[cfg(test)]
    pub(super) fn new(link: ScopeLink, options: ViewOptions, painter: QuadPainter) -> ScopePanes {
        ScopePanes::numbered(0, link, options, painter)
    }

    /// One of several in a window.
    pub(super) fn numbered(
        number: usize,
        link: ScopeLink,
        options: ViewOptions,
        painter: QuadPainter,
    ) -> ScopePanes {
        let id = egui::Id::unique(("scope", number));
        ScopePanes {
            face: Face::new(link, options),
            painter,
            id,
            layout: Some(Layout::new(id.with("layout"))),
            waterfall: None,
            densities: Default::default(),
            persistence_number: 0,
            buttons_width: 600.0,
            trigger_width: 430.0,
            listed_segment: None,
            has_keys: true,
            is_typing: false,
            styled: None,
        }
    }

    /// Which buffers an area of this scope has.
    pub(super) fn slot(&self, area: &str) -> u64 {
        self.id.with(area).value()
    }

    pub(super) fn trace_color(&self, channel: usize) -> Color32 {
        color32(self.face.controls.setups[channel % LANES].trace_color(channel, &self.theme()))
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
        if self.has_keys {
            self.keys(ui);
        }
        self.face.refresh();
        if self.styled != Some(self.face.controls.theme()) {
            style::apply(ui.ctx(), self.face.controls.theme());
            self.styled = Some(self.face.controls.theme());
        }
        self.head(ui);
        let area = ui.available_rect_before_wrap();
        let right = area.right() - self.side_width();
        let bottom = area.bottom() - self.measurements_height();
        self.panes(ui, Rect::from_min_max(area.min, pos2(right, bottom)));
        self.measurements(ui, Rect::from_min_max(pos2(area.left(), bottom), pos2(right, area.bottom())));
        self.side(ui, Rect::from_min_max(pos2(right, area.top()), area.max));
        if self.has_keys && self.face.controls.is_help_open() {
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
                egui::Event::Text(text) if !self.is_typing => text.chars().next().and_then(char_action),
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
                let mouse: (&str, &[(&str, &str)]) = (
                    "mouse",
                    &[
                        ("wheel", "time span, frequency range"),
                        ("drag", "back / forward; levels, cursors, panes"),
                        ("... left", "scale and position of a channel"),
                        ("click a name", "settings of the channel"),
                        ("double click", "to the newest samples"),
                    ],
                );
                let groups = keys(self.face.has_generator()).map(|group| (group.title, group.keys));
                let groups: Vec<_> = groups.chain([mouse]).collect();
                ui.horizontal_top(|ui| {
                    for (side, groups) in [&groups[..3], &groups[3..]].into_iter().enumerate() {
                        egui::Grid::new(("keys", side)).num_columns(2).spacing([18.0, 5.0]).show(ui, |ui| {
                            for (title, keys) in groups {
                                ui.label(egui::RichText::new(*title).color(color32(self.theme().trace(1))));
                                ui.end_row();
                                for (key, meaning) in *keys {
                                    ui.label(egui::RichText::new(*key).monospace());
                                    ui.label(*meaning);
                                    ui.end_row();
                                }
                            }
                        });
                        ui.add_space(16.0);
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
