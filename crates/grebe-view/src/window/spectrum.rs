//! The spectrum and the waterfall.

use eframe::egui::{self, Align2, Color32, ColorImage, Pos2, Rect, Sense, TextureOptions, pos2, vec2};
use egui_tiles::UiResponse;
use grebe_scope::raster::Theme;
use grebe_scope::{Engineering, Ticks};

use super::labels::{
    AXIS_HEIGHT, axis_labels, label_font, level_labels, name_slider, value_tag, wheel_steps,
};
use super::lanes::{Lane, LanePainter, color32};
use super::layout::Pane;
use super::marks::{GRIP, line};
use super::panes::{ScopePanes, WaterfallKey};
use super::quads;
use crate::data::spectrum::ROWS;
use crate::model::bars;
use crate::model::levels::{LEVEL_UNIT, level_words};
use crate::model::spectra::SpectrumTrace;
use crate::model::vertical::ValueRange;

impl ScopePanes {
    pub(super) fn spectrum(&mut self, ui: &mut egui::Ui) -> UiResponse {
        let words = self.model.spectrum_words();
        let controls = bars::spectrum_controls(&self.model);
        let (area, response) = self.pane_head(ui, Pane::Spectrum, &words, controls);
        let plot = self.plot_rect(area);
        #[cfg(test)]
        {
            self.pane_heights[1] = plot.height();
        }
        if plot.width() < 20.0 || plot.height() < 20.0 {
            return response;
        }
        let pointer = self.frequency_pointer(ui, area, plot, "spectrum");
        let range = self.model.spectrum_range();
        let pixels_per_point = ui.ctx().pixels_per_point();
        let traces = self.model.spectrum_traces((plot.width() * pixels_per_point).round() as usize);
        let (start, end, unit, ticks) =
            self.model.spectrum_axis((plot.width() / 110.0).clamp(2.0, 12.0) as u32);
        let levels = Ticks::new(range.bottom, range.top, (plot.height() / 24.0).clamp(3.0, 10.0) as u32);
        let theme = self.theme();
        let mut painter = LanePainter::new(area, pixels_per_point, &theme);
        let lane = |columns, color| Lane { rect: plot, columns, line: None, range, color, scale: (1.0, 0.0) };
        let divisions: Vec<f32> =
            ticks.values().map(|value| ((value - start) / (end - start)) as f32).collect();
        painter.grid(&lane(&[], Color32::WHITE), &levels, &divisions);
        for trace in &traces {
            let color = self.channel_color(trace.channel);
            painter.trace(&lane(&trace.hold, color.gamma_multiply(0.45)));
            painter.trace(&lane(&trace.columns, color));
        }
        ui.painter().add(quads::shape(self.slot("spectrum"), area, painter.quads));
        level_labels(ui, &theme, plot, range, &levels, LEVEL_UNIT);
        axis_labels(ui, &theme, plot, [start, end], &ticks, unit, 1);
        self.harmonic_marks(ui, plot);
        self.peak_marks(ui, plot, range);
        self.markers(ui, plot);
        if let Some(pointer) = pointer {
            self.spectrum_readout(ui, plot, pointer, &traces, [start, end], unit);
        }
        if traces.is_empty() {
            let text = "no run of samples without a gap is long enough yet";
            let (font, color) = (egui::FontId::proportional(15.0), color32(theme.text_dim));
            ui.painter().text(plot.center(), Align2::CENTER_CENTER, text, font, color);
        }
        response
    }

