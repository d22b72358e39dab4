//! The two rows above the traces: state, stream and time base; rates, losses and trigger.

use eframe::egui::containers::menu::{MenuButton, MenuConfig};
use eframe::egui::{self, Color32, RichText};

use super::lanes::color32;
use super::panes::ScopePanes;
use super::style;
use crate::model::action::Question;
use crate::model::action::{Action, SaveWhat, Step};
use crate::model::bars::views;
use crate::model::channel::ThemeChoice;
use crate::model::generator::GeneratorWish;
use crate::model::receiver::Tunable;
use crate::model::seen::hud::{Item, RunState, Tone};
use crate::model::setting::Setting;

impl ScopePanes {
    /// Draws the rows. Items that do not fit into a row move to the next, without overlap.
    pub(super) fn head(&mut self, ui: &mut egui::Ui) {
        if ui.ctx().content_rect().height() < LOW {
            return self.small_head(ui);
        }
        egui::Frame::NONE.inner_margin(egui::Margin::symmetric(10, 6)).show(ui, |ui| {
            let has_room = ui.horizontal(|ui| {
                self.state_chip(ui);
                let source = elided(&self.model.seen.hud.source, SOURCE_CHARS_MAX);
                if self.model.has_sources() {
                    let words = RichText::new(source).strong();
                    self.choice(ui, words, "another source of this server  (&)", Setting::Source);
                } else {
                    ui.strong(source).on_hover_text(&self.model.seen.hud.source);
                }
                ui.label(&self.model.seen.hud.stream);
                let room = ui.available_width() - self.buttons_width - self.margin(0);
                let costs = &self.model.seen.hud.costs;
                if room > 184.0 && !costs.is_empty() {
                    let dim = color32(self.theme().text_dim);
                    ui.label(egui::RichText::new(costs).monospace().color(dim));
                }
                if room > 0.0 {
                    at_the_right(ui, self.buttons_width, |ui| self.buttons(ui));
                }
                room > 0.0
            });
            if !has_room.inner {
                ui.horizontal_wrapped(|ui| self.buttons(ui));
            }
            let room = ui.available_width() - self.facts_width - self.trigger_width - self.margin(1);
            self.is_folded = [!has_room.inner, room <= 0.0];
            if room > 0.0 {
                ui.horizontal(|ui| {
                    ui.scope(|ui| self.facts(ui));
                    at_the_right(ui, self.trigger_width, |ui| self.trigger(ui));
                });
            } else {
                ui.horizontal(|ui| self.facts(ui));
                ui.horizontal_wrapped(|ui| self.trigger(ui));
            }
        });
    }

    /// Two rows that scroll: in a small window, the traces need the rest.
    fn small_head(&mut self, ui: &mut egui::Ui) {
        egui::Frame::NONE.inner_margin(egui::Margin::symmetric(10, 4)).show(ui, |ui| {
            ui.horizontal(|ui| {
                self.state_chip(ui);
                let hud = &self.model.seen.hud;
                let words = format!("{}  {}", elided(&hud.source, SOURCE_CHARS_MAX), hud.stream);
                ui.add(egui::Label::new(words).truncate());
            });
            let row = egui::ScrollArea::horizontal().id_salt(self.id.with("head"));
            row.scroll_bar_visibility(egui::scroll_area::ScrollBarVisibility::AlwaysHidden).show(ui, |ui| {
                ui.horizontal(|ui| {
                    self.buttons(ui);
                    self.trigger(ui);
                });
            });
        });
    }

    /// Margin of a row beside its contents: larger once it is folded, so that a width at the limit does not flicker.
    fn margin(&self, row: usize) -> f32 {
        if self.is_folded[row] { 56.0 } else { 16.0 }
    }

    /// Draws the temporary message over the lower edge of the traces, so that nothing moves.
    pub(super) fn notice(&self, ui: &egui::Ui, plot: egui::Rect) {
        let Some(notice) = &self.model.seen.hud.notice else { return };
        let color = style::held(self.model.controls.theme);
        let theme = self.theme();
        egui::Area::new(self.id.with("notice"))
            .pivot(egui::Align2::CENTER_BOTTOM)
            .fixed_pos(plot.center_bottom() - egui::vec2(0.0, 8.0))
            .interactable(false)
            .show(ui.ctx(), |ui| {
                let frame = egui::Frame::NONE.fill(color32(theme.background).gamma_multiply(0.93));
                frame.corner_radius(4).inner_margin(egui::Margin::symmetric(8, 3)).show(ui, |ui| {
                    ui.set_max_width(plot.width() - 24.0);
                    ui.add(egui::Label::new(egui::RichText::new(notice).color(color)).truncate());
                });
            });
    }

