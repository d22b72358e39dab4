//! The trigger's controls above the traces: mode, source, level, coupling and holdoff.

use eframe::egui::containers::menu::{MenuButton, MenuConfig};
use eframe::egui::{self, RichText};

use super::head::row_width;
use super::lanes::color32;
use super::panes::ScopePanes;
use super::style;
use crate::data::trigger::TriggerState;
use crate::model::action::Action;
use crate::model::bars::trigger_modes;
use crate::model::panels::trigger_input;
use crate::model::setting::Setting;

impl ScopePanes {
    pub(super) fn trigger(&mut self, ui: &mut egui::Ui) {
        let theme = self.theme();
        let start = ui.cursor().left_top();
        ui.label(RichText::new("trigger").color(color32(theme.text_dim)));
        let modes = trigger_modes(&self.model);
        self.widgets(ui, &modes);
        if self.model.has_finder() {
            let hint = "search all of the history for it  (\")";
            self.button(ui, "find", hint, Action::Find);
        }
        if let Some(trigger) = self.model.seen.hud.trigger.clone() {
            let source = format!("{} {}", trigger.source, trigger.level);
            let hint =
                "the channel that triggers  (r); drag its level at the right edge  (\u{2191} \u{2193} 0)";
            self.choice(ui, source, hint, Setting::TriggerLane);
            self.button(ui, trigger.slope, "the other direction  (e)", Action::Slope);
            let kind = format!("{} {}", trigger.kind.name(), trigger.time);
            let hint = "type of trigger: edge, pulse, runt, window or dropout  (b)";
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
        if self.model.seen.hud.trigger.is_some() {
            let rows = trigger_input(&self.model);
            self.columns(ui, "trigger sees", 5.0, &rows);
        }
    }
}
