//! The keyboard, and the overlay that explains the keys.

use eframe::egui::{self, Align2};

use super::lanes::color32;
use super::panes::ScopePanes;
use crate::model::action::Action;
use crate::model::choices::Setting;
use crate::model::keys::{char_action, keys};

impl ScopePanes {
    pub(super) fn keys(&mut self, ui: &egui::Ui) {
        // A focused button needs the keys that press it.
        let is_focused = ui.memory(|memory| memory.focused().is_some());
        let has_list = self.model.list().is_some();
        let actions: Vec<Action> = ui.input(|input| {
            let of = |event: &egui::Event| match event {
                // The line that is typed has all keys but this one.
                egui::Event::Key { key, pressed: true, .. } if self.model.prompt.is_some() => {
                    (*key == egui::Key::Escape).then_some(Action::Back)
                }
                egui::Event::Key { key, pressed: true, modifiers, .. } => {
                    let in_list = list_action(*key).filter(|_| has_list);
                    in_list.or_else(|| key_action(*key, *modifiers)).filter(|_| !is_focused)
                }
                egui::Event::Text(text) if !self.is_typing && self.model.prompt.is_none() => {
                    text.chars().next().and_then(char_action)
                }
                _ => None,
            };
            input.events.iter().filter_map(of).collect()
        });
        for action in actions {
            self.model.act(action);
        }
    }

    pub(super) fn help(&mut self, ui: &egui::Ui) {
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
                        ("shift drag", "zoom into a box; or with the right button"),
                        ("strip below", "click or drag: there in the history"),
                        ("... left", "scale and position of a channel"),
                        ("click a name", "settings of the channel"),
                        ("double click", "to the newest samples"),
                    ],
                );
                let groups = keys(&self.model).map(|group| (group.title, group.keys));
                let groups: Vec<_> = groups.chain([mouse]).collect();
                let room = ui.ctx().content_rect().size() - egui::vec2(60.0, 80.0);
                let scroll = egui::ScrollArea::both().max_width(room.x).max_height(room.y);
                // As large as it takes, before anything scrolls.
                let scroll = scroll.min_scrolled_width(room.x).min_scrolled_height(room.y);
                scroll.show(ui, |ui| {
                    ui.horizontal_top(|ui| {
                        for (side, groups) in
                            [&groups[..2], &groups[2..5], &groups[5..]].into_iter().enumerate()
                        {
                            egui::Grid::new(("keys", side)).num_columns(2).spacing([18.0, 5.0]).show(
                                ui,
                                |ui| {
                                    for (title, keys) in groups {
                                        ui.label(
                                            egui::RichText::new(*title).color(color32(self.theme().trace(1))),
                                        );
                                        ui.end_row();
                                        for (key, meaning) in *keys {
                                            ui.label(egui::RichText::new(*key).monospace());
                                            ui.label(*meaning);
                                            ui.end_row();
                                        }
                                    }
                                },
                            );
                            ui.add_space(16.0);
                        }
                    })
                });
            });
        if !is_open {
            self.model.act(Action::Help);
        }
    }
}

/// The keys of the list that is open.
fn list_action(key: egui::Key) -> Option<Action> {
    match key {
        egui::Key::ArrowUp => Some(Action::Mark(-1)),
        egui::Key::ArrowDown => Some(Action::Mark(1)),
        egui::Key::Enter | egui::Key::Space => Some(Action::Take),
        _ => None,
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
        egui::Key::Home => Some(Action::FitAll),
        egui::Key::Escape => Some(Action::Back),
        egui::Key::Enter => Some(Action::Choices(Setting::All)),
        _ => None,
    }
}
