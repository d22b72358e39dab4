//! The traces: their lanes, their axes, and what the pointer does there.

use eframe::egui::{self, Align2, Color32, FontId, Pos2, Rect, Sense, pos2, vec2};
use grebe_scope::raster::Theme;
use grebe_scope::{Engineering, Quantity, Ticks};

use super::lanes::{Lane, LanePainter, color32};
use super::marks::table;
use super::panes::ScopePanes;
use crate::controls::Action;
use crate::hud::RunState;
use crate::readout::QUANTITIES;
use crate::vertical::Range;

impl ScopePanes {
    pub(super) fn plot(&mut self, ui: &mut egui::Ui, area: Rect) {
        let response = ui.allocate_rect(area, Sense::click_and_drag());
        let plot = Rect::from_min_max(area.min + vec2(GUTTER, 2.0), area.max - vec2(12.0, AXIS_HEIGHT));
        if plot.width() < 20.0 || plot.height() < 20.0 {
            return;
        }
        let pixels_per_point = ui.ctx().pixels_per_point();
        self.pointer(ui, &response, plot);
        let columns = (plot.width() * pixels_per_point).round() as usize;
        if self.face.request(columns) {
            // The answer may be there by the next frame, and nobody else may ask for one.
            ui.ctx().request_repaint();
        }
        if self.face.picture.channels.is_empty() {
            self.empty(ui, plot);
            return;
        }
        self.lanes(ui, plot, area, pixels_per_point);
        self.time_axis(ui, plot);
        self.trigger_handles(ui, plot);
        self.cursors(ui, plot);
        if let Some(pointer) = response.hover_pos().filter(|pointer| plot.contains(*pointer)) {
            self.readout(ui, plot, pointer);
        }
    }

    /// Room for one row a measured channel.
    pub(super) fn measurements_height(&self) -> f32 {
        match self.face.controls.is_measuring() {
            true => 32.0 + 22.0 * self.face.picture.measured.len() as f32,
            false => 0.0,
        }
    }

    pub(super) fn measurements(&self, ui: &mut egui::Ui, top: f32) {
        if !self.face.controls.is_measuring() {
            return;
        }
        let rows = self.face.measurement_rows();
        let names: Vec<&str> = [""].into_iter().chain(QUANTITIES.map(Quantity::name)).collect();
        let area = ui.max_rect();
        let area = Rect::from_min_max(pos2(area.left() + GUTTER, top + 2.0), area.max);
        ui.scope_builder(egui::UiBuilder::new().max_rect(area), |ui| {
            table(ui, "measurements", &names, &rows, &self.theme());
        });
    }

    /// Wheel and drag.
    fn pointer(&mut self, ui: &egui::Ui, response: &egui::Response, plot: Rect) {
        if response.dragged() && response.drag_delta().x != 0.0 {
            let part = f64::from(-response.drag_delta().x / plot.width());
            self.face.pan(part);
        }
        if response.double_clicked() {
            self.face.act(Action::Live);
        }
        if let Some(pointer) = response.hover_pos() {
            let wheel = ui.input(|input| {
                let steps = input.events.iter().filter_map(|event| match event {
                    egui::Event::MouseWheel { delta, .. } if delta.y != 0.0 => Some(delta.y),
                    _ => None,
                });
                steps.sum::<f32>()
            });
            if wheel != 0.0 {
                let at = f64::from((pointer.x - plot.left()) / plot.width()).clamp(0.0, 1.0);
                self.face.zoom(wheel > 0.0, at);
            }
        }
    }

    fn lanes(&mut self, ui: &egui::Ui, plot: Rect, area: Rect, pixels_per_point: f32) {
        let theme = self.theme();
        let mut painter =
            LanePainter { area, pixels_per_point, theme: &theme, quads: Vec::new(), lost: Vec::new() };
        let (start, end, divisions) = self.face.axis();
        let divisions: Vec<f32> =
            divisions.values().map(|value| ((value - start) / (end - start)) as f32).collect();
        let mut labels = Vec::new();
        let ranges: Vec<Range> =
            (0..self.face.picture.channels.len()).map(|place| self.face.range(place)).collect();
        for (place, (data, range)) in self.face.picture.channels.iter().zip(ranges).enumerate() {
            let rect = lane_rect(plot, place, self.face.picture.channels.len());
            let setup = self.face.options.channel(data.channel);
            let color = color32(theme.trace(data.channel));
            let lane = Lane { rect, data, range, color, scale: (setup.scale, setup.offset) };
            let ticks = Ticks::new(range.bottom, range.top, (rect.height() / 26.0).clamp(2.0, 10.0) as u32);
            painter.lane(&lane, &ticks, &divisions);
            labels.push((rect, color, setup.label(data.channel), range, ticks, setup.unit));
        }
        let LanePainter { quads, lost, .. } = painter;
        ui.painter().add(self.painter.shape(area, pixels_per_point, quads));
        for (rect, color, name, range, ticks, unit) in labels {
            lane_labels(ui, &theme, rect, color, &name, range, &ticks, &unit);
        }
        for rect in lost {
            let at = pos2(rect.center().x, rect.top() + 8.0);
            ui.painter().text(at, Align2::CENTER_TOP, "lost", label_font(), color32(theme.gap));
        }
    }

