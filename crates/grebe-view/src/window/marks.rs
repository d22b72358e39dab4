//! The marks of the trigger on the plot, to be dragged: its place and its level.

use eframe::egui::{self, CursorIcon, Rect, Sense, Shape, pos2, vec2};

use super::labels::name_slider;
use super::lanes::color32;
use super::panes::ScopePanes;

impl ScopePanes {
    /// A mark at the top for the trigger's place, one at the right edge for its level.
    pub(super) fn trigger_handles(&mut self, ui: &egui::Ui, plot: Rect) {
        let Some(trigger) = self.model.picture.trigger else { return };
        let marks = self.model.trigger_marks();
        if let Some(part) = marks.part {
            self.place_handle(ui, plot, part as f32);
        }
        let channel = trigger.settings.channel;
        let lanes = &self.model.picture.channels;
        let Some(place) = lanes.iter().position(|data| data.channel == channel) else { return };
        let lane = self.lane_rect(plot, place, lanes.len());
        let zero = self.model.level_zero(&trigger);
        let (level, upper) = (f64::from(trigger.level), f64::from(trigger.upper));
        if trigger.settings.kind.has_two_levels() {
            self.level_line(ui, lane, channel, level + zero);
            self.level_line(ui, lane, channel, upper + zero);
        }
        self.level_handle(ui, lane, channel, ((level + upper) / 2.0).round(), zero);
    }

    /// One of two levels: they move together, by the mark between them.
    fn level_line(&self, ui: &egui::Ui, lane: Rect, channel: usize, level: f64) {
        let setup = self.model.setup(channel);
        let Some(range) = self.model.controls.lanes.range(channel) else { return };
        let part = (range.top - setup.value(level)) / range.height();
        if (0.0..=1.0).contains(&part) {
            let y = lane.top() + lane.height() * part as f32;
            let stroke = egui::Stroke::new(1.0, self.trace_color(channel).gamma_multiply(0.6));
            let line = [pos2(lane.left(), y), pos2(lane.right(), y)];
            ui.painter().extend(Shape::dashed_line(&line, stroke, 2.0, 4.0));
        }
    }

    fn place_handle(&mut self, ui: &egui::Ui, plot: Rect, part: f32) {
        let x = plot.left() + plot.width() * part;
        let color = color32(self.theme().cursor);
        let corners = vec![pos2(x - 6.0, plot.top() - 3.0), pos2(x + 6.0, plot.top() - 3.0)];
        let corners = [corners, vec![pos2(x, plot.top() + 6.0)]].concat();
        ui.painter().add(Shape::convex_polygon(corners, color, egui::Stroke::NONE));
        let grip = Rect::from_center_size(pos2(x, plot.top()), vec2(24.0, 20.0));
        let response = ui.interact(grip, self.id.with("trigger place"), Sense::drag());
        name_slider(&response, "trigger position");
        let response = response.on_hover_cursor(CursorIcon::ResizeHorizontal);
        if let (true, Some(pointer)) = (response.dragged(), response.interact_pointer_pos()) {
            let position = f64::from((pointer.x - plot.left()) / plot.width());
            self.model.controls.trigger.settings.position = position.clamp(0.0, 1.0);
        }
    }

    /// `level` counts from `zero`, both in raw counts.
    fn level_handle(&mut self, ui: &egui::Ui, lane: Rect, channel: usize, level: f64, zero: f64) {
        let setup = self.model.setup(channel);
        let Some(range) = self.model.controls.lanes.range(channel) else { return };
        let part = (range.top - setup.value(level + zero)) / range.height();
        let y = (lane.top() + lane.height() * part as f32).clamp(lane.top(), lane.bottom());
        let color = self.trace_color(channel);
        let grip = Rect::from_center_size(pos2(lane.right() + 1.0, y), vec2(30.0, 20.0));
        let response = ui.interact(grip, self.id.with("trigger level"), Sense::drag());
        name_slider(&response, "trigger level");
        let response = response.on_hover_cursor(CursorIcon::ResizeVertical);
        let is_held = response.hovered() || response.dragged();
        let strength = if is_held { 0.9 } else { 0.35 };
        let line = [pos2(lane.left(), y), pos2(lane.right(), y)];
        let stroke = egui::Stroke::new(1.0, color.gamma_multiply(strength));
        ui.painter().extend(Shape::dashed_line(&line, stroke, 6.0, 5.0));
        let right = lane.right() + 9.0;
        let corners = vec![pos2(right, y - 6.0), pos2(right, y + 6.0), pos2(right - 10.0, y)];
        ui.painter().add(Shape::convex_polygon(corners, color, egui::Stroke::NONE));
        if let (true, Some(pointer)) = (response.dragged(), response.interact_pointer_pos()) {
            let part = f64::from((pointer.y - lane.top()) / lane.height()).clamp(0.0, 1.0);
            let value = range.top - part * range.height();
            let level = ((value - setup.offset) / setup.scale - zero).round() as i16;
            self.model.controls.trigger.settings.level = Some(level);
        }
    }
}
