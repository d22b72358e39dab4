//! The plot of one lane over another.

use eframe::egui::{self, Color32, ColorImage, Rect, TextureOptions, pos2, vec2};
use egui_tiles::UiResponse;
use grebe_scope::Ticks;

use super::labels::{AXIS_HEIGHT, axis_labels, level_labels};
use super::lanes::{Lane, LanePainter};
use super::layout::Pane;
use super::panes::ScopePanes;
use super::quads;
use super::spectrum::ramp;
use crate::data::xy::XyView;
use crate::model::bars;
use crate::model::xy::XyAxis;

impl ScopePanes {
    pub(super) fn xy(&mut self, ui: &mut egui::Ui) -> UiResponse {
        let words = self.model.xy_words();
        let (area, response) = self.pane_head(ui, Pane::Xy, &words, bars::xy_controls());
        let plot = Rect::from_min_max(area.min + vec2(self.gutter, 2.0), area.max - vec2(12.0, AXIS_HEIGHT));
        if plot.width() < 20.0 || plot.height() < 20.0 {
            self.model.xy_size = None;
            return response;
        }
        // One cell for two points, because finer ones show noise.
        let size = ((plot.width() / 2.0) as usize, (plot.height() / 2.0) as usize);
        self.model.xy_size = Some((size.0.clamp(1, 8192), size.1.clamp(1, 8192)));
        let [x, y] = self.model.xy_axes(size);
        let theme = self.theme();
        let across = Ticks::new(x.range.bottom, x.range.top, (plot.width() / 90.0).clamp(2.0, 12.0) as u32);
        let upwards = Ticks::new(y.range.bottom, y.range.top, (plot.height() / 30.0).clamp(3.0, 10.0) as u32);
        let mut painter = LanePainter::new(area, ui.ctx().pixels_per_point(), &theme);
        let divisions: Vec<f32> = across.values().map(|value| x.range.part_of(value) as f32).collect();
        let lane = Lane {
            rect: plot,
            columns: &[],
            line: None,
            range: y.range,
            color: Color32::WHITE,
            scale: (1.0, 0.0),
        };
        painter.grid(&lane, &upwards, &divisions);
        ui.painter().add(quads::shape(self.slot("xy"), area, painter.quads));
        if let Some(view) = self.model.seen.picture.xy.clone() {
            self.upload_xy(ui.ctx(), &view);
        }
        if let (Some((_, texture)), Some(view)) = (&self.xy_texture, &self.model.seen.picture.xy) {
            // The axes may have changed since, so scale the cells to their values.
            let parts = |axis: &XyAxis, (low, high): (f64, f64)| {
                let setup = self.model.setup(axis.lane);
                [low, high].map(|count| axis.range.part_of(setup.value(count)) as f32)
            };
            let [left, right] =
                parts(&x, view.settings.x_range).map(|part| plot.left() + plot.width() * part);
            let [low, high] =
                parts(&y, view.settings.y_range).map(|part| plot.bottom() - plot.height() * part);
            let place = Rect::from_two_pos(pos2(left, low), pos2(right, high));
            let all = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
            ui.painter().with_clip_rect(plot).image(texture.id(), place, all, Color32::WHITE);
        }
        level_labels(ui, &theme, plot, y.range, &upwards, &y.unit);
        axis_labels(ui, &theme, plot, [x.range.bottom, x.range.top], &across, &x.unit, 1);
        response
    }

    fn upload_xy(&mut self, ctx: &egui::Context, view: &XyView) {
        let choice = self.model.controls.theme;
        let key = (view.number, choice);
        if self.xy_texture.as_ref().is_some_and(|(shown, _)| *shown == key) {
            return;
        }
        // The first colour, for empty cells, is transparent, so that the grid is visible.
        let ramp = ramp(&self.theme());
        let color = |&cell: &u8| match cell {
            0 => Color32::TRANSPARENT,
            cell => ramp[64 + usize::from(cell) * 191 / 255],
        };
        let (width, height) = view.settings.size;
        let image = ColorImage::new([width, height], view.cells.iter().map(color).collect());
        match &mut self.xy_texture {
            Some((shown, texture)) => {
                texture.set(image, TextureOptions::NEAREST);
                *shown = key;
            }
            None => {
                let texture = ctx.load_texture("xy", image, TextureOptions::NEAREST);
                self.xy_texture = Some((key, texture));
            }
        }
    }
}
