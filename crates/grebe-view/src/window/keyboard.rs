//! The keyboard, and the overlay that explains the keys.

use eframe::egui::{self, Align2};

use super::lanes::color32;
use super::panes::ScopePanes;
use crate::model::action::Action;
use crate::model::keys::{KeyGroup, MOUSE, char_action, key_action, keys};

impl ScopePanes {
    pub(super) fn keys(&mut self, ui: &egui::Ui) {
        // A focused button needs the keys that press it.
        let is_focused = ui.memory(|memory| memory.focused().is_some());
        let has_list = self.model.list().is_some();
        let actions: Vec<Action> = ui.input(|input| {
            let of = |event: &egui::Event| match event {
                // The line that is typed has all keys but this one.
                egui::Event::Key { key, pressed: true, .. } if self.model.open.prompt.is_some() => {
                    (*key == egui::Key::Escape).then_some(Action::Back)
                }
                egui::Event::Key { key, pressed: true, modifiers, .. } => {
                    let named = key_name(*key, modifiers.shift).and_then(|name| key_action(name, has_list));
                    let quits = is_quit(*key, *modifiers).then_some(Action::Quit);
                    quits.or(named).filter(|_| !is_focused)
                }
                egui::Event::Text(text) if !self.is_typing && self.model.open.prompt.is_none() => {
                    text.chars().next().filter(|typed| *typed != ' ').and_then(char_action)
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
                let groups: Vec<&KeyGroup> = keys(&self.model).chain([&MOUSE]).collect();
                let room = ui.ctx().content_rect().size() - egui::vec2(60.0, 80.0);
                let scroll = egui::ScrollArea::both().max_width(room.x).max_height(room.y);
                // As large as it takes, before anything scrolls.
                let scroll = scroll.min_scrolled_width(room.x).min_scrolled_height(room.y);
                scroll.show(ui, |ui| {
                    ui.horizontal_top(|ui| {
                        for (number, column) in columns(&groups, room.x).into_iter().enumerate() {
                            self.key_column(ui, number, column);
                            ui.add_space(16.0);
                        }
                    })
                });
            });
        if !is_open {
            self.model.act(Action::Help);
        }
    }

    fn key_column(&self, ui: &mut egui::Ui, number: usize, groups: &[&KeyGroup]) {
        egui::Grid::new(("keys", number)).num_columns(2).spacing([18.0, 2.0]).show(ui, |ui| {
            for group in groups {
                ui.label(egui::RichText::new(group.title).color(color32(self.theme().trace(1))));
                ui.end_row();
                for line in group.keys {
                    ui.label(egui::RichText::new(line.shown).monospace());
                    ui.label(line.words);
                    ui.end_row();
                }
            }
        });
    }
}

/// The groups in their order, in columns of about the same height, as many as the width has room for.
fn columns<'a>(groups: &'a [&'a KeyGroup], width: f32) -> Vec<&'a [&'a KeyGroup]> {
    let count = ((width / COLUMN_WIDTH) as usize).clamp(1, groups.len());
    let rows = |groups: &[&KeyGroup]| groups.iter().map(|group| group.keys.len() + 1).sum::<usize>();
    let fill = |height: usize| {
        let (mut columns, mut rest) = (Vec::new(), groups);
        while !rest.is_empty() {
            let fits = |&taken: &usize| taken == 1 || rows(&rest[..taken]) <= height;
            let taken = (1..=rest.len()).take_while(fits).last().unwrap_or(1);
            columns.push(&rest[..taken]);
            rest = &rest[taken..];
        }
        columns
    };
    // All of them fit into one column of their height.
    (1..=rows(groups)).map(fill).find(|columns| columns.len() <= count).unwrap_or_default()
}

/// The name of a key that types no character, as in the list of keys.
fn key_name(key: egui::Key, has_shift: bool) -> Option<&'static str> {
    Some(match key {
        egui::Key::ArrowLeft if has_shift => "Shift+ArrowLeft",
        egui::Key::ArrowRight if has_shift => "Shift+ArrowRight",
        egui::Key::ArrowUp if has_shift => "Shift+ArrowUp",
        egui::Key::ArrowDown if has_shift => "Shift+ArrowDown",
        egui::Key::Space => " ",
        egui::Key::ArrowLeft => "ArrowLeft",
        egui::Key::ArrowRight => "ArrowRight",
        egui::Key::ArrowUp => "ArrowUp",
        egui::Key::ArrowDown => "ArrowDown",
        egui::Key::PageUp => "PageUp",
        egui::Key::PageDown => "PageDown",
        egui::Key::End => "End",
        egui::Key::Home => "Home",
        egui::Key::Escape => "Escape",
        egui::Key::Enter => "Enter",
        egui::Key::Delete => "Delete",
        egui::Key::Backspace => "Backspace",
        egui::Key::F2 => "F2",
        egui::Key::F4 => "F4",
        egui::Key::F6 => "F6",
        egui::Key::F7 => "F7",
        egui::Key::F8 => "F8",
        egui::Key::F9 => "F9",
        _ => return None,
    })
}

/// Ctrl with these ends the scope, as elsewhere.
fn is_quit(key: egui::Key, modifiers: egui::Modifiers) -> bool {
    modifiers.ctrl && matches!(key, egui::Key::C | egui::Key::Q | egui::Key::W)
}

/// Of the longest keys and words, in points.
const COLUMN_WIDTH: f32 = 350.0;
