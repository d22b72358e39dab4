//! The two rows above the traces: state, stream and time base; rates, losses and trigger.

use eframe::egui::containers::menu::{MenuButton, MenuConfig};
use eframe::egui::{self, Color32};

use super::lanes::color32;
use super::panes::ScopePanes;
use super::style;
use crate::model::action::{Action, SaveWhat, Step};
use crate::model::channel::ThemeChoice;
use crate::model::generator::GeneratorWish;
use crate::model::hud::{RunState, Tone};

impl ScopePanes {
    pub(super) fn head(&mut self, ui: &mut egui::Ui) {
        egui::Frame::NONE.inner_margin(egui::Margin::symmetric(10, 6)).show(ui, |ui| {
            let mut is_notice_below = false;
            ui.horizontal(|ui| {
                self.state_chip(ui);
                ui.strong(&self.model.hud.source);
                ui.label(&self.model.hud.stream);
                let dim = color32(self.theme().text_dim);
                if self.model.hud.notice.is_none() && ui.available_width() > self.buttons_width + 200.0 {
                    ui.label(egui::RichText::new(&self.model.hud.costs).monospace().color(dim));
                }
                if let Some(notice) = &self.model.hud.notice {
                    let room = ui.available_width() - self.buttons_width - 16.0;
                    let font = egui::TextStyle::Body.resolve(ui.style());
                    let galley = ui.painter().layout_no_wrap(notice.clone(), font, Color32::WHITE);
                    is_notice_below = galley.size().x > room;
                    if !is_notice_below {
                        self.notice(ui, notice);
                    }
                }
                let right_to_left = egui::Layout::right_to_left(egui::Align::Center);
                let buttons = ui.with_layout(right_to_left, |ui| {
                    self.buttons(ui);
                    ui.min_rect().width()
                });
                self.buttons_width = buttons.inner;
            });
            if let Some(notice) = self.model.hud.notice.as_ref().filter(|_| is_notice_below) {
                self.notice(ui, notice);
            }
            let right_to_left = egui::Layout::right_to_left(egui::Align::Center);
            let has_room = ui.horizontal(|ui| {
                self.facts(ui);
                let has_room = ui.available_width() > self.trigger_width + 12.0;
                if has_room {
                    ui.with_layout(right_to_left, |ui| self.trigger(ui));
                }
                has_room
            });
            if !has_room.inner {
                ui.horizontal(|ui| ui.with_layout(right_to_left, |ui| self.trigger(ui)));
            }
        });
    }

    fn notice(&self, ui: &mut egui::Ui, notice: &str) {
        let color = style::held(self.model.controls.theme);
        ui.add(egui::Label::new(egui::RichText::new(notice).color(color)).truncate());
    }

    fn state_chip(&self, ui: &mut egui::Ui) {
        let (theme, choice) = (self.theme(), self.model.controls.theme);
        let fill = match self.model.hud.state {
            RunState::Live => style::good(choice),
            RunState::Paused => style::held(choice),
            RunState::Stale => color32(theme.gap),
            RunState::Waiting | RunState::Ended => color32(theme.text_dim),
        };
        egui::Frame::NONE.fill(fill).corner_radius(4).inner_margin(egui::Margin::symmetric(7, 2)).show(
            ui,
            |ui| {
                ui.label(
                    egui::RichText::new(self.model.hud.state.word())
                        .monospace()
                        .strong()
                        .color(style::on_chip(&theme)),
                )
            },
        );
    }

