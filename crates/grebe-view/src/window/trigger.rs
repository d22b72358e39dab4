//! The trigger's controls above the traces: mode, source, level, coupling and holdoff.

use eframe::egui::containers::menu::{MenuButton, MenuConfig};
use eframe::egui::{self, RichText};

use super::head::row_width;
use super::labels::name_it;
use super::lanes::color32;
use super::panes::ScopePanes;
use super::style;
use crate::data::trigger::{TriggerCoupling, TriggerKind, TriggerMode, TriggerState};
use crate::model::action::Question;
use crate::model::action::{Action, Step};
use crate::model::seen::hud::DC;
use crate::model::setting::Setting;

impl ScopePanes {
    pub(super) fn trigger(&mut self, ui: &mut egui::Ui) {
        let theme = self.theme();
        let start = ui.cursor().left_top();
        ui.label(RichText::new("trigger").color(color32(theme.text_dim)));
        let mode = self.model.controls.mode(&self.model.seen.picture);
        for (choice, name, hint) in MODES {
            self.toggle(ui, mode == choice, name, hint, Action::Trigger(choice));
        }
        if self.model.has_finder() {
            let hint = "search all of the history for it  (\")";
            self.button(ui, "find", hint, Action::Ask(Question::Find));
        }
        if let Some(trigger) = self.model.seen.hud.trigger.clone() {
            let source = format!("{} {}", trigger.source, trigger.level);
            let hint =
                "the channel that triggers  (r); drag its level at the right edge  (\u{2191} \u{2193} 0)";
            self.choice(ui, source, hint, Setting::TriggerLane);
            self.button(ui, trigger.slope, "the other direction  (e)", Action::Slope);
            let kind = format!("{} {}", trigger.kind.name(), trigger.time);
            let hint = "what triggers: edge, pulse, runt, window or dropout  (b)";
            self.choice(ui, kind.trim_end(), hint, Setting::TriggerKind);
            let mut sees = trigger.coupling.clone();
            if !trigger.holdoff.is_empty() {
                sees += &format!(" \u{b7} {}", trigger.holdoff);
            }
            let config = MenuConfig::new().close_behavior(egui::PopupCloseBehavior::CloseOnClickOutside);
            let (menu, _) = MenuButton::new(sees).config(config).ui(ui, |ui| self.trigger_input(ui));
            menu.on_hover_text("coupling of the trigger  (L), its holdoff  (; :), its times  (T)");
            let hint = "the last triggers, to be looked at again  (g)";
            self.toggle(ui, self.model.controls.show.segments, "list", hint, Action::Segments);
            let color = match trigger.state {
                TriggerState::Triggered => style::good(self.model.controls.theme),
                TriggerState::Ready | TriggerState::Stopped => style::held(self.model.controls.theme),
                TriggerState::Free => color32(theme.text_dim),
            };
            let word = RichText::new(trigger.state_word()).monospace().color(color);
            ui.add_sized([76.0, 18.0], egui::Label::new(word));
        }
        self.trigger_width = row_width(ui, start, self.trigger_width);
    }

    /// Coupling and holdoff: in a menu, and above the list of the last triggers.
    pub(super) fn trigger_input(&mut self, ui: &mut egui::Ui) {
        let Some(trigger) = &self.model.seen.hud.trigger else { return };
        let is_dc = trigger.coupling == DC;
        let settings = self.model.controls.trigger.settings;
        let unit = self.model.seen.picture.axis_unit();
        let hertz = if unit == "s" { "Hz" } else { "/S" };
        let corner = settings.coupling.corner_hz(self.model.seen.picture.span());
        let corner = corner.unwrap_or(1.0);
        let dim = color32(self.theme().text_dim);
        egui::Grid::new("trigger sees").num_columns(2).spacing([8.0, 5.0]).show(ui, |ui| {
            ui.label(RichText::new("coupling").color(dim));
            ui.horizontal(|ui| {
                let all = ui.selectable_label(is_dc, DC).on_hover_text("all of the signal  (L)");
                let hint = "without the slow part, on which a level would slip  (L)";
                let fast = ui.selectable_label(!is_dc, "LF reject").on_hover_text(hint);
                if (all.clicked() && !is_dc) || (fast.clicked() && is_dc) {
                    self.model.act(Action::TriggerCoupling);
                }
            });
            ui.end_row();
            if !is_dc {
                ui.label(RichText::new("below").color(dim));
                let words = [("lower corner", "takes less off"), ("higher corner", "takes more off")];
                if let Some(typed) = self.stepper(ui, "corner", (corner, hertz), words, Action::Corner) {
                    let corner_hz = Some(typed);
                    self.model.controls.trigger.settings.coupling = TriggerCoupling::LfReject { corner_hz };
                }
                ui.end_row();
            }
            self.trigger_hysteresis(ui);
            ui.label(RichText::new("holdoff").color(dim)).on_hover_text("no trigger so long after one");
            let words = [("shorter holdoff", "shorter  (;)"), ("longer holdoff", "longer  (:)")];
            if let Some(typed) =
                self.stepper(ui, "holdoff", (settings.holdoff_s, unit), words, Action::Holdoff)
            {
                self.model.controls.trigger.settings.holdoff_s = typed;
            }
            ui.end_row();
            self.trigger_times(ui);
        });
    }

