//! The dark and the light theme in egui's terms.

use eframe::egui::{self, Color32, FontFamily, FontId, Stroke, TextStyle};
use grebe_scope::raster::Theme;

use super::lanes::color32;
use crate::model::channel::ThemeChoice;

/// Amber for a held picture: distinct from live and from loss.
const HELD: [Color32; 2] = [Color32::from_rgb(240, 180, 60), Color32::from_rgb(150, 95, 0)];
const GOOD: [Color32; 2] = [Color32::from_rgb(80, 200, 120), Color32::from_rgb(14, 116, 60)];

/// Fonts with all signs of the scope, and, if the system has one, a font for names in any script.
pub(super) fn fonts() -> egui::FontDefinitions {
    let mut fonts = egui::FontDefinitions::default();
    // The proportional font lacks arrows.
    let (arrows, names) = ("Hack".to_owned(), "system".to_owned());
    fonts.families.entry(FontFamily::Proportional).or_default().push(arrows);
    if let Some((bytes, index)) = grebe_scope::raster::system_font() {
        let data = egui::FontData { index, ..egui::FontData::from_static(bytes) };
        fonts.font_data.insert(names.clone(), data.into());
        fonts.families.values_mut().for_each(|family| family.push(names.clone()));
    }
    fonts
}

/// Sets egui's colours and fonts for the scope.
pub(super) fn apply(ctx: &egui::Context, choice: ThemeChoice) {
    let theme = choice.colors();
    let mut visuals = match choice {
        ThemeChoice::Dark => egui::Visuals::dark(),
        ThemeChoice::Light => egui::Visuals::light(),
    };
    visuals.override_text_color = Some(color32(theme.text));
    visuals.panel_fill = color32(theme.plot);
    visuals.window_fill = color32(theme.background);
    visuals.window_stroke = Stroke::new(1.0, color32(theme.grid_zero));
    for (widget, fill) in [
        (&mut visuals.widgets.inactive, theme.grid),
        (&mut visuals.widgets.hovered, theme.grid_zero),
        (&mut visuals.widgets.active, theme.grid_zero),
    ] {
        widget.weak_bg_fill = color32(fill);
        widget.bg_fill = color32(fill);
        widget.bg_stroke = Stroke::NONE;
        widget.expansion = 0.0;
    }
    ctx.set_visuals(visuals);
    ctx.all_styles_mut(|style| {
        style.text_styles.insert(TextStyle::Body, FontId::new(13.5, FontFamily::Proportional));
        style.text_styles.insert(TextStyle::Button, FontId::new(13.5, FontFamily::Proportional));
        style.text_styles.insert(TextStyle::Monospace, FontId::new(12.5, FontFamily::Monospace));
        style.spacing.item_spacing = egui::vec2(8.0, 4.0);
        style.interaction.selectable_labels = false;
    });
}

pub(super) fn good(choice: ThemeChoice) -> Color32 {
    GOOD[choice as usize]
}

pub(super) fn held(choice: ThemeChoice) -> Color32 {
    HELD[choice as usize]
}

pub(super) fn on_chip(theme: &Theme) -> Color32 {
    color32(theme.plot)
}