    /// Draws a line at each harmonic with its number at the top; in brackets if it is an alias from beyond half the rate.
    fn harmonic_marks(&self, ui: &egui::Ui, plot: Rect) {
        let color = self.channel_color(self.model.harmonics_channel());
        let mut harmonics: Vec<_> = self.model.harmonics().into_iter().filter(|it| it.is_shown()).collect();
        harmonics.sort_by(|a, b| a.part.total_cmp(&b.part));
        let mut free_from = plot.left();
        for harmonic in harmonics {
            let x = plot.left() + plot.width() * harmonic.part as f32;
            let stroke = egui::Stroke::new(1.0, color.gamma_multiply(0.5));
            let line = [pos2(x, plot.top() + 14.0), pos2(x, plot.bottom())];
            ui.painter().extend(egui::Shape::dashed_line(&line, stroke, 3.0, 4.0));
            let galley = ui.painter().layout_no_wrap(harmonic.label(), label_font(), color);
            let left = (x - galley.size().x / 2.0).max(free_from);
            free_from = left + galley.size().x + 3.0;
            if free_from < plot.right() {
                ui.painter().galley(pos2(left, plot.top() + 1.0), galley, color);
            }
        }
    }

    /// Draws the markers, which can be dragged.
    fn markers(&mut self, ui: &egui::Ui, plot: Rect) {
        let theme = self.theme();
        let color = color32(theme.cursor);
        for (which, (part, name)) in self.model.marker_marks().into_iter().enumerate() {
            if !(0.0..=1.0).contains(&part) {
                continue;
            }
            let x = (plot.left() + plot.width() * part as f32).round();
            let grip = Rect::from_center_size(pos2(x, plot.center().y), vec2(GRIP, plot.height()));
            let response = ui.interact(grip, self.id.with(("marker", which)), Sense::drag());
            name_slider(&response, format!("marker {}", name));
            let response = response.on_hover_cursor(egui::CursorIcon::ResizeHorizontal);
            line(ui, [pos2(x, plot.top()), pos2(x, plot.bottom())], which, color);
            value_tag(ui, &theme, pos2(x - 4.0, plot.bottom() - 22.0), plot, name, color);
            if let (true, Some(pointer)) = (response.dragged(), response.interact_pointer_pos()) {
                self.model.drag_marker(which, f64::from((pointer.x - plot.left()) / plot.width()));
            }
        }
    }

    /// Draws the highest peak of each channel.
    fn peak_marks(&self, ui: &egui::Ui, plot: Rect, range: ValueRange) {
        let Some(view) = &self.model.seen.picture.spectrum else { return };
        let theme = self.theme();
        let rows = self.model.peak_rows(1);
        let mut taken: Vec<Rect> = Vec::new();
        for (spectrum, row) in view.channels.iter().filter(|spectrum| !spectrum.peaks.is_empty()).zip(rows) {
            let peak = spectrum.peaks[0];
            let part = self.model.part_of_cycles(view.cycles_per_sample(peak.line));
            if !(0.0..=1.0).contains(&part) {
                continue;
            }
            let x = plot.left() + plot.width() * part as f32;
            let y = plot.top()
                + plot.height() * ((range.top - peak.dbfs) / range.height()).clamp(0.0, 1.0) as f32;
            let color = self.channel_color(spectrum.channel);
            let mark = vec![pos2(x - 4.0, y - 9.0), pos2(x + 4.0, y - 9.0), pos2(x, y - 2.0)];
            ui.painter().add(egui::Shape::convex_polygon(mark, color, egui::Stroke::NONE));
            let galley = ui.painter().layout_no_wrap(row.cells[1..].join("  "), label_font(), color);
            let size = galley.size() + vec2(10.0, 4.0);
            let left = if x + 8.0 + size.x < plot.right() { x + 8.0 } else { x - 8.0 - size.x };
            let mut tag = Rect::from_min_size(pos2(left, y.max(plot.top() + 4.0)), size);
            while let Some(other) = taken.iter().find(|other| other.intersects(tag)) {
                tag = tag.translate(vec2(0.0, other.bottom() + 1.0 - tag.top()));
            }
            taken.push(tag);
            ui.painter().rect_filled(tag, 3.0, color32(theme.background).gamma_multiply(0.85));
            ui.painter().galley(tag.min + vec2(5.0, 2.0), galley, color);
        }
    }

