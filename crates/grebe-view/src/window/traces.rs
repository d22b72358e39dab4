//! The traces in their lanes, or their densities, with the grid, the losses and the names of the channels.

use eframe::egui::{self, Align2, Color32, ColorImage, Pos2, Rect, Sense, TextureOptions, pos2, vec2};

use super::labels::{label_font, level_labels};
use super::lanes::{Lane, LanePainter, color32};
use super::panes::ScopePanes;
use super::plot::lane_rect;
use super::quads;
use crate::data::lane::LaneId;
use crate::data::picture::LaneColumns;
use crate::model::channel::ChannelSetup;
use crate::model::lane_ticks::{LaneTicks, chip_words};
use crate::model::seen::hud::RunState;
use crate::model::vertical::ValueRange;

/// A lane with its data and its look.
struct LaneTrace<'a> {
    id: LaneId,
    lane: Lane<'a>,
    setup: ChannelSetup,
    ticks: LaneTicks,
    is_clipped: bool,
    /// Whether it has its own grid and labels: in an overlay only the front lane has.
    has_grid: bool,
}

impl ScopePanes {
    /// Draws all lanes of the plot; a click on a channel's name opens its settings.
    pub(super) fn traces(&mut self, ui: &egui::Ui, plot: Rect, area: Rect, pixels_per_point: f32) {
        self.upload_persistence(ui.ctx());
        let count = self.model.seen.picture.lanes.len();
        let ranges: Vec<ValueRange> = (0..count).map(|place| self.model.range(place)).collect();
        let lanes = self.channel_lanes(plot, &ranges);
        let lost = self.paint_lanes(ui, &lanes, area, pixels_per_point);
        let clicked = self.name_lanes(ui, &lanes);
        self.name_losses(ui, plot, &lost);
        self.persistence_words(ui, plot);
        if let Some(lane) = clicked {
            self.model.open_settings(lane);
        }
    }

