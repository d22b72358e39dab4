//! Draws the widgets of the model: words, buttons and fields, in rows and in tables of two columns.

use eframe::egui::{self, RichText, TextEdit, vec2};

use super::labels::name_it;
use super::lanes::color32;
use super::panes::ScopePanes;
use crate::model::action::Action;
use crate::model::fields::Field;
use crate::model::widget::{Press, Widget};

impl ScopePanes {
    /// Draws a row. Labels before buttons are aligned in all rows.
    pub(super) fn row(&mut self, ui: &mut egui::Ui, row: &[Widget]) {
        ui.horizontal(|ui| {
            let words = row.first().filter(|it| it.act.is_none() && it.field.is_none());
            if let Some(words) = words {
                row_label(ui, &words.words, color32(self.theme().text_dim));
            }
            self.widgets(ui, &row[usize::from(words.is_some())..]);
        });
    }

    /// Draws rows of two columns: labels, and the elements after them.
    pub(super) fn columns(
        &mut self,
        ui: &mut egui::Ui,
        id: impl egui::AsIdSalt,
        gap: f32,
        rows: &[Vec<Widget>],
    ) {
        egui::Grid::new(id).num_columns(2).spacing([8.0, gap]).show(ui, |ui| {
            for row in rows {
                let Some((words, rest)) = row.split_first() else { continue };
                self.widget(ui, words);
                match rest {
                    [one] => drop(self.widget(ui, one)),
                    some => drop(ui.horizontal(|ui| self.widgets(ui, some))),
                }
                ui.end_row();
            }
        });
    }

    pub(super) fn widgets(&mut self, ui: &mut egui::Ui, row: &[Widget]) {
        row.iter().for_each(|widget| drop(self.widget(ui, widget)));
    }

    pub(super) fn widget(&mut self, ui: &mut egui::Ui, widget: &Widget) -> egui::Response {
        if let Some(field) = widget.field {
            return self.field(ui, widget, field);
        }
        let is_number = !widget.words.is_empty() && widget.words.bytes().all(|it| it.is_ascii_digit());
        let mut words = RichText::new(&widget.words);
        if is_number || matches!(widget.class, "arrow" | "entry") {
            words = words.monospace();
        }
        if let Some([r, g, b]) = widget.color {
            words = words.color(egui::Color32::from_rgb(r, g, b));
        }
        let press = match &widget.act {
            None => {
                let label = ui.label(words.color(color32(self.theme().text_dim)));
                return if widget.title.is_empty() { label } else { label.on_hover_text(&widget.title) };
            }
            Some(Press::Act(Action::Choices(setting))) => {
                return self.choice(ui, words, &widget.title, *setting);
            }
            Some(press) => press,
        };
        let button = match widget.is_on {
            Some(is_on) => egui::Button::selectable(is_on, words),
            None if widget.class == "small" => egui::Button::new(words).small(),
            None => egui::Button::new(words),
        };
        let button = ui.add_enabled(!widget.is_off, button).on_hover_text(&widget.title);
        if matches!(widget.words.as_str(), "\u{2212}" | "+" | "\u{d7}") {
            // A sign alone means nothing to a screen reader.
            name_it(&button, widget.title.split("  (").next().unwrap_or_default());
        }
        if button.clicked() {
            self.model.press(press.clone());
        }
        button
    }

    /// Draws a field. Invalid text is red while it is typed, and changes nothing.
    fn field(&mut self, ui: &mut egui::Ui, widget: &Widget, field: Field) -> egui::Response {
        let id = self.id.with(("field", &widget.title));
        let is_edited = self.typed.as_ref().is_some_and(|(typed, _)| *typed == id);
        let shown = widget.words.clone();
        let mut text = if is_edited { self.typed.take().map_or(shown, |(_, text)| text) } else { shown };
        let takes = self.model.takes(field, &text);
        let color = if takes { self.theme().text } else { self.theme().gap };
        let edit = TextEdit::singleline(&mut text).id(id).text_color(color32(color));
        let edit = match field {
            Field::Unit(_) => ui.add(edit.desired_width(90.0).hint_text("counts")),
            _ if field.is_of_annotations() => ui.add(edit.desired_width(170.0)),
            _ if field.is_text() => ui.add(edit.desired_width(90.0)),
            _ => ui.add(edit.desired_width(84.0).font(egui::TextStyle::Monospace)),
        };
        name_it(&edit, widget.title.split([';', ':']).next().unwrap_or_default());
        self.is_typing |= edit.has_focus();
        if field.is_text() {
            if edit.changed() {
                // Text applies while it is typed.
                let _ = self.model.set_field(field, &text);
            }
            return edit;
        }
        let hint = match takes {
            true => "a number, with a prefix and the unit if you like: 150u",
            false => "invalid here: the value does not change",
        };
        let edit = edit.on_hover_text(hint);
        let is_given_up = ui.input(|input| input.key_pressed(egui::Key::Escape));
        if edit.has_focus() {
            self.typed = Some((id, text));
        } else if takes && is_edited && edit.lost_focus() && !is_given_up {
            let _ = self.model.set_field(field, &text);
        }
        edit
    }
}

fn row_label(ui: &mut egui::Ui, text: &str, color: egui::Color32) {
    let left_to_right = egui::Layout::left_to_right(egui::Align::Center);
    ui.allocate_ui_with_layout(vec2(LABEL_WIDTH, 18.0), left_to_right, |ui| {
        ui.set_min_width(LABEL_WIDTH);
        ui.label(RichText::new(text).color(color));
    });
}

/// Width of the labels before buttons.
const LABEL_WIDTH: f32 = 52.0;