    fn spectrum_readout(
        &self,
        ui: &egui::Ui,
        plot: Rect,
        pointer: Pos2,
        traces: &[SpectrumTrace],
        [start, end]: [f64; 2],
        unit: &str,
    ) {
        let theme = self.theme();
        let part = f64::from((pointer.x - plot.left()) / plot.width());
        let cursor = color32(theme.cursor);
        let line = Rect::from_x_y_ranges(pointer.x.round()..=pointer.x.round() + 1.0, plot.y_range());
        ui.painter().rect_filled(line, 0.0, cursor.gamma_multiply(0.35));
        let at = Engineering::new(start + part * (end - start), unit).digits(5).to_string();
        let mut top = plot.bottom() - 22.0 * (traces.len() + 1) as f32;
        value_tag(ui, &theme, pos2(pointer.x, top), plot, &at, cursor);
        for trace in traces {
            top += 22.0;
            let Some(column) = trace.columns.get((part * trace.columns.len() as f64) as usize) else {
                continue;
            };
            let text = level_words(f64::from(column.max));
            value_tag(ui, &theme, pos2(pointer.x, top), plot, &text, self.channel_color(trace.channel));
        }
    }

    /// Handles wheel and drag on the frequency axis, and a double click for all of it. Returns the hovered place.
    fn frequency_pointer(&mut self, ui: &mut egui::Ui, area: Rect, plot: Rect, id: &str) -> Option<Pos2> {
        let response = ui.interact(area, self.id.with(id), Sense::click_and_drag());
        if response.dragged() && self.waterfall_box.is_none() {
            self.model.pan_spectrum(f64::from(-response.drag_delta().x / plot.width()));
        }
        if response.double_clicked() {
            self.model.controls.spectrum_zoom = (0.0, 1.0);
        }
        let pointer = response.hover_pos().filter(|pointer| plot.contains(*pointer))?;
        let wheel = wheel_steps(ui);
        if wheel != 0.0 {
            let at = f64::from((pointer.x - plot.left()) / plot.width());
            self.model.zoom_spectrum(if wheel > 0.0 { 0.7 } else { 1.0 / 0.7 }, at);
        }
        Some(pointer)
    }

    pub(super) fn waterfall(&mut self, ui: &mut egui::Ui) -> UiResponse {
        let mut words = self.model.channel_label(self.model.selected().channel);
        if let Some(sampled) = self.model.waterfall_words() {
            words = format!("{words}  {sampled}");
        }
        let controls = bars::waterfall_controls(&self.model);
        let (area, response) = self.pane_head(ui, Pane::Waterfall, &words, controls);
        let plot = self.plot_rect(area);
        if plot.width() < 20.0 || plot.height() < 10.0 {
            return response;
        }
        let theme = self.theme();
        let drawn = self.draw_on_waterfall(ui, plot);
        self.frequency_pointer(ui, area, plot, "waterfall");
        let (start, end, unit, ticks) =
            self.model.spectrum_axis((plot.width() / 110.0).clamp(2.0, 12.0) as u32);
        let range = self.model.waterfall_range();
        let pixels = (plot.size() * ui.ctx().pixels_per_point()).round();
        // A texture has a limit, which is more than the cells of a row.
        let columns = (pixels.x as usize).min(ui.ctx().input(|input| input.max_texture_side));
        self.upload_waterfall(ui.ctx(), (columns, (pixels.y as usize).min(ROWS)), range);
        if let Some((_, texture)) = &self.waterfall {
            let uv = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
            ui.painter().image(texture.id(), plot, uv, Color32::WHITE);
        }
        self.waterfall_annotations(ui, plot);
        if let Some(drawn) = drawn {
            let stroke = egui::Stroke::new(1.0, color32(theme.cursor));
            ui.painter().rect_stroke(drawn, 0.0, stroke, egui::StrokeKind::Inside);
        }
        if let Some(times) = self.model.waterfall_times() {
            let unit = self.model.seen.picture.axis_unit();
            let most = (plot.height() / 24.0).clamp(3.0, 6.0) as u32;
            let rows = Ticks::of_unit(times.bottom, times.top, most, unit);
            level_labels(ui, &theme, plot, times, &rows, unit);
        }
        axis_labels(ui, &theme, plot, [start, end], &ticks, unit, 1);
        self.level_bar(ui, plot, range);
        response
    }

