//! What a person drags over the traces: the trigger's level and place, and two cursors.

use eframe::egui::{self, Align2, Color32, CursorIcon, Id, Rect, Sense, Shape, pos2, vec2};
use grebe_scope::Engineering;

use super::lanes::color32;
use super::panes::ScopePanes;
use super::plot::{label_font, lane_rect, value_tag};

impl ScopePanes {
    /// A mark at the top for the trigger's place, one at the right edge for its level.
    pub(super) fn trigger_handles(&mut self, ui: &egui::Ui, plot: Rect) {
        let Some(trigger) = self.face.picture.trigger else { return };
        let marks = self.face.trigger_marks();
        if let Some(part) = marks.part {
            self.place_handle(ui, plot, part as f32);
        }
        let channel = trigger.settings.channel;
        let lanes = &self.face.picture.channels;
        let Some(place) = lanes.iter().position(|data| data.channel == channel) else { return };
        let lane = lane_rect(plot, place, lanes.len());
        self.level_handle(ui, lane, channel, trigger.level);
    }

    fn place_handle(&mut self, ui: &egui::Ui, plot: Rect, part: f32) {
        let x = plot.left() + plot.width() * part;
        let color = color32(self.theme().cursor);
        let corners = vec![pos2(x - 6.0, plot.top() - 3.0), pos2(x + 6.0, plot.top() - 3.0)];
        let corners = [corners, vec![pos2(x, plot.top() + 6.0)]].concat();
        ui.painter().add(Shape::convex_polygon(corners, color, egui::Stroke::NONE));
        let grip = Rect::from_center_size(pos2(x, plot.top()), vec2(18.0, 16.0));
        let response = ui.interact(grip, Id::unique("trigger place"), Sense::drag());
        let response = response.on_hover_cursor(CursorIcon::ResizeHorizontal);
        if let (true, Some(pointer)) = (response.dragged(), response.interact_pointer_pos()) {
            self.face.controls.set_trigger_position(f64::from((pointer.x - plot.left()) / plot.width()));
        }
    }

    fn level_handle(&mut self, ui: &egui::Ui, lane: Rect, channel: usize, level: i16) {
        let setup = self.face.options.channel(channel);
        let Some(range) = self.face.controls.lane_range(channel) else { return };
        let part = (range.top - setup.value(f64::from(level))) / range.height();
        let y = (lane.top() + lane.height() * part as f32).clamp(lane.top(), lane.bottom());
        let color = color32(self.theme().trace(channel));
        let grip = Rect::from_center_size(pos2(lane.right() - 2.0, y), vec2(22.0, 16.0));
        let response = ui.interact(grip, Id::unique("trigger level"), Sense::drag());
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
            self.face.controls.set_level(((value - setup.offset) / setup.scale).round() as i16);
        }
    }

    /// Two vertical lines to drag, and what lies between them.
    pub(super) fn cursors(&mut self, ui: &egui::Ui, plot: Rect) {
        let Some(cursors) = self.face.controls.cursors() else { return };
        let (start, end, _) = self.face.axis();
        let theme = self.theme();
        let color = color32(theme.cursor);
        for (which, (at, name)) in cursors.into_iter().zip(["A", "B"]).enumerate() {
            let part = ((at - start) / (end - start)).clamp(0.0, 1.0);
            let x = (plot.left() + plot.width() * part as f32).round();
            let grip = Rect::from_center_size(pos2(x, plot.center().y), vec2(11.0, plot.height()));
            let response = ui.interact(grip, Id::unique(("cursor", which)), Sense::drag());
            let response = response.on_hover_cursor(CursorIcon::ResizeHorizontal);
            let line = [pos2(x, plot.top()), pos2(x, plot.bottom())];
            let dash = if which == 0 { 9.0 } else { 4.0 };
            ui.painter().extend(Shape::dashed_line(&line, egui::Stroke::new(1.0, color), dash, 4.0));
            value_tag(ui, &theme, pos2(x - 4.0, plot.bottom() - 22.0), plot, name, color);
            if let (true, Some(pointer)) = (response.dragged(), response.interact_pointer_pos()) {
                let part = f64::from((pointer.x - plot.left()) / plot.width()).clamp(0.0, 1.0);
                self.face.controls.set_cursor(which, start + part * (end - start));
            }
        }
        self.cursor_table(ui, plot, cursors);
    }

    fn cursor_table(&self, ui: &egui::Ui, plot: Rect, cursors: [f64; 2]) {
        let (start, end, _) = self.face.axis();
        let unit = self.face.picture.axis_unit();
        let theme = self.theme();
        let show = |value: f64, unit: &str| Engineering::new(value, unit).digits(4).to_string();
        let between = cursors[1] - cursors[0];
        let mut rows: Vec<([String; 4], Color32)> = vec![(
            ["time".into(), show(cursors[0], unit), show(cursors[1], unit), show(between, unit)],
            color32(theme.text),
        )];
        if unit == "s" && between != 0.0 {
            let rate = show(1.0 / between.abs(), "Hz");
            rows.push((["1/\u{394}".into(), String::new(), String::new(), rate], color32(theme.text)));
        }
        for data in &self.face.picture.channels {
            let setup = self.face.options.channel(data.channel);
            let value = |at: f64| {
                let part = (at - start) / (end - start);
                let place = (part * data.columns.len() as f64) as usize;
                let column = data.columns.get(place).filter(|column| part >= 0.0 && !column.is_empty())?;
                // Where a column holds many samples, the middle of what they did.
                Some(setup.value((f64::from(column.min) + f64::from(column.max)) / 2.0))
            };
            let (a, b) = (value(cursors[0]), value(cursors[1]));
            let text = |value: Option<f64>| value.map_or("\u{2013}".into(), |value| show(value, &setup.unit));
            let difference = a.zip(b).map(|(a, b)| b - a);
            let row = [setup.label(data.channel), text(a), text(b), text(difference)];
            rows.push((row, color32(theme.trace(data.channel))));
        }
        egui::Area::new(Id::unique("cursor table"))
            .anchor(Align2::RIGHT_TOP, vec2(-24.0, plot.top() + 10.0))
            .interactable(false)
            .show(ui.ctx(), |ui| {
                egui::Frame::NONE
                    .fill(color32(theme.background).gamma_multiply(0.93))
                    .stroke(egui::Stroke::new(1.0, color32(theme.grid_zero)))
                    .corner_radius(4)
                    .inner_margin(8)
                    .show(ui, |ui| cursor_grid(ui, &rows, color32(theme.text_dim)));
            });
    }
}

fn cursor_grid(ui: &mut egui::Ui, rows: &[([String; 4], Color32)], dim: Color32) {
    egui::Grid::new("cursors").num_columns(4).spacing([16.0, 2.0]).show(ui, |ui| {
        for name in ["", "A", "B", "\u{394}"] {
            ui.label(egui::RichText::new(name).font(label_font()).color(dim));
        }
        ui.end_row();
        for (cells, color) in rows {
            for cell in cells {
                ui.label(egui::RichText::new(cell).font(label_font()).color(*color));
            }
            ui.end_row();
        }
    });
}
