//! Persistence as textures of brightness.

use eframe::egui::{self, Align2, Color32, ColorImage, Rect, TextureOptions, pos2, vec2};

use super::labels::label_font;
use super::lanes::color32;
use super::panes::ScopePanes;

impl ScopePanes {
    /// Whether densities are shown in place of traces: they are on, and there are any.
    pub(super) fn has_persistence(&self) -> bool {
        let is_live = !self.model.controls.time.is_held();
        let view = &self.model.picture.persistence;
        self.model.controls.show.persistence && is_live && view.as_ref().is_some_and(|view| view.records > 0)
    }

    /// Makes textures of new densities.
    pub(super) fn upload_persistence(&mut self, ctx: &egui::Context) {
        let Some(view) = self.model.picture.persistence.clone().filter(|_| self.has_persistence()) else {
            return;
        };
        if self.persistence_number == view.number {
            return;
        }
        self.persistence_number = view.number;
        let text = color32(self.theme().text);
        for density in &view.channels {
            let color = self.trace_color(density.channel);
            let ramp: Vec<Color32> = (0..256).map(|level| glow(level as f32 / 255.0, color, text)).collect();
            let pixels = density.cells.iter().map(|&cell| ramp[usize::from(cell)]).collect();
            let size = [density.width, density.cells.len() / density.width.max(1)];
            let image = ColorImage::new(size, pixels);
            match self.densities.get_mut(density.channel) {
                Some(Some(texture)) => texture.set(image, TextureOptions::LINEAR),
                Some(empty) => *empty = Some(ctx.load_texture("density", image, TextureOptions::LINEAR)),
                None => {}
            }
        }
    }

    pub(super) fn persistence_image(&self, ui: &egui::Ui, rect: Rect, channel: usize) {
        if let Some(Some(texture)) = self.densities.get(channel) {
            let all = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
            ui.painter().image(texture.id(), rect, all, Color32::WHITE);
        }
    }

    /// How many triggers are in the densities, and which part of all that is.
    pub(super) fn persistence_words(&self, ui: &egui::Ui, plot: Rect) {
        let Some(view) = self.model.picture.persistence.as_ref().filter(|_| self.has_persistence()) else {
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

/// The colour of a level: fades in, then turns towards the colour of text, so that frequent levels stand out.
fn glow(level: f32, color: Color32, text: Color32) -> Color32 {
    let front = ((level - 0.6) / 0.4).clamp(0.0, 1.0) * 0.5;
    let mix = |a: u8, b: u8| (f32::from(a) + (f32::from(b) - f32::from(a)) * front) as u8;
    let mixed =
        Color32::from_rgb(mix(color.r(), text.r()), mix(color.g(), text.g()), mix(color.b(), text.b()));
    mixed.gamma_multiply((level / 0.6).min(1.0))
}