    /// Draws the colour scale of the levels, beside the waterfall.
    fn level_bar(&self, ui: &egui::Ui, plot: Rect, range: ValueRange) {
        let bar =
            Rect::from_min_max(plot.right_top() + vec2(8.0, 0.0), plot.right_bottom() + vec2(20.0, 0.0));
        let mut mesh = egui::Mesh::default();
        for (place, color) in ramp(&self.theme()).into_iter().rev().enumerate() {
            let y = |place: usize| bar.top() + bar.height() * place as f32 / 256.0;
            mesh.add_colored_rect(Rect::from_x_y_ranges(bar.x_range(), y(place)..=y(place + 1)), color);
        }
        ui.painter().add(mesh);
        let ticks = Ticks::new(range.bottom, range.top, (plot.height() / 24.0).clamp(2.0, 8.0) as u32);
        let dim = color32(self.theme().text_dim);
        for value in ticks.values() {
            let y = bar.bottom() - bar.height() * range.part_of(value) as f32;
            let at = pos2(bar.right() + 4.0, y.clamp(bar.top() + 6.0, bar.bottom() - 6.0));
            ui.painter().text(at, Align2::LEFT_CENTER, ticks.label(value, LEVEL_UNIT), label_font(), dim);
        }
    }

    /// Spectrum and waterfall share one axis, so both leave room for the level bar.
    fn plot_rect(&self, area: Rect) -> Rect {
        let bar = if self.model.controls.show.waterfall { LEVELS_WIDTH } else { 0.0 };
        Rect::from_min_max(area.min + vec2(self.gutter, 2.0), area.max - vec2(12.0 + bar, AXIS_HEIGHT))
    }

    /// Makes a texture of the visible cells, if they, their place or the levels of their colours changed.
    fn upload_waterfall(&mut self, ctx: &egui::Context, size: (usize, usize), range: ValueRange) {
        let view = self.model.seen.picture.spectrum.as_ref();
        let Some(number) = view.and_then(|view| Some(view.waterfall.as_ref()?.number)) else { return };
        let controls = &self.model.controls;
        let key = WaterfallKey { number, range, theme: controls.theme, zoom: controls.spectrum_zoom, size };
        if self.waterfall.as_ref().is_some_and(|(shown, _)| *shown == key) {
            return;
        }
        let Some(levels) = self.model.waterfall_pixels(size) else { return };
        let lost = color32(self.theme().gap).gamma_multiply(0.35);
        let ramp = ramp(&self.theme());
        let pixels = levels.into_iter().map(|db| match db.is_nan() {
            true => lost,
            false => {
                let part = ((f64::from(db) - range.bottom) / range.height()).clamp(0.0, 1.0);
                ramp[(part * 255.0) as usize]
            }
        });
        let image = ColorImage::new([size.0, size.1], pixels.collect());
        match &mut self.waterfall {
            Some((shown, texture)) => {
                texture.set(image, TextureOptions::NEAREST);
                *shown = key;
            }
            None => {
                let texture = ctx.load_texture("waterfall", image, TextureOptions::NEAREST);
                self.waterfall = Some((key, texture));
            }
        }
    }
}

/// Colours of levels, from the lowest to the highest.
pub(super) fn ramp(theme: &Theme) -> Vec<Color32> {
    theme.ramp().iter().copied().map(color32).collect()
}

/// Width of the level bar with its labels.
const LEVELS_WIDTH: f32 = 76.0;