    fn state_chip(&self, ui: &mut egui::Ui) {
        let (theme, choice) = (self.theme(), self.model.controls.theme);
        let fill = match self.model.seen.hud.state {
            RunState::Live | RunState::Recording => style::good(choice),
            RunState::Paused => style::held(choice),
            RunState::Stale => color32(theme.gap),
            RunState::Waiting | RunState::Ended => color32(theme.text_dim),
        };
        egui::Frame::NONE.fill(fill).corner_radius(4).inner_margin(egui::Margin::symmetric(7, 2)).show(
            ui,
            |ui| {
                ui.label(
                    egui::RichText::new(self.model.seen.hud.state.word())
                        .monospace()
                        .strong()
                        .color(style::on_chip(&theme)),
                )
            },
        );
    }

    fn buttons(&mut self, ui: &mut egui::Ui) {
        let start = ui.cursor().left_top();
        self.button(ui, "\u{2212}", "zoom out: longer time span  (\u{2192} or -)", Action::Longer);
        let division = egui::RichText::new(&self.model.seen.hud.division).monospace();
        ui.add_sized([86.0, 18.0], egui::Label::new(division));
        self.button(ui, "+", "zoom in: shorter time span  (\u{2190} or +)", Action::Shorter);
        self.button(ui, "fit", "whole recording or history  (home or *)", Action::FitAll);
        let hint = "time, scales and trigger as the signals ask for  (U)";
        self.button(ui, "autoset", hint, Action::Autoset);
        ui.separator();
        let run = if self.model.controls.time.is_held() { "run" } else { "pause" };
        self.button(ui, run, "hold the picture, or continue  (space)", Action::Pause);
        let views = views(&self.model);
        self.widgets(ui, &views);
        self.cursor_menu(ui);
        if self.model.generator.is_there() {
            let config = MenuConfig::new().close_behavior(egui::PopupCloseBehavior::CloseOnClickOutside);
            MenuButton::new("generator").config(config).ui(ui, |ui| self.generator_menu(ui));
        }
        if let Some(tuned) = self.model.options.receiver.as_ref().map(|receiver| (receiver.tuned)()) {
            ui.menu_button("receiver", |ui| {
                for (what, key) in Tunable::ALL.into_iter().zip(["$", "%", "^"]) {
                    if ui.button(format!("{}: {}  {key}", what.name(), tuned.text(what))).clicked() {
                        self.model.act(Action::Ask(Question::Tuning(what)));
                        ui.close();
                    }
                }
            });
        }
        ui.menu_button("save", |ui| {
            for (text, what) in [
                ("picture (PNG)  S", SaveWhat::Picture),
                ("samples (CSV)  D", SaveWhat::Samples),
                ("measurements (CSV)  M", SaveWhat::Measurements),
                ("recording (SigMF)  R", SaveWhat::Recording),
            ]
            .map(|(text, what)| (text.to_owned(), what))
            .into_iter()
            .chain(self.model.keep_entries())
            {
                if ui.button(text).clicked() {
                    self.model.act(Action::Save(what));
                    ui.close();
                }
            }
        });
        let other = match self.model.controls.theme {
            ThemeChoice::Dark => "light",
            ThemeChoice::Light => "dark",
        };
        self.button(ui, other, "colours  (t)", Action::Theme);
        self.button(ui, "?", "keys  (?)", Action::Help);
        self.buttons_width = row_width(ui, start, self.buttons_width);
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
        self.button(ui, run, "start or pause the generator  (G)", Action::GeneratorPause);
        ui.separator();
        ui.label("rate");
        ui.horizontal(|ui| {
            self.button(ui, "slower", "the next lower rate  (z)", Action::GeneratorRate(Step::Down));
            self.button(ui, "faster", "the next higher rate  (Z)", Action::GeneratorRate(Step::Up));
        });
        ui.separator();
        ui.label("waveform").on_hover_text("of all channels  (F)");
        for wave in self.model.generator.waves().to_vec() {
            if ui.selectable_label(self.model.generator.wave.as_ref() == Some(&wave), &wave).clicked() {
                self.model.tell_generator(GeneratorWish::Wave(wave));
            }
        }
    }

