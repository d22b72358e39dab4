//! Annotations in the window: their panel, and boxes on the waterfall.

use eframe::egui::{self, Color32, Rect, Stroke, StrokeKind, pos2};

use super::labels::label_font;
use super::lanes::color32;
use super::panes::ScopePanes;
use crate::model::action::{Action, AnnotatedPart};
use crate::model::panels;
use crate::model::widget::{Press, Widget};

impl ScopePanes {
    pub(super) fn annotation_panel(&mut self, ui: &mut egui::Ui) {
        if !self.model.open.annotations.is_open {
            return;
        }
        let close = Widget::button("\u{d7}", "close  (F4)", Action::Annotations);
        self.panel_head(ui, "annotations", &close);
        let rows = panels::annotation_rows(&self.model);
        let is_listed =
            |row: &&Vec<Widget>| row.iter().any(|it| matches!(it.act, Some(Press::Annotation(_))));
        for row in rows.iter().take_while(|row| !is_listed(row)) {
            match &row[..] {
                [words] => drop(self.widget(ui, words)),
                [_, field] if field.field.is_some() => self.row(ui, row),
                row => drop(ui.horizontal_wrapped(|ui| self.widgets(ui, row))),
            }
        }
        for row in rows.iter().filter(is_listed) {
            ui.horizontal(|ui| self.widgets(ui, row));
        }
    }

    /// Boxes with their words.
    pub(super) fn waterfall_annotations(&self, ui: &egui::Ui, plot: Rect) {
        let painter = ui.painter().with_clip_rect(plot);
        for mark in self.model.waterfall_marks() {
            let color =
                mark.color.map_or(color32(self.theme().cursor), |[r, g, b]| Color32::from_rgb(r, g, b));
            let x = |part: f64| plot.left() + plot.width() * part as f32;
            let y = |part: f64| plot.top() + plot.height() * part as f32;
            let [left, right] = mark.parts.map(x);
            let [top, bottom] = mark.rows.map(y);
            // A moment is a line.
            let drawn =
                Rect::from_min_max(pos2(left, top), pos2(right.max(left + 1.0), bottom.max(top + 1.0)));
            if mark.is_chosen {
                painter.rect_filled(drawn, 0.0, color.gamma_multiply(0.2));
            }
            painter.rect_stroke(drawn, 0.0, Stroke::new(1.0, color), StrokeKind::Inside);
            painter.text(
                drawn.min + egui::vec2(3.0, 1.0),
                egui::Align2::LEFT_TOP,
                &mark.words,
                label_font(),
                color,
            );
        }
    }

    /// Draws a box on the waterfall with shift or the right button, or with ctrl to be annotated at once. Returns it until the
    /// pointer is released.
    pub(super) fn draw_on_waterfall(&mut self, ui: &egui::Ui, plot: Rect) -> Option<Rect> {
        let (origin, at, is_down, is_meant, is_annotated) = ui.input(|input| {
            let is_second = input.pointer.button_down(egui::PointerButton::Secondary);
            let (shift, ctrl) = (input.modifiers.shift, input.modifiers.command);
            let is_meant = is_second || (shift || ctrl) && input.pointer.primary_down();
            let pointer = &input.pointer;
            (pointer.press_origin(), pointer.interact_pos(), pointer.any_down(), is_meant, ctrl)
        });
        if self.waterfall_box.is_none() {
            self.waterfall_box = origin.filter(|origin| is_meant && plot.contains(*origin));
            self.is_box_annotated = is_annotated;
        }
        let (Some(began), Some(at)) = (self.waterfall_box, at) else { return None };
        let drawn = Rect::from_two_pos(began, plot.clamp(at));
        if is_down {
            return Some(drawn);
        }
        self.waterfall_box = None;
        if drawn.width() >= SIDE_MIN || drawn.height() >= SIDE_MIN {
            let across = |x: f32| f64::from((x - plot.left()) / plot.width());
            let up = |y: f32| f64::from((plot.bottom() - y) / plot.height());
            let part = AnnotatedPart {
                times: [up(drawn.bottom()), up(drawn.top())],
                frequencies: Some([across(drawn.left()), across(drawn.right())]),
            };
            let is_annotated = self.is_box_annotated;
            self.model.act(if is_annotated { Action::AnnotatePart(part) } else { Action::DrawBox(part) });
        }
        None
    }
}

/// In points.
const SIDE_MIN: f32 = 6.0;
