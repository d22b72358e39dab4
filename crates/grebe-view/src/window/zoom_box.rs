//! A box drawn on the traces, which then fills the view.

use eframe::egui::{self, PointerButton, Pos2, Rect, StrokeKind};

use super::lanes::color32;
use super::panes::ScopePanes;
use crate::model::action::{Action, AnnotatedPart, ScreenBox};

impl ScopePanes {
    /// Draws a box with the right button, or with shift; returns whether one is being drawn. Escape gives it up.
    pub(super) fn zoom_box(&mut self, ui: &egui::Ui, response: &egui::Response, plot: Rect) -> bool {
        if response.drag_started() {
            let is_box = response.drag_started_by(PointerButton::Secondary)
                || ui.input(|input| input.modifiers.shift || input.modifiers.command);
            let began = ui.input(|input| input.pointer.press_origin());
            self.is_box_annotated = ui.input(|input| input.modifiers.command);
            self.box_from = began.filter(|began| is_box && plot.contains(*began));
        }
        let Some(from) = self.box_from else { return false };
        if ui.input(|input| input.key_pressed(egui::Key::Escape)) {
            self.box_from = None;
        } else if let Some(to) = response.interact_pointer_pos() {
            let drawn = Rect::from_two_pos(from, plot.clamp(to));
            if response.drag_stopped() {
                self.box_from = None;
                self.show_box(plot, from, drawn);
            } else {
                let color = color32(self.theme().cursor);
                let painter = ui
                    .painter()
                    .clone()
                    .with_layer_id(egui::LayerId::new(egui::Order::Foreground, self.id.with("zoom box")));
                painter.rect_filled(drawn, 0.0, color.gamma_multiply(0.08));
                painter.rect_stroke(drawn, 0.0, egui::Stroke::new(1.0, color), StrokeKind::Inside);
            }
        }
        true
    }

    /// Times of a box, and values in the lane of its start. A direction of only a few points was not meant.
    fn show_box(&mut self, plot: Rect, from: Pos2, drawn: Rect) {
        let count = self.model.seen.picture.lanes.len();
        let time = |x: f32| f64::from((x - plot.left()) / plot.width());
        let times = (drawn.width() >= SIDE_MIN).then(|| [time(drawn.left()), time(drawn.right())]);
        if let Some(times) = times.filter(|_| self.is_box_annotated) {
            return self.model.act(Action::AnnotatePart(AnnotatedPart { times, frequencies: None }));
        }
        let is_overlay = self.model.controls.show.overlay;
        let place = match is_overlay {
            true => Some(self.model.front_lane()),
            false => (0..count).find(|&place| self.lane_rect(plot, place, count).y_range().contains(from.y)),
        };
        let values = place.filter(|_| drawn.height() >= SIDE_MIN).and_then(|place| {
            let lane = self.lane_rect(plot, place, count);
            let part =
                |y: f32| f64::from((lane.bottom() - y.clamp(lane.top(), lane.bottom())) / lane.height());
            let lane = self.model.seen.picture.lanes.get(place)?.lane;
            Some((lane, [part(drawn.bottom()), part(drawn.top())]))
        });
        if times.is_some() || values.is_some() {
            self.model.act(Action::Zoom(ScreenBox { times, values }));
        }
    }
}

/// In points.
const SIDE_MIN: f32 = 10.0;
