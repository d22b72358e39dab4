//! The plot of the traces: its lanes, its axes, and the pointer on it.

use eframe::egui::{self, FontId, Pos2, Rect, Sense, pos2, vec2};
use grebe_scope::{Column, Engineering};

use super::labels::{AXIS_HEIGHT, axis_labels, name_slider, value_tag, wheel_steps};
use super::lanes::color32;
use super::panes::ScopePanes;
use crate::data::lane::LaneId;
use crate::model::action::{Action, Step};
use crate::model::channel::ChannelSetup;
use crate::model::vertical::DIVISIONS_VERTICAL;

impl ScopePanes {
    pub(super) fn plot(&mut self, ui: &mut egui::Ui, area: Rect) {
        let response = ui.allocate_rect(area, Sense::click_and_drag());
        let plot = Rect::from_min_max(area.min + vec2(self.gutter, 2.0), area.max - vec2(12.0, AXIS_HEIGHT));
        #[cfg(test)]
        {
            self.pane_heights[0] = plot.height();
        }
        if plot.width() < 20.0 || plot.height() < 20.0 {
            return;
        }
        let pixels_per_point = ui.ctx().pixels_per_point();
        self.pointer(ui, &response, plot);
        let columns = (plot.width() * pixels_per_point).round() as usize;
        if self.model.request(columns) {
            // The answer may be there by the next frame, and no other event requests one.
            ui.ctx().request_repaint();
        }
        if self.model.seen.picture.lanes.is_empty() {
            self.empty(ui, plot);
            return;
        }
        let lanes = self.lanes(ui, plot);
        let view = Rect::from_x_y_ranges(area.x_range(), plot.y_range().expand(2.0));
        ui.scope_builder(egui::UiBuilder::new().max_rect(area), |ui| {
            ui.set_clip_rect(view.intersect(ui.clip_rect()));
            self.traces(ui, lanes, view, pixels_per_point);
        });
        self.annotations(ui, plot);
        self.time_axis(ui, plot);
        self.trigger_handles(ui, plot);
        self.change_marks(ui, plot);
        self.arrival_marks(ui, plot);
        self.cursors(ui, plot);
        self.notice(ui, plot);
        if let Some(pointer) = response.hover_pos().filter(|pointer| plot.contains(*pointer)) {
            self.readout(ui, plot, pointer);
        }
    }

    fn pointer(&mut self, ui: &egui::Ui, response: &egui::Response, plot: Rect) {
        if self.zoom_box(ui, response, plot) {
            return;
        }
        let began = ui.input(|input| input.pointer.press_origin()).filter(|_| response.dragged());
        if let Some(scaled) = began.and_then(|began| self.scale_at(plot, began)) {
            let lane = plot.height() / self.lane_count() as f32;
            self.model.act(Action::Select(scaled));
            self.model.act(Action::Position(f64::from(-response.drag_delta().y / lane) * DIVISIONS_VERTICAL));
        } else if response.dragged() && response.drag_delta().x != 0.0 {
            let part = f64::from(-response.drag_delta().x / plot.width());
            self.model.pan(part);
        }
        if response.double_clicked() {
            self.model.act(Action::Live);
        }
        if let Some(pointer) = response.hover_pos() {
            let scrolls = ui.input(|input| input.modifiers.shift);
            let wheel = if scrolls { 0.0 } else { wheel_steps(ui) };
            let over_scale = self.scale_at(plot, pointer);
            if let Some(scaled) = over_scale.filter(|_| wheel != 0.0) {
                self.model.act(Action::Select(scaled));
                self.model.act(Action::Vertical(if wheel > 0.0 { Step::Down } else { Step::Up }));
            } else if wheel != 0.0 {
                let at = f64::from((pointer.x - plot.left()) / plot.width()).clamp(0.0, 1.0);
                self.model.zoom(wheel > 0.0, at);
            }
        }
    }

    fn lane_count(&self) -> usize {
        if self.model.controls.show.overlay { 1 } else { self.model.seen.picture.lanes.len().max(1) }
    }

    /// Area of all lanes: the plot, or a higher area if lanes would be too low to read. Then the bar at the right or
    /// the wheel with shift scrolls them, and the selected lane scrolls into view.
    fn lanes(&mut self, ui: &egui::Ui, plot: Rect) -> Rect {
        let height = (self.lane_count() as f32 * LANE_HEIGHT_MIN).max(plot.height());
        let hidden = height - plot.height();
        if hidden <= 0.0 {
            self.lanes_offset = 0.0;
            return plot;
        }
        let bar =
            Rect::from_min_max(plot.right_top() + vec2(3.0, 0.0), plot.right_bottom() + vec2(10.0, 0.0));
        let response = ui.interact(bar, self.id.with("lanes"), Sense::drag());
        name_slider(&response, "scroll the lanes");
        self.lanes_offset += response.drag_delta().y * height / plot.height();
        if ui.input(|input| input.modifiers.shift) && ui.rect_contains_pointer(plot) {
            self.lanes_offset -= wheel_steps(ui) * LANE_HEIGHT_MIN;
        }
        let selected = self.model.selected();
        if self.lanes_selected.replace(selected) != Some(selected) {
            let top = height / self.lane_count() as f32 * self.model.front_lane() as f32;
            self.lanes_offset = self.lanes_offset.clamp(top + LANE_HEIGHT_MIN - plot.height(), top);
        }
        self.lanes_offset = self.lanes_offset.clamp(0.0, hidden);
        let part = |offset: f32| bar.top() + bar.height() * offset / height;
        let thumb = Rect::from_x_y_ranges(
            bar.x_range(),
            part(self.lanes_offset)..=part(self.lanes_offset + plot.height()),
        );
        ui.painter().rect_filled(bar, 3.0, color32(self.theme().grid));
        ui.painter().rect_filled(thumb, 3.0, color32(self.theme().text_dim));
        Rect::from_min_size(plot.min - vec2(0.0, self.lanes_offset), vec2(plot.width(), height))
    }

