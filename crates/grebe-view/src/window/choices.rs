//! The open list, below its button, and the prompt.

use eframe::egui::{self, Align2, Rect, RichText, WidgetText, vec2};

use super::labels::name_it;
use super::lanes::color32;
use super::panes::ScopePanes;
use crate::model::action::Action;
use crate::model::setting::Setting;

impl ScopePanes {
    /// A button that opens the list of a setting.
    pub(super) fn choice(
        &mut self,
        ui: &mut egui::Ui,
        text: impl Into<WidgetText>,
        hint: &str,
        setting: Setting,
    ) -> egui::Response {
        let button = ui.button(text.into()).on_hover_text(hint);
        if button.clicked() {
            // The arrow keys belong to the list.
            button.surrender_focus();
            self.list_anchor = Some((setting, button.rect));
            self.model.act(Action::Choices(setting));
        }
        button
    }

    /// Draws the open list; without a button, at the head of the traces.
    pub(super) fn list(&mut self, ui: &egui::Ui, plot: Rect) {
        let Some(list) = self.model.list() else {
            self.list_anchor = None;
            return;
        };
        let anchor = self.list_anchor.filter(|(setting, _)| *setting == list.setting);
        let (pivot, at) = match anchor {
            Some((_, button)) => (Align2::LEFT_TOP, button.left_bottom() + vec2(0.0, 3.0)),
            None => (Align2::CENTER_TOP, plot.center_top() + vec2(0.0, 8.0)),
        };
        let theme = self.theme();
        let area = egui::Area::new(self.id.with(("list", list.setting.title())))
            .order(egui::Order::Foreground)
            .pivot(pivot)
            .fixed_pos(at);
        let shown = area.constrain(true).show(ui.ctx(), |ui| {
            egui::Frame::popup(ui.style()).show(ui, |ui| {
                ui.style_mut().wrap_mode = Some(egui::TextWrapMode::Extend);
                ui.label(RichText::new(self.model.list_title()).color(color32(theme.text_dim)));
                let room = (ui.ctx().content_rect().height() - 80.0).max(60.0);
                egui::ScrollArea::vertical().max_height(room).show(ui, |ui| {
                    for (place, entry) in self.model.list_entries().into_iter().enumerate() {
                        let is_marked = place == list.marked;
                        let line = self.list_line(ui, &entry.text, entry.is_on, is_marked, list.setting);
                        if line.clicked() {
                            self.model.act(Action::Choose(place));
                        }
                        if is_marked && self.listed_mark.replace(place) != Some(place) {
                            line.scroll_to_me(None);
                        }
                    }
                });
            })
        });
        let is_elsewhere = ui.input(|input| {
            let pressed = input.pointer.any_pressed().then(|| input.pointer.interact_pos()).flatten();
            let is_on_button = |at| anchor.is_some_and(|(_, button)| button.contains(at));
            pressed.is_some_and(|at| !shown.response.rect.contains(at) && !is_on_button(at))
        });
        if is_elsewhere {
            self.model.close_list();
        }
        if let Some(left_ns) = self.model.list_closes_in_ns() {
            ui.ctx().request_repaint_after(std::time::Duration::from_nanos(left_ns + 1_000_000));
        }
    }

    fn list_line(
        &self,
        ui: &mut egui::Ui,
        text: &str,
        is_on: bool,
        is_marked: bool,
        of: Setting,
    ) -> egui::Response {
        let text = if of == Setting::All { RichText::new(text).monospace() } else { RichText::new(text) };
        let line = match of.is_many() {
            true => {
                let mut is_on = is_on;
                ui.checkbox(&mut is_on, text)
            }
            false => ui.selectable_label(is_on, text),
        };
        if is_marked {
            let stroke = egui::Stroke::new(1.0, color32(self.theme().text_dim));
            ui.painter().rect_stroke(line.rect.expand(1.0), 3.0, stroke, egui::StrokeKind::Outside);
        }
        line
    }

    /// Opens a file that was dropped on the window.
    pub(super) fn take_dropped(&mut self, ui: &egui::Ui) {
        let dropped = ui.input(|input| input.raw.dropped_files.first().map(|file| file.path().to_owned()));
        if let Some(path) = dropped {
            self.model.drop_file(&path);
        }
    }

    /// Draws the prompt with its completions.
    pub(super) fn prompt(&mut self, ui: &egui::Ui) {
        let Some(mut prompt) = self.model.open.prompt.clone() else { return };
        let theme = self.theme();
        let mut is_answered = false;
        let id = self.id.with("prompt");
        // Tab completes, so it must not move to the next field.
        let is_completed = ui.input_mut(|input| input.consume_key(egui::Modifiers::NONE, egui::Key::Tab));
        if is_completed {
            self.model.complete();
            prompt = self.model.open.prompt.clone().unwrap_or(prompt);
        }
        egui::Area::new(id).order(egui::Order::Foreground).anchor(Align2::CENTER_TOP, vec2(0.0, 90.0)).show(
            ui.ctx(),
            |ui| {
                egui::Frame::popup(ui.style()).show(ui, |ui| {
                    ui.set_max_width(ui.ctx().content_rect().width().min(560.0) - 40.0);
                    let words =
                        ui.label(RichText::new(self.model.question_words()).color(color32(theme.text_dim)));
                    let field = id.with("field");
                    let edit =
                        egui::TextEdit::singleline(&mut prompt.text).id(field).desired_width(f32::INFINITY);
                    let edit = ui.add(edit.font(egui::TextStyle::Monospace)).labelled_by(words.id);
                    name_it(&edit, "answer");
                    if edit.changed() {
                        prompt.refused = None;
                    }
                    is_answered = edit.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
                    if is_completed {
                        let end = egui::text::CCursor::new(prompt.text.chars().count());
                        let mut state = egui::TextEdit::load_state(ui.ctx(), field).unwrap_or_default();
                        state.cursor.set_char_range(Some(egui::text::CCursorRange::one(end)));
                        state.store(ui.ctx(), field);
                    }
                    edit.request_focus();
                    if let Some(why) = &prompt.refused {
                        ui.label(RichText::new(why).color(color32(theme.gap)));
                    }
                    let names = self.model.candidates();
                    for name in names.iter().take(CANDIDATES_MAX) {
                        ui.label(RichText::new(name).monospace().color(color32(theme.text_dim)));
                    }
                    if names.len() > CANDIDATES_MAX {
                        ui.label(format!("\u{2026} {} more", names.len() - CANDIDATES_MAX));
                    }
                });
            },
        );
        self.is_typing = true;
        // Escape may have closed it.
        if self.model.open.prompt.is_some() {
            self.model.open.prompt = Some(prompt);
        }
        if is_answered {
            self.model.answer();
        }
        if self.model.open.prompt.is_none() {
            ui.memory_mut(|memory| memory.surrender_focus(id.with("field")));
        }
    }
}

const CANDIDATES_MAX: usize = 12;