    /// How far the signal goes back before it triggers again; 0 leaves it to the scope.
    fn trigger_hysteresis(&mut self, ui: &mut egui::Ui) {
        let Some(trigger) = self.model.seen.picture.trigger else { return };
        let (value, unit) = self.model.trigger_hysteresis(&trigger);
        let hint =
            "how far the signal goes back before it triggers again; 0: 0.3 divisions, more where it is noisy";
        let dim = color32(self.theme().text_dim);
        ui.label(RichText::new("hysteresis").color(dim)).on_hover_text(hint);
        if let Some(typed) = self.quantity(ui, "hysteresis", (value, &unit), |value| value >= 0.0) {
            let per_count = self.model.setup(trigger.settings.lane).scale.abs();
            let settings = &mut self.model.controls.trigger.settings;
            settings.hysteresis = Some(typed / per_count).filter(|counts| *counts > 0.0);
        }
        ui.end_row();
    }

    /// How wide a pulse is, or how long a dropout; 0 leaves it to the scope.
    fn trigger_times(&mut self, ui: &mut egui::Ui) {
        let settings = self.model.controls.trigger.settings;
        let unit = self.model.seen.picture.axis_unit();
        let dim = color32(self.theme().text_dim);
        let mut field = |ui: &mut egui::Ui, name: &'static str, now: Option<f64>, hint: &str| {
            ui.label(RichText::new(name).color(dim)).on_hover_text(hint);
            let typed = self.quantity(ui, name, (now.unwrap_or(0.0), unit), |time| time >= 0.0);
            ui.end_row();
            typed.map_or(now, |time| Some(time).filter(|time| *time > 0.0))
        };
        let (mut min, mut max, mut dropout) =
            (settings.pulse_min_s, settings.pulse_max_s, settings.dropout_s);
        match settings.kind {
            TriggerKind::Pulse => {
                min = field(ui, "longer than", min, "pulses of this width or wider  (T)");
                max =
                    field(ui, "shorter than", max, "pulses of this width or narrower; 0: of a division  (T)");
            }
            TriggerKind::Dropout => {
                dropout = field(ui, "without edge for", dropout, "0: a division  (T)");
            }
            _ => {}
        }
        let settings = &mut self.model.controls.trigger.settings;
        (settings.pulse_min_s, settings.pulse_max_s, settings.dropout_s) = (min, max, dropout);
    }

    /// A quantity between two buttons; each has a name and a hint. Returns what was typed.
    fn stepper(
        &mut self,
        ui: &mut egui::Ui,
        name: &'static str,
        quantity: (f64, &str),
        [down, up]: [(&'static str, &str); 2],
        action: impl Fn(Step) -> Action,
    ) -> Option<f64> {
        let stepped = |panes: &mut ScopePanes, ui: &mut egui::Ui, sign: &str, (name, hint), step| {
            let response = ui.button(sign).on_hover_text(hint);
            name_it(&response, name);
            if response.clicked() {
                panes.model.act(action(step));
            }
        };
        let row = ui.horizontal(|ui| {
            stepped(self, ui, "\u{2212}", down, Step::Down);
            let typed = self.quantity(ui, name, quantity, |value| value >= 0.0);
            stepped(self, ui, "+", up, Step::Up);
            typed
        });
        row.inner
    }
}

const MODES: [(TriggerMode, &str, &str); 4] = [
    (TriggerMode::Roll, "roll", "no trigger: the newest samples at the right edge  (m)"),
    (TriggerMode::Auto, "auto", "a picture at each trigger, or without where none comes  (m)"),
    (TriggerMode::Normal, "normal", "a picture at each trigger, and only then  (m)"),
    (TriggerMode::Single, "single", "hold the next trigger; press again for another  (s)"),
];
