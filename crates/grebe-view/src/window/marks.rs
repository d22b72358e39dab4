//! Draggable marks on the plot: two cursors per axis, with the table of their values, and the trigger's place and level.

use eframe::egui::{self, Color32, CursorIcon, Rect, Sense, Shape, pos2, vec2};

use super::labels::{label_font, name_slider, value_tag};
use super::lanes::color32;
use super::panes::ScopePanes;
use crate::data::lane::LaneId;
use crate::model::annotations::AnnotationMark;
use crate::model::readout::Row;

impl ScopePanes {
    pub(super) fn cursors(&mut self, ui: &egui::Ui, plot: Rect) {
        self.time_cursors(ui, plot);
        self.value_cursors(ui, plot);
        let rows = self.model.cursor_rows();
        if !rows.is_empty() {
            self.cursor_table(ui, plot, &rows);
        }
    }

    fn time_cursors(&mut self, ui: &egui::Ui, plot: Rect) {
        let Some(cursors) = self.model.controls.cursors.times else { return };
        let (start, end, _) = self.model.axis();
        let theme = self.theme();
        let color = color32(theme.cursor);
        for (which, (at, name)) in cursors.into_iter().zip(NAMES).enumerate() {
            let part = ((at - start) / (end - start)).clamp(0.0, 1.0);
            let x = (plot.left() + plot.width() * part as f32).round();
            let grip = Rect::from_center_size(pos2(x, plot.center().y), vec2(GRIP, plot.height()));
            let response = ui.interact(grip, self.id.with(("cursor", which)), Sense::drag());
            name_slider(&response, format!("time cursor {name}"));
            let response = response.on_hover_cursor(CursorIcon::ResizeHorizontal);
            line(ui, [pos2(x, plot.top()), pos2(x, plot.bottom())], which, color);
            value_tag(ui, &theme, pos2(x - 4.0, plot.bottom() - 22.0), plot, name, color);
            if let (true, Some(pointer)) = (response.dragged(), response.interact_pointer_pos()) {
                let part = f64::from((pointer.x - plot.left()) / plot.width()).clamp(0.0, 1.0);
                self.model.controls.cursors.set_time(which, start + part * (end - start));
            }
        }
    }

    /// Draws annotations: a tinted range with a bar above it, and its text.
    pub(super) fn annotations(&self, ui: &egui::Ui, plot: Rect) {
        let theme = self.theme();
        let color = color32(theme.cursor);
        let x = |part: f64| plot.left() + plot.width() * part.clamp(0.0, 1.0) as f32;
        let mut free_from = [plot.left(); LABEL_ROWS];
        let mut marks = self.model.annotation_marks();
        marks.sort_by(|a, b| a.parts[0].total_cmp(&b.parts[0]));
        for AnnotationMark { parts: [from, to], words, color: own, is_chosen } in marks {
            let color = own.map_or(color, |[r, g, b]| Color32::from_rgb(r, g, b));
            let (left, right) = (x(from), x(to).max(x(from) + 1.0));
            let stretch = Rect::from_x_y_ranges(left..=right, plot.y_range());
            ui.painter().rect_filled(stretch, 0.0, color.gamma_multiply(if is_chosen { 0.2 } else { 0.08 }));
            let bar = Rect::from_x_y_ranges(left..=right, plot.top()..=plot.top() + 3.0);
            ui.painter().rect_filled(bar, 0.0, color);
            let galley = ui.painter().layout_no_wrap(words, label_font(), color);
            // A text that would overlap another moves a row lower, or disappears if all rows are full.
            let row = free_from.iter().position(|&free| left >= free);
            if let Some(row) = row.filter(|_| left + galley.size().x < plot.right() + 60.0) {
                free_from[row] = left + galley.size().x + 6.0;
                let top = plot.top() + 4.0 + row as f32 * galley.size().y;
                ui.painter().with_clip_rect(plot).galley(pos2(left + 3.0, top), galley, color);
            }
        }
    }

    /// Draws the progress of a recording that is still being copied: a bar below the traces, brighter where more has
    /// arrived.
    pub(super) fn arrival_marks(&self, ui: &egui::Ui, plot: Rect) {
        let Some(marks) = self.model.arrival_marks() else { return };
        let theme = self.theme();
        let bar = plot.bottom() - 4.0..=plot.bottom();
        ui.painter().rect_filled(
            Rect::from_x_y_ranges(plot.x_range(), bar.clone()),
            0.0,
            color32(theme.grid),
        );
        let x = |part: f64| plot.left() + plot.width() * part.clamp(0.0, 1.0) as f32;
        for ([from, to], part) in marks.into_iter().filter(|(_, part)| *part > 0.0) {
            let color = color32(theme.cursor).gamma_multiply(0.25 + 0.75 * part.clamp(0.0, 1.0));
            ui.painter().rect_filled(Rect::from_x_y_ranges(x(from)..=x(to), bar.clone()), 0.0, color);
        }
    }

    /// Draws changes of the stream's description, with the new value.
    pub(super) fn change_marks(&self, ui: &egui::Ui, plot: Rect) {
        let theme = self.theme();
        let color = color32(theme.text);
        for (part, words) in self.model.change_marks() {
            let x = (plot.left() + plot.width() * part as f32).round();
            let ends = [pos2(x, plot.top()), pos2(x, plot.bottom())];
            ui.painter().extend(Shape::dashed_line(&ends, egui::Stroke::new(1.0, color), 2.0, 4.0));
            value_tag(ui, &theme, pos2(x, plot.bottom() - 22.0), plot, &words, color);
        }
    }

