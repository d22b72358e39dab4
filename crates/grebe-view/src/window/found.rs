//! The panel of a search of all of the history: how far it came, and what it found.

use eframe::egui::{self, RichText};

use super::labels::name_it;
use super::lanes::color32;
use super::panes::ScopePanes;
use crate::data::finding::FoundEvent;
use crate::model::action::Action;
use crate::model::action::Question;

impl ScopePanes {
    pub(super) fn found_panel(&mut self, ui: &mut egui::Ui) {
        let theme = self.theme();
        let Some(found) = &self.model.open.found else {
            self.listed_event = None;
            return;
        };
        let (words, state, is_over) = (found.words.clone(), found.state_words(), found.is_over());
        let events = found.events.len();
        let mut is_ended = false;
        ui.horizontal(|ui| {
            ui.label(RichText::new("found").strong().color(color32(theme.text)));
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                let (mark, hint) =
                    if is_over { ("\u{d7}", "close  (esc)") } else { ("end", "look no further  (esc)") };
                let end = ui.small_button(mark).on_hover_text(hint);
                name_it(&end, if is_over { "close the search" } else { "end the search" });
                is_ended = end.clicked();
            });
        });
        if ui
            .button(RichText::new(words).monospace())
            .on_hover_text("search for something else  (\")")
            .clicked()
        {
            self.model.act(Action::Ask(Question::Find));
        }
        ui.label(RichText::new(state).color(color32(theme.text_dim)));
        ui.horizontal(|ui| {
            self.button(ui, "earlier", "what was found before  ({)", Action::Segment(-1));
            self.button(ui, "later", "what was found behind it  (})", Action::Segment(1));
        });
        self.found_rows(ui, events);
        if is_ended {
            self.model.end_find();
        }
    }

    /// As many lines as there is room for: a list of thousands is laid out in no picture.
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

/// Lines of the list that are seen.
const ROWS: f32 = 14.0;