    fn time_axis(&self, ui: &egui::Ui, plot: Rect) {
        let (start, end, ticks) = self.face.axis();
        let unit = self.face.picture.axis_unit();
        let every = if plot.width() < 700.0 { 2 } else { 1 };
        let color = color32(self.theme().text_dim);
        for value in ticks.values() {
            // Counted from zero, so that labels stay with their values while the picture moves.
            if (value / ticks.step()).round() as i64 % every != 0 {
                continue;
            }
            let x = plot.left() + plot.width() * ((value - start) / (end - start)) as f32;
            let label = ticks.label(value, unit);
            let galley = ui.painter().layout_no_wrap(label, label_font(), color);
            let left = (x - galley.size().x / 2.0).clamp(plot.left(), plot.right() - galley.size().x);
            ui.painter().galley(pos2(left, plot.bottom() + 4.0), galley, color);
        }
    }

    /// Time and values under the pointer.
    fn readout(&self, ui: &egui::Ui, plot: Rect, pointer: Pos2) {
        let theme = self.theme();
        let part = f64::from((pointer.x - plot.left()) / plot.width());
        let cursor = color32(theme.cursor);
        let line = Rect::from_x_y_ranges(pointer.x.round()..=pointer.x.round() + 1.0, plot.y_range());
        ui.painter().rect_filled(line, 0.0, cursor.gamma_multiply(0.35));
        let (start, end, _) = self.face.axis();
        let seconds = start + part * (end - start);
        let at = Engineering::new(seconds, self.face.picture.axis_unit()).digits(4).to_string();
        value_tag(ui, &theme, pos2(pointer.x, plot.top()), plot, &at, cursor);
        for (place, data) in self.face.picture.channels.iter().enumerate() {
            let rect = lane_rect(plot, place, self.face.picture.channels.len());
            let column = (part * data.columns.len() as f64) as usize;
            let Some(column) = data.columns.get(column) else { continue };
            let setup = self.face.options.channel(data.channel);
            let text = match (column.is_empty(), column.has_gap()) {
                (true, true) => "lost".into(),
                (true, false) => continue,
                _ => range_text(column, &setup),
            };
            let color = if text == "lost" { theme.gap } else { theme.trace(data.channel) };
            let color = color32(color);
            value_tag(ui, &theme, pos2(pointer.x, rect.bottom() - 22.0), plot, &text, color);
        }
    }

    fn empty(&self, ui: &egui::Ui, plot: Rect) {
        let text = match (self.face.picture.stream, self.face.hud.state) {
            (Some(_), _) => "every channel is switched off: press 1 \u{2026} 8".to_owned(),
            (None, RunState::Ended) => "the stream ended without a sample".to_owned(),
            _ => format!("waiting for {}", self.face.hud.source),
        };
        let color = color32(self.theme().text_dim);
        ui.painter().text(plot.center(), Align2::CENTER_CENTER, text, FontId::proportional(20.0), color);
    }
}

pub(super) fn lane_rect(plot: Rect, place: usize, count: usize) -> Rect {
    let height = plot.height() / count as f32;
    let top = plot.top() + height * place as f32;
    Rect::from_min_max(pos2(plot.left(), top + 3.0), pos2(plot.right(), top + height - 3.0))
}

fn range_text(column: &grebe_scope::Column, setup: &crate::ChannelSetup) -> String {
    let show =
        |count: i16| Engineering::new(setup.value(f64::from(count)), &setup.unit).digits(4).to_string();
    match column.min == column.max {
        true => show(column.min),
        false => format!("{} \u{2026} {}", show(column.min), show(column.max)),
    }
}

#[allow(clippy::too_many_arguments, reason = "one call, one place")]
fn lane_labels(
    ui: &egui::Ui,
    theme: &Theme,
    rect: Rect,
    color: Color32,
    name: &str,
    range: Range,
    ticks: &Ticks,
    unit: &str,
) {
    let dim = color32(theme.text_dim);
    for value in ticks.values() {
        let y = rect.top() + rect.height() * ((range.top - value) / range.height()) as f32;
        if y > rect.top() + 5.0 && y < rect.bottom() - 5.0 {
            let at = pos2(rect.left() - 7.0, y);
            ui.painter().text(at, Align2::RIGHT_CENTER, ticks.label(value, unit), label_font(), dim);
        }
    }
    let galley = ui.painter().layout_no_wrap(name.to_owned(), label_font(), color32(theme.plot));
    let chip = Rect::from_min_size(rect.min + vec2(6.0, 5.0), galley.size() + vec2(10.0, 4.0));
    ui.painter().rect_filled(chip, 3.0, color);
    ui.painter().galley(chip.min + vec2(5.0, 2.0), galley, color32(theme.plot));
}

/// A value beside a vertical line, on the side where there is room.
pub(super) fn value_tag(ui: &egui::Ui, theme: &Theme, at: Pos2, plot: Rect, text: &str, color: Color32) {
    let galley = ui.painter().layout_no_wrap(text.to_owned(), label_font(), color);
    let size = galley.size() + vec2(10.0, 4.0);
    let left = if at.x + 6.0 + size.x < plot.right() { at.x + 6.0 } else { at.x - 6.0 - size.x };
    let tag = Rect::from_min_size(pos2(left, at.y + 3.0), size);
    ui.painter().rect_filled(tag, 3.0, color32(theme.background).gamma_multiply(0.9));
    ui.painter().galley(tag.min + vec2(5.0, 2.0), galley, color);
}

pub(super) fn label_font() -> FontId {
    FontId::monospace(11.0)
}

/// Left of the lanes, for their labels.
const GUTTER: f32 = 66.0;
/// Below the lanes, for the time.
const AXIS_HEIGHT: f32 = 24.0;