    /// Draws two horizontal lines in the lane of the selected channel.
    fn value_cursors(&mut self, ui: &egui::Ui, plot: Rect) {
        let Some(cursors) = self.model.controls.cursors.values else { return };
        let selected = self.model.controls.lanes.selected;
        let lanes = &self.model.seen.picture.lanes;
        let Some(place) = lanes.iter().position(|data| data.lane == selected) else { return };
        let lane = self.lane_rect(plot, place, lanes.len());
        let Some(range) = self.model.controls.lanes.range(selected) else { return };
        let theme = self.theme();
        let color = color32(theme.cursor);
        for (which, (value, name)) in cursors.into_iter().zip(NAMES).enumerate() {
            let part = range.part_of(value).clamp(0.0, 1.0);
            let y = (lane.bottom() - lane.height() * part as f32).round();
            let grip = Rect::from_center_size(pos2(lane.center().x, y), vec2(lane.width(), GRIP));
            let response = ui.interact(grip, self.id.with(("value cursor", which)), Sense::drag());
            name_slider(&response, format!("value cursor {name}"));
            let response = response.on_hover_cursor(CursorIcon::ResizeVertical);
            line(ui, [pos2(lane.left(), y), pos2(lane.right(), y)], which, color);
            // Away from the trigger's level and the channel's name.
            let tag = pos2(lane.left() + lane.width() * 0.08, (y - 24.0).max(lane.top() - 3.0));
            value_tag(ui, &theme, tag, plot, name, color);
            if let (true, Some(pointer)) = (response.dragged(), response.interact_pointer_pos()) {
                let part = f64::from((lane.bottom() - pointer.y) / lane.height()).clamp(0.0, 1.0);
                self.model.controls.cursors.set_value(which, range.at(part));
            }
        }
    }

    fn cursor_table(&self, ui: &egui::Ui, plot: Rect, rows: &[Row]) {
        let theme = self.theme();
        egui::Area::new(self.id.with("cursor table"))
            .pivot(egui::Align2::RIGHT_TOP)
            .fixed_pos(plot.right_top() + vec2(-12.0, 10.0))
            .interactable(false)
            .show(ui.ctx(), |ui| {
                egui::Frame::NONE
                    .fill(color32(theme.background).gamma_multiply(0.93))
                    .stroke(egui::Stroke::new(1.0, color32(theme.grid_zero)))
                    .corner_radius(4)
                    .inner_margin(8)
                    .show(ui, |ui| self.table(ui, "cursors", &["", "A", "B", "\u{394}"], rows));
            });
    }

    /// Draws a mark at the top for the trigger's place, and one at the right edge for its level.
    pub(super) fn trigger_handles(&mut self, ui: &egui::Ui, plot: Rect) {
        let Some(trigger) = self.model.seen.picture.trigger else { return };
        let marks = self.model.trigger_marks();
        if let Some(part) = marks.part {
            self.place_handle(ui, plot, part as f32);
        }
        let id = trigger.settings.lane;
        let lanes = &self.model.seen.picture.lanes;
        let Some(place) = lanes.iter().position(|data| data.lane == id) else { return };
        let lane = self.lane_rect(plot, place, lanes.len());
        let zero = self.model.level_zero(&trigger);
        let (level, upper) = (trigger.level, trigger.upper);
        if trigger.settings.kind.has_two_levels() {
            self.level_line(ui, lane, id, level + zero);
            self.level_line(ui, lane, id, upper + zero);
        }
        self.level_handle(ui, lane, id, (level + upper) / 2.0, zero);
    }

    /// Draws one of two levels. They move together, by the mark between them.
    fn level_line(&self, ui: &egui::Ui, lane: Rect, id: LaneId, level: f64) {
        let setup = self.model.setup(id);
        let Some(range) = self.model.controls.lanes.range(id) else { return };
        let part = (range.top - setup.value(level)) / range.height();
        if (0.0..=1.0).contains(&part) {
            let y = lane.top() + lane.height() * part as f32;
            let stroke = egui::Stroke::new(1.0, self.trace_color(id).gamma_multiply(0.6));
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

    /// Draws the handle of a level. `level` counts from `zero`, both in raw counts.
    fn level_handle(&mut self, ui: &egui::Ui, lane: Rect, id: LaneId, level: f64, zero: f64) {
        let setup = self.model.setup(id);
        let Some(range) = self.model.controls.lanes.range(id) else { return };
        let part = (range.top - setup.value(level + zero)) / range.height();
        let y = (lane.top() + lane.height() * part as f32).clamp(lane.top(), lane.bottom());
        let color = self.trace_color(id);
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
            let part = f64::from((lane.bottom() - pointer.y) / lane.height()).clamp(0.0, 1.0);
            self.model.drag_level(part);
        }
    }
}

/// Draws a cursor line; the dashes of A and B differ.
pub(super) fn line(ui: &egui::Ui, ends: [egui::Pos2; 2], which: usize, color: Color32) {
    let dash = if which == 0 { 9.0 } else { 4.0 };
    ui.painter().extend(Shape::dashed_line(&ends, egui::Stroke::new(1.0, color), dash, 4.0));
}

/// Rows of annotation texts.
const LABEL_ROWS: usize = 4;
const NAMES: [&str; 2] = ["A", "B"];
/// Width of the area around a line where the pointer can grab it, in points.
pub(super) const GRIP: f32 = 11.0;