    /// The lane whose scale, left of it, is at that place.
    fn scale_at(&self, plot: Rect, at: Pos2) -> Option<LaneId> {
        if at.x >= plot.left() || !plot.y_range().contains(at.y) {
            return None;
        }
        let lanes = &self.model.seen.picture.lanes;
        let place = match self.model.controls.show.overlay {
            true => self.model.front_lane(),
            false => {
                let height = (lanes.len() as f32 * LANE_HEIGHT_MIN).max(plot.height());
                ((at.y - plot.top() + self.lanes_offset) / height * lanes.len() as f32) as usize
            }
        };
        lanes.get(place).map(|data| data.lane)
    }

    fn time_axis(&self, ui: &egui::Ui, plot: Rect) {
        let (start, end, ticks) = self.model.axis();
        let every = if plot.width() < 700.0 { 2 } else { 1 };
        axis_labels(
            ui,
            &self.theme(),
            plot,
            [start, end],
            &ticks,
            self.model.seen.picture.axis_unit(),
            every,
        );
    }

    pub(super) fn lane_rect(&self, plot: Rect, place: usize, count: usize) -> Rect {
        match self.model.controls.show.overlay {
            true => lane_rect(plot, 0, 1),
            false => {
                let height = (count as f32 * LANE_HEIGHT_MIN).max(plot.height());
                let min = plot.min - vec2(0.0, self.lanes_offset);
                lane_rect(Rect::from_min_size(min, vec2(plot.width(), height)), place, count)
            }
        }
    }

    fn readout(&self, ui: &egui::Ui, plot: Rect, pointer: Pos2) {
        let theme = self.theme();
        let part = f64::from((pointer.x - plot.left()) / plot.width());
        let half = 0.5 / f64::from(plot.width());
        let cursor = color32(theme.cursor);
        let line = Rect::from_x_y_ranges(pointer.x.round()..=pointer.x.round() + 1.0, plot.y_range());
        ui.painter().rect_filled(line, 0.0, cursor.gamma_multiply(0.35));
        let (start, end, _) = self.model.axis();
        let seconds = start + part * (end - start);
        let at = Engineering::new(seconds, self.model.seen.picture.axis_unit()).digits(4).to_string();
        value_tag(ui, &theme, pos2(pointer.x, plot.top()), plot, &at, cursor);
        let place_of = |columns: usize| part as f32 * columns as f32;
        for (place, data) in self.model.seen.picture.lanes.iter().enumerate() {
            let rect = self.lane_rect(plot, place, self.model.seen.picture.lanes.len());
            if !plot.contains(rect.center()) {
                continue;
            }
            let column = (part * data.columns.len() as f64) as usize;
            let Some(column) = data.columns.get(column) else { continue };
            let setup = self.model.setup(data.lane);
            let nearest = data.line.as_ref().and_then(|line| line.nearest(place_of(data.columns.len())));
            let text = match (column.is_empty(), column.has_gap()) {
                // Between two samples, the nearer one.
                (false, false) if nearest.is_some() => count_text(nearest.unwrap_or_default(), &setup),
                (true, true) => self.model.lost_words(part - half..part + half),
                (true, false) => continue,
                _ => range_text(column, &setup),
            };
            let color =
                if text.starts_with("lost") { color32(theme.gap) } else { self.trace_color(data.lane) };
            value_tag(ui, &theme, pos2(pointer.x, rect.bottom() - 22.0), plot, &text, color);
        }
    }

    fn empty(&self, ui: &egui::Ui, plot: Rect) {
        let color = color32(self.theme().text_dim);
        let mut top = plot.center().y - 12.0;
        for (line, text) in self.model.empty_lines().into_iter().enumerate() {
            let font = FontId::proportional(if line == 0 { 20.0 } else { 14.0 });
            let galley = ui.painter().layout(text, font, color, plot.width() - 20.0);
            let at = pos2(plot.center().x - galley.size().x / 2.0, top);
            top += galley.size().y + 8.0;
            ui.painter().galley(at, galley, color);
        }
    }
}

/// Minimum height of a lane in points; lower ones are unreadable, so the lanes scroll.
const LANE_HEIGHT_MIN: f32 = 44.0;

pub(super) fn lane_rect(plot: Rect, place: usize, count: usize) -> Rect {
    let height = plot.height() / count as f32;
    let top = plot.top() + height * place as f32;
    Rect::from_min_max(pos2(plot.left(), top + 3.0), pos2(plot.right(), top + height - 3.0))
}

fn range_text(column: &Column<f32>, setup: &ChannelSetup) -> String {
    match column.min == column.max {
        true => count_text(column.min, setup),
        false => format!("{} \u{2026} {}", count_text(column.min, setup), count_text(column.max, setup)),
    }
}

fn count_text(count: f32, setup: &ChannelSetup) -> String {
    Engineering::new(setup.value(f64::from(count)), &setup.unit).digits(4).to_string()
}
