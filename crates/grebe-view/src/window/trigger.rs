//! The trigger's controls above the traces: mode, source, level, coupling and holdoff.

use eframe::egui::containers::menu::{MenuButton, MenuConfig};
use eframe::egui::{self, RichText};
use grebe_scope::Engineering;

use super::lanes::color32;
use super::panes::ScopePanes;
use super::style;
use crate::data::trigger::{TriggerMode, TriggerState};
use crate::model::action::{Action, Step};
use crate::model::hud::DC;

impl ScopePanes {
    /// Right to left.
    pub(super) fn trigger(&mut self, ui: &mut egui::Ui) {
        let theme = self.theme();
        let mut wanted = None;
        if let Some(trigger) = self.model.hud.trigger.clone() {
            let color = match trigger.state {
                TriggerState::Triggered => style::good(self.model.controls.theme),
                TriggerState::Ready | TriggerState::Stopped => style::held(self.model.controls.theme),
                TriggerState::Free => color32(theme.text_dim),
            };
            let word = RichText::new(trigger.state_word()).monospace().color(color);
            ui.add_sized([76.0, 18.0], egui::Label::new(word));
            let hint = "the last triggers, to be looked at again  (g)";
            let list = ui.selectable_label(self.model.controls.show.segments, "list");
            if list.on_hover_text(hint).clicked() {
                wanted = Some(Action::Segments);
            }
            let mut sees = trigger.coupling.clone();
            if !trigger.holdoff.is_empty() {
                sees += &format!(" \u{b7} {}", trigger.holdoff);
            }
            let config = MenuConfig::new().close_behavior(egui::PopupCloseBehavior::CloseOnClickOutside);
            let (menu, _) = MenuButton::new(sees).config(config).ui(ui, |ui| self.trigger_input(ui));
            menu.on_hover_text("coupling of the trigger  (L), and its holdoff  (; :)");
            let kind = ui.button(trigger.kind.name());
            if kind.on_hover_text("edge, pulse, runt, window or dropout  (b)").clicked() {
                wanted = Some(Action::TriggerKind);
            }
            let slope = ui.button(trigger.slope).on_hover_text("the other direction  (e)");
            if slope.clicked() {
                wanted = Some(Action::Slope);
            }
            let source = format!("{} {}", trigger.source, trigger.level);
            let hint = "next trigger channel  (r); drag its level at the right edge  (\u{2191} \u{2193} 0)";
            if ui.button(source).on_hover_text(hint).clicked() {
                wanted = Some(Action::Source);
            }
        }
        let mode = self.model.controls.mode(&self.model.picture);
        for (choice, name, hint) in MODES {
            if ui.selectable_label(mode == choice, name).on_hover_text(hint).clicked() {
                wanted = Some(Action::Trigger(choice));
            }
        }
        ui.label(RichText::new("trigger").color(color32(theme.text_dim)));
        self.trigger_width = ui.min_rect().width();
        if let Some(action) = wanted {
            self.model.act(action);
        }
    }

    /// Coupling and holdoff: in a menu, and above the list of the last triggers.
    pub(super) fn trigger_input(&mut self, ui: &mut egui::Ui) {
        let Some(trigger) = &self.model.hud.trigger else { return };
        let is_dc = trigger.coupling == DC;
        let settings = self.model.controls.trigger.settings;
        let unit = self.model.picture.axis_unit();
        let hertz = if unit == "s" { "Hz" } else { "/S" };
        let corner = settings.coupling.corner_hz(self.model.picture.span());
        let corner = corner.map_or("\u{2013}".into(), |corner| Engineering::new(corner, hertz).to_string());
        let holdoff = match settings.holdoff_s > 0.0 {
            true => Engineering::new(settings.holdoff_s, unit).to_string(),
            false => "none".into(),
        };
        let dim = color32(self.theme().text_dim);
        let mut wanted = None;
        egui::Grid::new("trigger sees").num_columns(2).spacing([8.0, 5.0]).show(ui, |ui| {
            ui.label(RichText::new("coupling").color(dim));
            ui.horizontal(|ui| {
                let all = ui.selectable_label(is_dc, DC).on_hover_text("all of the signal  (L)");
                let hint = "without the slow part, on which a level would slip  (L)";
                let fast = ui.selectable_label(!is_dc, "LF reject").on_hover_text(hint);
                if (all.clicked() && !is_dc) || (fast.clicked() && is_dc) {
                    wanted = Some(Action::TriggerCoupling);
                }
            });
            ui.end_row();
            if !is_dc {
                ui.label(RichText::new("below").color(dim));
                let hints = ["takes less off", "takes more off"];
                wanted =
                    stepper(ui, &corner, hints, ["lower corner", "higher corner"], Action::Corner).or(wanted);
                ui.end_row();
            }
            ui.label(RichText::new("holdoff").color(dim)).on_hover_text("no trigger so long after one");
            let hints = ["shorter  (;)", "longer  (:)"];
            let names = ["shorter holdoff", "longer holdoff"];
            wanted = stepper(ui, &holdoff, hints, names, Action::Holdoff).or(wanted);
            ui.end_row();
        });
        if let Some(action) = wanted {
            self.model.act(action);
        }
    }
}

/// A value between two buttons.
fn stepper(
    ui: &mut egui::Ui,
    value: &str,
    hints: [&str; 2],
    names: [&'static str; 2],
    action: impl Fn(Step) -> Action,
) -> Option<Action> {
    let mut wanted = None;
    ui.horizontal(|ui| {
        let mut button = |ui: &mut egui::Ui, sign: &str, place: usize, step: Step| {
            let response = ui.button(sign).on_hover_text(hints[place]);
            response.ctx.accesskit_node_builder(response.id, |node| node.set_label(names[place]));
            if response.clicked() {
                wanted = Some(action(step));
            }
        };
        button(ui, "\u{2212}", 0, Step::Down);
        ui.add_sized([64.0, 18.0], egui::Label::new(RichText::new(value).monospace()));
        button(ui, "+", 1, Step::Up);
    });
    wanted
}

/// Right to left, as they are laid out.
const MODES: [(TriggerMode, &str, &str); 4] = [
    (TriggerMode::Single, "single", "hold the next trigger; press again for another  (s)"),
    (TriggerMode::Normal, "normal", "a picture at each trigger, and only then  (m)"),
    (TriggerMode::Auto, "auto", "a picture at each trigger, or without where none comes  (m)"),
    (TriggerMode::Roll, "roll", "no trigger: the newest samples at the right edge  (m)"),
];