    /// Draws the live numbers in one row, because a changing number of rows would move the traces. If not all fit,
    /// losses come first, and a menu behind the dots has the rest.
    fn facts(&mut self, ui: &mut egui::Ui) {
        let theme = self.theme();
        let plain = color32(theme.text);
        let dim = |text: &str| RichText::new(text).color(color32(theme.text_dim));
        let mono = |text: &str, color: Color32| RichText::new(text).monospace().color(color);
        let facts = self.model.seen.hud.facts.iter().map(|item| (item, plain));
        let losses = self.model.seen.hud.losses.iter().map(|item| {
            let color = match item.tone {
                Tone::Bad => color32(theme.gap),
                Tone::Good => style::good(self.model.controls.theme),
                Tone::Plain => plain,
            };
            (item, color)
        });
        let (facts, losses): (Vec<_>, Vec<_>) = (facts.collect(), losses.collect());
        let widths = facts.iter().chain(&losses).map(|(item, _)| item_width(ui, item));
        let all = widths.sum::<f32>() + LOST_WIDTH;
        let room = ui.available_width();
        let has_room = all <= room;
        let mut left = if has_room { f32::INFINITY } else { room - LOST_WIDTH - DOTS_WIDTH };
        let groups = if has_room { [facts, losses] } else { [losses, facts] };
        ui.spacing_mut().item_spacing.x = 5.0;
        let mut hidden: Vec<String> = Vec::new();
        for (number, group) in groups.into_iter().enumerate() {
            if (number == 1) == has_room {
                if has_room {
                    ui.separator();
                }
                ui.label(dim("lost"));
                ui.add_space(3.0);
            }
            for (item, color) in group {
                left -= item_width(ui, item);
                if left < 0.0 || !hidden.is_empty() {
                    hidden.push(item.text());
                    continue;
                }
                if !item.label.is_empty() {
                    ui.label(dim(item.label));
                }
                ui.label(mono(&item.value, color));
                ui.add_space(GAP);
            }
        }
        if !hidden.is_empty() {
            ui.label(dim("\u{2026}")).on_hover_text(hidden.join("\n"));
        }
        self.facts_width = all;
    }
}

/// Width of a number with its name, and the space after it.
fn item_width(ui: &egui::Ui, item: &Item) -> f32 {
    let width = |text: &str, style: egui::TextStyle| {
        let font = style.resolve(ui.style());
        ui.painter().layout_no_wrap(text.to_owned(), font, Color32::WHITE).size().x
    };
    let value = width(&item.value, egui::TextStyle::Monospace);
    let label = match item.label {
        "" => 0.0,
        label => width(label, egui::TextStyle::Body) + 5.0,
    };
    label + value + 5.0 + GAP + 5.0
}

/// Lays out an item of this width at the right end of a row.
fn at_the_right(ui: &mut egui::Ui, width: f32, add: impl FnOnce(&mut egui::Ui)) {
    let row = ui.available_rect_before_wrap();
    let place = egui::Rect::from_min_max(egui::pos2(row.right() - width, row.top()), row.max);
    let layout = egui::Layout::left_to_right(egui::Align::Center);
    ui.scope_builder(egui::UiBuilder::new().max_rect(place).layout(layout), add);
}

/// The width of the items since `start`, if they are in one row; else the previous width. If it changed, the row is
/// laid out again.
pub(super) fn row_width(ui: &egui::Ui, start: egui::Pos2, before: f32) -> f32 {
    let width = ui.cursor().left() - start.x - ui.spacing().item_spacing.x;
    if width <= 0.0 || ui.cursor().top() > start.y + 4.0 {
        return before;
    }
    if (width - before).abs() > 0.5 {
        ui.ctx().request_repaint();
    }
    width
}

/// Shortens a text to `chars_max` characters; dots replace its middle.
fn elided(text: &str, chars_max: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= chars_max {
        return text.to_owned();
    }
    let half = chars_max / 2;
    let (head, tail) = (&chars[..half], &chars[chars.len() - half..]);
    head.iter().chain(&['\u{2026}']).chain(tail).collect()
}

/// Space between two numbers of the head.
const GAP: f32 = 9.0;
/// Width of the word before the losses with its line, and of the dots for hidden items.
const LOST_WIDTH: f32 = 52.0;
const DOTS_WIDTH: f32 = 24.0;
/// Of the source's name in the head.
/// Of a window, in points.
const LOW: f32 = 400.0;
const SOURCE_CHARS_MAX: usize = 40;

const CURSORS: [(&str, Action); 2] = [
    ("times, of all channels  c", Action::Cursors),
    ("values, of the selected channel  C", Action::ValueCursors),
];
