//! Two cursors per axis, to be dragged, and the table of their values.

use eframe::egui::{self, Color32, CursorIcon, Rect, Sense, Shape, pos2, vec2};

use super::labels::{name_slider, value_tag};
use super::lanes::color32;
use super::panes::ScopePanes;

impl ScopePanes {
    /// All cursors that are on.
    pub(super) fn cursors(&mut self, ui: &egui::Ui, plot: Rect) {
        self.time_cursors(ui, plot);
        self.value_cursors(ui, plot);
        let is_on =
            self.model.controls.cursors.times.is_some() || self.model.controls.cursors.values.is_some();
        if is_on {
            self.cursor_table(ui, plot);
        }
    }

    /// Two vertical lines over all lanes.
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

    /// Two horizontal lines in the lane of the selected channel.
    fn value_cursors(&mut self, ui: &egui::Ui, plot: Rect) {
        let Some(cursors) = self.model.controls.cursors.values else { return };
        let selected = self.model.controls.lanes.selected;
        let lanes = &self.model.picture.channels;
        let Some(place) = lanes.iter().position(|data| data.channel == selected) else { return };
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
            // Clear of the trigger's level and of the channel's name.
            let tag = pos2(lane.left() + lane.width() * 0.08, (y - 24.0).max(lane.top() - 3.0));
            value_tag(ui, &theme, tag, plot, name, color);
            if let (true, Some(pointer)) = (response.dragged(), response.interact_pointer_pos()) {
                let part = f64::from((lane.bottom() - pointer.y) / lane.height()).clamp(0.0, 1.0);
                self.model.controls.cursors.set_value(which, range.at(part));
            }
        }
    }

    fn cursor_table(&self, ui: &egui::Ui, plot: Rect) {
        let theme = self.theme();
        let rows = self.model.cursor_rows();
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
                    .show(ui, |ui| self.table(ui, "cursors", &["", "A", "B", "\u{394}"], &rows));
            });
    }
}

/// A and B are told apart by their dashes too.
fn line(ui: &egui::Ui, ends: [egui::Pos2; 2], which: usize, color: Color32) {
    let dash = if which == 0 { 9.0 } else { 4.0 };
    ui.painter().extend(Shape::dashed_line(&ends, egui::Stroke::new(1.0, color), dash, 4.0));
}

const NAMES: [&str; 2] = ["A", "B"];
/// Width of the area around a line in which the pointer takes hold of it, in points.
const GRIP: f32 = 11.0;