    fn buttons(&mut self, ui: &mut egui::Ui) {
        self.button(ui, "?", "keys  (?)", Action::Help);
        let other = match self.model.controls.theme {
            ThemeChoice::Dark => "light",
            ThemeChoice::Light => "dark",
        };
        self.button(ui, other, "colours  (t)", Action::Theme);
        ui.menu_button("save", |ui| {
            for (text, what) in [
                ("picture (PNG)  S", SaveWhat::Picture),
                ("samples (CSV)  D", SaveWhat::Samples),
                ("measurements (CSV)  M", SaveWhat::Measurements),
                ("recording (SigMF)  R", SaveWhat::Recording),
            ] {
                if ui.button(text).clicked() {
                    self.model.act(Action::Save(what));
                    ui.close();
                }
            }
        });
        if self.model.generator.is_there() {
            let config = MenuConfig::new().close_behavior(egui::PopupCloseBehavior::CloseOnClickOutside);
            MenuButton::new("generator").config(config).ui(ui, |ui| self.generator_menu(ui));
        }
        self.cursor_menu(ui);
        let (show, is_measuring) = (self.model.controls.show, self.model.controls.is_measuring);
        self.toggle(ui, show.channel_panel, "channels", "names, scales, colours  (l)", Action::Channels);
        let hint = "levels by frequency  (f); the waterfall too  (w)";
        self.toggle(ui, show.spectrum, "spectrum", hint, Action::Spectrum);
        self.toggle(ui, show.waterfall, "waterfall", "levels by frequency and time  (w)", Action::Waterfall);
        let hint = "a table of measurements  (v), with statistics  (V)";
        self.toggle(ui, is_measuring, "measure", hint, Action::Measure);
        let run = if self.model.controls.time.is_held() { "run" } else { "pause" };
        self.button(ui, run, "hold the picture or go on  (space)", Action::Pause);
        ui.separator();
        self.button(ui, "+", "zoom in: shorter time span  (\u{2190} or +)", Action::Shorter);
        let division = egui::RichText::new(&self.model.hud.division).monospace();
        ui.add_sized([86.0, 18.0], egui::Label::new(division));
        self.button(ui, "\u{2212}", "zoom out: longer time span  (\u{2192} or -)", Action::Longer);
    }

    fn cursor_menu(&mut self, ui: &mut egui::Ui) {
        let config = MenuConfig::new().close_behavior(egui::PopupCloseBehavior::CloseOnClickOutside);
        let controls = &self.model.controls;
        let is_on = [controls.cursors.times.is_some(), controls.cursors.values.is_some()];
        let button = egui::Button::selectable(is_on.contains(&true), "cursors");
        let (menu, _) = MenuButton::from_button(button).config(config).ui(ui, |ui| {
            for ((text, action), is_on) in CURSORS.into_iter().zip(is_on) {
                if ui.selectable_label(is_on, text).clicked() {
                    self.model.act(action);
                }
            }
        });
        menu.on_hover_text("lines to measure between: times  (c), values  (C)");
    }

    /// Pause, rate and waveform of the generator.
    fn generator_menu(&mut self, ui: &mut egui::Ui) {
        let run = if self.model.generator.is_paused { "go on" } else { "pause" };
        self.button(ui, run, "make samples, or none  (G)", Action::GeneratorPause);
        ui.separator();
        ui.label("rate");
        ui.horizontal(|ui| {
            self.button(ui, "slower", "the next lower rate  (z)", Action::GeneratorRate(Step::Down));
            self.button(ui, "faster", "the next higher rate  (Z)", Action::GeneratorRate(Step::Up));
        });
        ui.separator();
        ui.label("waveform").on_hover_text("of all channels  (F)");
        for wave in self.model.generator.waves().to_vec() {
            if ui.selectable_label(self.model.generator.wave == Some(wave), wave).clicked() {
                self.model.tell_generator(GeneratorWish::Wave(wave));
            }
        }
    }

    fn facts(&self, ui: &mut egui::Ui) {
        let theme = self.theme();
        let (dim, plain) = (color32(theme.text_dim), color32(theme.text));
        let fact = |ui: &mut egui::Ui, label: &str, value: &str, color: Color32| {
            ui.spacing_mut().item_spacing.x = 5.0;
            if !label.is_empty() {
                ui.label(egui::RichText::new(label).color(dim));
            }
            ui.label(egui::RichText::new(value).monospace().color(color));
            ui.add_space(9.0);
        };
        for item in &self.model.hud.facts {
            fact(ui, item.label, &item.value, plain);
        }
        ui.separator();
        ui.label(egui::RichText::new("lost").color(dim));
        ui.add_space(3.0);
        for item in &self.model.hud.losses {
            let color = match item.tone {
                Tone::Bad => color32(theme.gap),
                Tone::Good => style::good(self.model.controls.theme),
                Tone::Plain => plain,
            };
            fact(ui, item.label, &item.value, color);
        }
    }
}

const CURSORS: [(&str, Action); 2] = [
    ("times, of all channels  c", Action::Cursors),
    ("values, of the selected channel  C", Action::ValueCursors),
];
