//! The panel of a search of the whole history: its progress and its results.

use eframe::egui::{self, RichText};

use super::lanes::color32;
use super::panes::ScopePanes;
use crate::data::finding::FoundEvent;
use crate::model::action::Action;
use crate::model::action::Question;
use crate::model::panels;
use crate::model::widget::Widget;

impl ScopePanes {
    pub(super) fn found_panel(&mut self, ui: &mut egui::Ui) {
        let theme = self.theme();
        let Some(panel) = panels::panels(&self.model).into_iter().find(|panel| panel.name == "find") else {
            self.listed_event = None;
            return;
        };
        let close =
            if panel.close.title.starts_with("close") { "close the search" } else { "end the search" };
        self.panel_head(ui, "find", &Widget { title: close.into(), ..panel.close });
        let form = panels::find_rows(&self.model);
        if let Some((last, fields)) = form.split_last() {
            self.columns(ui, "find form", 4.0, fields);
            ui.horizontal(|ui| self.widgets(ui, last));
        }
        let Some(found) = &self.model.open.found else { return };
        let (words, state, events) = (found.words.clone(), found.state_words(), found.events.len());
        if ui
            .button(RichText::new(words).monospace())
            .on_hover_text("search for something else  (\")")
            .clicked()
        {
            self.model.act(Action::Ask(Question::Find));
        }
        ui.label(RichText::new(state).color(color32(theme.text_dim)));
        ui.horizontal(|ui| {
            self.button(ui, "earlier", "the previous result  ({)", Action::Segment(-1));
            self.button(ui, "later", "the next result  (})", Action::Segment(1));
        });
        self.found_rows(ui, events);
    }

    /// Draws as many lines as fit, so that no frame lays out a list of thousands.
    fn found_rows(&mut self, ui: &mut egui::Ui, count: usize) {
        let event = |panes: &ScopePanes, place: usize| {
            panes.model.open.found.as_ref().and_then(|it| it.events.get(place).copied())
        };
        let shown =
            (0..count).find(|&place| event(self, place).is_some_and(|it| self.model.is_found_shown(it)));
        let height = ui.spacing().interact_size.y;
        let mut rows = egui::ScrollArea::vertical()
            .id_salt("found")
            .max_height(ROWS * (height + ui.spacing().item_spacing.y));
        if let Some(place) = shown.filter(|&place| self.listed_event.replace(place) != Some(place)) {
            let above = (place as f32 - ROWS / 2.0).max(0.0);
            rows = rows.vertical_scroll_offset(above * (height + ui.spacing().item_spacing.y));
        }
        let mut chosen: Option<FoundEvent> = None;
        rows.show_rows(ui, height, count, |ui, places| {
            for place in places {
                let Some(event) = event(self, place) else { continue };
                let is_there = event.index >= self.model.seen.picture.oldest_index;
                let words = if is_there { self.model.event_words(event) } else { "no longer held".into() };
                let line = ui.selectable_label(shown == Some(place), RichText::new(words).monospace());
                if line.on_hover_text("show it  ({ and })").clicked() {
                    chosen = Some(event);
                }
            }
        });
        if let Some(event) = chosen {
            self.model.show_found(event);
        }
    }
}

/// Visible lines of the list.
const ROWS: f32 = 14.0;