    fn channel_lanes<'a>(&'a self, plot: Rect, ranges: &[ValueRange]) -> Vec<LaneTrace<'a>> {
        let (is_overlay, front) = (self.model.controls.show.overlay, self.model.front_lane());
        let channels = self.model.seen.picture.lanes.iter().zip(ranges).enumerate();
        let lane = |(place, (data, &range)): (usize, (&'a LaneColumns, &ValueRange))| {
            let setup = self.model.setup(data.lane);
            let color = self.trace_color(data.lane);
            // Draw a stale stream paler.
            let is_stale = self.model.seen.hud.state == RunState::Stale;
            let color = if is_stale { color.gamma_multiply(0.4) } else { color };
            let rect = lane_rect(
                plot,
                if is_overlay { 0 } else { place },
                if is_overlay { 1 } else { ranges.len() },
            );
            LaneTrace {
                id: data.lane,
                lane: Lane {
                    rect,
                    columns: &data.columns,
                    line: data.line.as_ref(),
                    range,
                    color,
                    scale: (setup.scale, setup.offset),
                },
                is_clipped: data.is_clipped,
                ticks: LaneTicks::of(rect.height(), range, &setup),
                setup,
                has_grid: !is_overlay || place == front,
            }
        };
        channels.map(lane).collect()
    }

    /// Draws grids, losses and traces; returns the places where losses need a name.
    fn paint_lanes(
        &self,
        ui: &egui::Ui,
        lanes: &[LaneTrace<'_>],
        area: Rect,
        pixels_per_point: f32,
    ) -> Vec<Rect> {
        let theme = self.theme();
        let (start, end, divisions) = self.model.axis();
        let divisions: Vec<f32> =
            divisions.values().map(|value| ((value - start) / (end - start)) as f32).collect();
        let mut painter = LanePainter::new(area, pixels_per_point, &theme);
        for LaneTrace { lane, ticks, .. } in lanes.iter().filter(|lane| lane.has_grid) {
            painter.grid(lane, &ticks.lines, &divisions);
            painter.losses(lane);
        }
        let is_persistent = self.has_persistence();
        let front = self.model.front_lane();
        let behind = lanes.iter().enumerate().filter(|(place, _)| *place != front).map(|(_, lane)| lane);
        for LaneTrace { id, lane, .. } in behind.chain(lanes.get(front)) {
            // The math lane has no density, because it is computed again for each picture.
            if !is_persistent || id.is_math() {
                painter.trace(lane);
            }
        }
        let LanePainter { quads, lost, .. } = painter;
        ui.painter().add(quads::shape(self.slot("traces"), area, quads));
        if is_persistent {
            lanes.iter().for_each(|lane| self.persistence_image(ui, lane.lane.rect, lane.id));
        }
        lost
    }

    /// Draws labels of the value axes and names of the lanes; returns the clicked lane.
    fn name_lanes(&self, ui: &egui::Ui, lanes: &[LaneTrace<'_>]) -> Option<LaneId> {
        let theme = self.theme();
        let mut clicked = None;
        let mut chip_left = 6.0;
        for LaneTrace { id, lane, setup, ticks, is_clipped, has_grid } in lanes {
            if *has_grid {
                level_labels(ui, &theme, lane.rect, lane.range, &ticks.labels, &setup.unit);
            }
            let at = lane.rect.min + vec2(chip_left, 5.0);
            let chip = self.chip(ui, at, *id, setup, ticks.lines.step());
            clicked = clicked.or(chip.clicked().then_some(*id));
            let mut right = chip.rect.right();
            if *is_clipped {
                right = self.clip_chip(ui, chip.rect.right_top() + vec2(4.0, 0.0), *id);
            }
            let is_overlay = self.model.controls.show.overlay;
            chip_left += if is_overlay { right - chip.rect.left() + 5.0 } else { 0.0 };
        }
        clicked
    }

    /// Writes the loss into each wide gap, with its place if there is room.
    fn name_losses(&self, ui: &egui::Ui, plot: Rect, lost: &[Rect]) {
        let color = color32(self.theme().gap);
        for rect in lost {
            let at = pos2(rect.center().x, rect.top() + 8.0);
            let part = |x: f32| f64::from((x - plot.left()) / plot.width());
            let words = self.model.lost_words(part(rect.left())..part(rect.right()));
            let galley = ui.painter().layout_no_wrap(words, label_font(), color);
            if galley.size().x + 8.0 < rect.width() {
                ui.painter().galley(at - vec2(galley.size().x / 2.0, 0.0), galley, color);
            } else {
                ui.painter().text(at, Align2::CENTER_TOP, "lost", label_font(), color);
            }
        }
    }

    /// Draws a channel's name on its colour, and its scale; a click opens its settings.
    fn chip(
        &self,
        ui: &egui::Ui,
        at: Pos2,
        lane: LaneId,
        setup: &ChannelSetup,
        division: f64,
    ) -> egui::Response {
        let theme = self.theme();
        let name = chip_words(setup, lane, division);
        let galley = ui.painter().layout_no_wrap(name.clone(), label_font(), color32(theme.plot));
        let chip = Rect::from_min_size(at, galley.size() + vec2(10.0, 4.0));
        ui.painter().rect_filled(chip, 3.0, self.trace_color(lane));
        ui.painter().galley(chip.min + vec2(5.0, 2.0), galley, color32(theme.plot));
        let response = ui.interact(chip, self.id.with(("chip", lane)), Sense::click());
        let words = format!("settings of {}", setup.label(lane));
        let words = move || egui::WidgetInfo::labeled(egui::Role::Button, true, words.clone());
        response.widget_info(words);
        response.on_hover_cursor(egui::CursorIcon::PointingHand).on_hover_text(
            "scale, position, coupling, unit; the wheel over the numbers at the left changes the scale",
        )
    }

    /// Marks a channel as clipped; returns the end of the mark.
    fn clip_chip(&self, ui: &egui::Ui, at: Pos2, lane: LaneId) -> f32 {
        let theme = self.theme();
        let galley = ui.painter().layout_no_wrap("CLIP".into(), label_font(), color32(theme.plot));
        let chip = Rect::from_min_size(at, galley.size() + vec2(10.0, 4.0));
        ui.painter().rect_filled(chip, 3.0, color32(theme.gap));
        ui.painter().galley(chip.min + vec2(5.0, 2.0), galley, color32(theme.plot));
        let response = ui.interact(chip, self.id.with(("clip", lane)), Sense::hover());
        let words = format!("{} is clipped", self.model.setup(lane).label(lane));
        response.widget_info(move || egui::WidgetInfo::labeled(egui::Role::Label, true, words.clone()));
        response.on_hover_text(
            "neighbouring samples at an end of the range of the samples: the signal is cut off there",
        );
        chip.right()
    }

    /// Whether densities replace the traces: they are on, and there are any.
    fn has_persistence(&self) -> bool {
        let is_live = !self.model.controls.time.is_held();
        let view = &self.model.seen.picture.persistence;
        self.model.controls.show.persistence && is_live && view.as_ref().is_some_and(|view| view.records > 0)
    }

    fn upload_persistence(&mut self, ctx: &egui::Context) {
        let Some(view) = self.model.seen.picture.persistence.clone().filter(|_| self.has_persistence())
        else {
            return;
        };
        if self.persistence_number == view.number {
            return;
        }
        self.persistence_number = view.number;
        let text = color32(self.theme().text);
        for density in &view.lanes {
            let color = self.trace_color(density.lane);
            let ramp: Vec<Color32> = (0..256).map(|level| glow(level as f32 / 255.0, color, text)).collect();
            let pixels = density.cells.iter().map(|&cell| ramp[usize::from(cell)]).collect();
            let size = [density.width, density.cells.len() / density.width.max(1)];
            let image = ColorImage::new(size, pixels);
            match self.densities.get_mut(density.lane) {
                Some(texture) => texture.set(image, TextureOptions::LINEAR),
                None => {
                    let texture = ctx.load_texture("density", image, TextureOptions::LINEAR);
                    self.densities.insert(density.lane, texture);
                }
            }
        }
    }

    fn persistence_image(&self, ui: &egui::Ui, rect: Rect, lane: LaneId) {
        if let Some(texture) = self.densities.get(lane) {
            let all = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
            ui.painter().image(texture.id(), rect, all, Color32::WHITE);
        }
    }

    /// Writes the number of triggers in the densities, and their part of all triggers.
    fn persistence_words(&self, ui: &egui::Ui, plot: Rect) {
        let Some(view) = self.model.seen.picture.persistence.as_ref().filter(|_| self.has_persistence())
        else {
            return;
        };
        let mut words = format!("{} triggers", view.records);
        if view.fraction < 0.999 {
            words += &format!(", a sample: {:.0} % of them", view.fraction * 100.0);
        }
        let color = color32(self.theme().text_dim);
        let at = plot.right_top() + vec2(-16.0, 9.0);
        ui.painter().text(at, Align2::RIGHT_TOP, words, label_font(), color);
    }
}

/// The colour of a level: fades in, then turns towards the text colour, so that frequent levels stand out.
fn glow(level: f32, color: Color32, text: Color32) -> Color32 {
    let front = ((level - 0.6) / 0.4).clamp(0.0, 1.0) * 0.5;
    let mix = |a: u8, b: u8| (f32::from(a) + (f32::from(b) - f32::from(a)) * front) as u8;
    let mixed =
        Color32::from_rgb(mix(color.r(), text.r()), mix(color.g(), text.g()), mix(color.b(), text.b()));
    mixed.gamma_multiply((level / 0.6).min(1.0))
}
