//! The traces: their lanes, their axes, and what the pointer does there.

use eframe::egui::{self, Align2, Color32, FontId, Pos2, Rect, Sense, pos2, vec2};
use grebe_scope::raster::Theme;
use grebe_scope::{Engineering, Quantity, Ticks};

use super::lanes::{Lane, LanePainter, color32};
use super::panes::ScopePanes;
use crate::controls::DIVISIONS_VERTICAL;
use crate::hud::RunState;
use crate::keys::{Action, Step};
use crate::math::MATH_CHANNEL;
use crate::options::ChannelSetup;
use crate::readout::{QUANTITIES, TRIGGER_COLUMNS};
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

    /// Room for one row a measured channel, and for statistics.
    pub(super) fn measurements_height(&self) -> f32 {
        let rows = self.face.picture.measured.len() + self.face.statistics_rows().len();
        // The trigger's counter has a heading of its own.
        let counter = if self.face.picture.trigger.is_some() { 2.2 } else { 0.0 };
        match self.face.controls.is_measuring() {
            true => 32.0 + ROW_HEIGHT * (rows as f32 + counter),
            false => 0.0,
        }
    }

    pub(super) fn measurements(&self, ui: &mut egui::Ui, area: Rect) {
        if !self.face.controls.is_measuring() {
            return;
        }
        let mut rows = self.face.measurement_rows();
        rows.extend(self.face.statistics_rows());
        let names: Vec<&str> = [""].into_iter().chain(QUANTITIES.map(Quantity::name)).collect();
        let area = Rect::from_min_max(area.min + vec2(GUTTER, 2.0), area.max);
        ui.scope_builder(egui::UiBuilder::new().max_rect(area), |ui| {
            self.table(ui, "measurements", &names, &rows);
            let counter = self.face.trigger_rows();
            if !counter.is_empty() {
                ui.add_space(4.0);
                self.table(ui, "trigger rate", &TRIGGER_COLUMNS, &counter);
            }
        });
    }

    /// Wheel and drag.
    fn pointer(&mut self, ui: &egui::Ui, response: &egui::Response, plot: Rect) {
        let began = ui.input(|input| input.pointer.press_origin()).filter(|_| response.dragged());
        if let Some(channel) = began.and_then(|began| self.scale_at(plot, began)) {
            let lane = plot.height() / self.lane_count() as f32;
            self.face.act(Action::Select(channel));
            self.face.act(Action::Position(f64::from(-response.drag_delta().y / lane) * DIVISIONS_VERTICAL));
        } else if response.dragged() && response.drag_delta().x != 0.0 {
            let part = f64::from(-response.drag_delta().x / plot.width());
            self.face.pan(part);
        }
        if response.double_clicked() {
            self.face.act(Action::Live);
        }
        if let Some(pointer) = response.hover_pos() {
            let wheel = wheel_steps(ui);
            let over_scale = self.scale_at(plot, pointer);
            if let Some(channel) = over_scale.filter(|_| wheel != 0.0) {
                self.face.act(Action::Select(channel));
                self.face.act(Action::Vertical(if wheel > 0.0 { Step::Down } else { Step::Up }));
            } else if wheel != 0.0 {
                let at = f64::from((pointer.x - plot.left()) / plot.width()).clamp(0.0, 1.0);
                self.face.zoom(wheel > 0.0, at);
            }
        }
    }

    fn lane_count(&self) -> usize {
        if self.face.controls.show.overlay { 1 } else { self.face.picture.channels.len().max(1) }
    }

    /// The channel whose scale, left of its lane, is at that place.
    fn scale_at(&self, plot: Rect, at: Pos2) -> Option<usize> {
        if at.x >= plot.left() || !plot.y_range().contains(at.y) {
            return None;
        }
        let channels = &self.face.picture.channels;
        let place = match self.face.controls.show.overlay {
            true => self.front_lane(),
            false => ((at.y - plot.top()) / plot.height() * channels.len() as f32) as usize,
        };
        channels.get(place).map(|data| data.channel)
    }

    fn lanes(&mut self, ui: &egui::Ui, plot: Rect, area: Rect, pixels_per_point: f32) {
        let theme = self.theme();
        self.upload_persistence(ui.ctx());
        let (start, end, divisions) = self.face.axis();
        let divisions: Vec<f32> =
            divisions.values().map(|value| ((value - start) / (end - start)) as f32).collect();
        let count = self.face.picture.channels.len();
        let ranges: Vec<Range> = (0..count).map(|place| self.face.range(place)).collect();
        let is_overlay = self.face.controls.show.overlay;
        let front = self.front_lane();
        let mut painter = LanePainter::new(area, pixels_per_point, &theme);
        let lanes: Vec<(Lane<'_>, ChannelSetup)> = (self.face.picture.channels.iter().zip(&ranges))
            .enumerate()
            .map(|(place, (data, &range))| {
                let setup = self.face.setup(data.channel);
                let color = self.trace_color(data.channel);
                // What is stale looks it.
                let color =
                    if self.face.hud.state == RunState::Stale { color.gamma_multiply(0.4) } else { color };
                let rect = self.lane_rect(plot, place, count);
                let columns = &data.columns[..];
                (Lane { rect, columns, range, color, scale: (setup.scale, setup.offset) }, setup)
            })
            .collect();
        let ticks: Vec<LaneTicks> =
            lanes.iter().map(|(lane, setup)| LaneTicks::of(lane.rect.height(), lane.range, setup)).collect();
        for (place, (lane, _)) in lanes.iter().enumerate() {
            if !is_overlay || place == front {
                painter.grid(lane, &ticks[place].lines, &divisions);
                painter.losses(lane);
            }
        }
        let is_persistent = self.has_persistence();
        let order = (0..count).filter(|&place| place != front).chain((count > 0).then_some(front));
        // What is computed of a picture has one trace, whatever lies upon each other in the others.
        let is_traced =
            |place: &usize| !is_persistent || self.face.picture.channels[*place].channel == MATH_CHANNEL;
        order.filter(is_traced).for_each(|place| painter.trace(&lanes[place].0));
        let LanePainter { quads, lost, .. } = painter;
        ui.painter().add(self.painter.shape(self.slot("traces"), area, pixels_per_point, quads));
        if is_persistent {
            for (place, (lane, _)) in lanes.iter().enumerate() {
                self.persistence_image(ui, lane.rect, self.face.picture.channels[place].channel);
            }
        }
        let mut pressed = None;
        let mut chip_left = 6.0;
        for (place, (lane, setup)) in lanes.iter().enumerate() {
            if !is_overlay || place == front {
                level_labels(ui, &theme, lane.rect, lane.range, &ticks[place].labels, &setup.unit);
            }
            let channel = self.face.picture.channels[place].channel;
            let division = ticks[place].lines.step();
            let chip = self.chip(ui, lane.rect.min + vec2(chip_left, 5.0), channel, setup, division);
            pressed = pressed.or(chip.clicked().then_some(channel));
            chip_left += if is_overlay { chip.rect.width() + 5.0 } else { 0.0 };
        }
        for rect in lost {
            let at = pos2(rect.center().x, rect.top() + 8.0);
            let part = |x: f32| f64::from((x - plot.left()) / plot.width());
            let words = self.face.lost_words(part(rect.left())..part(rect.right()));
            let galley = ui.painter().layout_no_wrap(words, label_font(), color32(theme.gap));
            // The place only where there is room for it.
            match galley.size().x + 8.0 < rect.width() {
                true => {
                    ui.painter().galley(at - vec2(galley.size().x / 2.0, 0.0), galley, color32(theme.gap))
                }
                false => {
                    ui.painter().text(at, Align2::CENTER_TOP, "lost", label_font(), color32(theme.gap));
                }
            }
        }
        self.persistence_words(ui, plot);
        if let Some(channel) = pressed {
            let show = self.face.controls.show;
            let is_again = show.channel_panel && self.face.controls.selected == channel;
            self.face.act(Action::Select(channel));
            if is_again || !show.channel_panel {
                self.face.act(Action::Channels);
            }
        }
    }

    /// The lane whose grid and labels an overlay has.
    fn front_lane(&self) -> usize {
        let selected = self.face.controls.selected;
        self.face.picture.channels.iter().position(|data| data.channel == selected).unwrap_or(0)
    }

    /// A channel's name on its colour, and how it is shown; a click opens its settings.
    fn chip(
        &self,
        ui: &egui::Ui,
        at: Pos2,
        channel: usize,
        setup: &ChannelSetup,
        division: f64,
    ) -> egui::Response {
        let theme = self.theme();
        let mut name = setup.label(channel);
        if setup.is_ac {
            name += " AC";
        }
        if setup.is_inverted {
            name += " inv";
        }
        let division = setup.vertical.map_or(division, |vertical| vertical.per_division);
        name += &format!("  {}/div", Engineering::new(division, &setup.unit));
        let galley = ui.painter().layout_no_wrap(name.clone(), label_font(), color32(theme.plot));
        let chip = Rect::from_min_size(at, galley.size() + vec2(10.0, 4.0));
        ui.painter().rect_filled(chip, 3.0, self.trace_color(channel));
        ui.painter().galley(chip.min + vec2(5.0, 2.0), galley, color32(theme.plot));
        let response = ui.interact(chip, self.id.with(("chip", channel)), Sense::click());
        let words = format!("settings of {}", setup.label(channel));
        let words = move || egui::WidgetInfo::labeled(egui::Role::Button, true, words.clone());
        response.widget_info(words);
        response.on_hover_cursor(egui::CursorIcon::PointingHand).on_hover_text(
            "scale, position, coupling, unit; the wheel over the numbers at the left changes the scale",
        )
    }

    fn time_axis(&self, ui: &egui::Ui, plot: Rect) {
        let (start, end, ticks) = self.face.axis();
        let every = if plot.width() < 700.0 { 2 } else { 1 };
        axis_labels(ui, &self.theme(), plot, [start, end], &ticks, self.face.picture.axis_unit(), every);
    }

    pub(super) fn lane_rect(&self, plot: Rect, place: usize, count: usize) -> Rect {
        match self.face.controls.show.overlay {
            true => lane_rect(plot, 0, 1),
            false => lane_rect(plot, place, count),
        }
    }

    /// Time and values under the pointer.
    fn readout(&self, ui: &egui::Ui, plot: Rect, pointer: Pos2) {
        let theme = self.theme();
        let part = f64::from((pointer.x - plot.left()) / plot.width());
        let half = 0.5 / f64::from(plot.width());
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
            let setup = self.face.setup(data.channel);
            let text = match (column.is_empty(), column.has_gap()) {
                (true, true) => self.face.lost_words(part - half..part + half),
                (true, false) => continue,
                _ => range_text(column, &setup),
            };
            let color =
                if text.starts_with("lost") { color32(theme.gap) } else { self.trace_color(data.channel) };
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

/// What the grid lines and the labels of a lane stand for.
struct LaneTicks {
    lines: Ticks,
    labels: Ticks,
}

impl LaneTicks {
    /// A line a division where the scale is set, so that divisions can be counted; else in round steps.
    fn of(height: f32, range: Range, setup: &ChannelSetup) -> LaneTicks {
        let (bottom, top) = (range.bottom, range.top);
        let a_division = height / DIVISIONS_VERTICAL as f32;
        match setup.vertical {
            Some(vertical) if a_division >= DIVISION_HEIGHT_MIN => {
                let ticks = |every: f64| Ticks::with_step(bottom, top, vertical.per_division * every);
                let every = [1.0_f32, 2.0].into_iter().find(|every| a_division * every >= LABEL_HEIGHT);
                LaneTicks { lines: ticks(1.0), labels: ticks(every.map_or(4.0, f64::from)) }
            }
            _ => {
                let ticks = Ticks::new(bottom, top, (height / LABEL_HEIGHT).clamp(3.0, 10.0) as u32);
                LaneTicks { lines: ticks, labels: ticks }
            }
        }
    }
}

fn lane_rect(plot: Rect, place: usize, count: usize) -> Rect {
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

/// Values at the left of a lane.
pub(super) fn level_labels(
    ui: &egui::Ui,
    theme: &Theme,
    rect: Rect,
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
}

/// Values below a plot, every so many ticks.
pub(super) fn axis_labels(
    ui: &egui::Ui,
    theme: &Theme,
    plot: Rect,
    [start, end]: [f64; 2],
    ticks: &Ticks,
    unit: &str,
    every: i64,
) {
    let color = color32(theme.text_dim);
    let mut free_from = f32::NEG_INFINITY;
    for value in ticks.values() {
        // Counted from zero, so that labels stay with their values while the picture moves.
        if (value / ticks.step()).round() as i64 % every != 0 {
            continue;
        }
        let x = plot.left() + plot.width() * ((value - start) / (end - start)) as f32;
        let galley = ui.painter().layout_no_wrap(ticks.label(value, unit), label_font(), color);
        let left = (x - galley.size().x / 2.0).clamp(plot.left(), plot.right() - galley.size().x);
        if left >= free_from {
            free_from = left + galley.size().x + 8.0;
            ui.painter().galley(pos2(left, plot.bottom() + 4.0), galley, color);
        }
    }
}

/// Steps of the wheel in this frame, away from the person where positive.
pub(super) fn wheel_steps(ui: &egui::Ui) -> f32 {
    ui.input(|input| {
        let steps = input.events.iter().filter_map(|event| match event {
            egui::Event::MouseWheel { delta, .. } if delta.y != 0.0 => Some(delta.y),
            _ => None,
        });
        steps.sum::<f32>()
    })
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

/// Below it, lines of a division each would be a mist.
const DIVISION_HEIGHT_MIN: f32 = 8.0;
/// A label of a lane, with air.
const LABEL_HEIGHT: f32 = 24.0;
/// Of a row of the measurement table.
const ROW_HEIGHT: f32 = 22.0;
/// Left of the lanes, for their labels.
pub(super) const GUTTER: f32 = 66.0;
/// Below the lanes, for the time.
pub(super) const AXIS_HEIGHT: f32 = 24.0;
