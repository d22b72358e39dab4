//! Words and numbers on a plot, and other elements that all plots of the window share.

use eframe::egui::{self, Align2, Color32, FontId, Pos2, Rect, WidgetInfo, pos2, vec2};
use grebe_scope::Ticks;
use grebe_scope::raster::Theme;

use super::lanes::color32;
use crate::model::vertical::ValueRange;
use crate::model::view_model::ViewModel;

/// Draws values at the left of a lane.
pub(super) fn level_labels(
    ui: &egui::Ui,
    theme: &Theme,
    rect: Rect,
    range: ValueRange,
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

/// Draws values below a plot, at every `every`th tick.
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
        // Counts from zero, so that labels keep their values while the picture moves.
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

/// Steps of the wheel in this frame, away from the person if positive.
pub(super) fn wheel_steps(ui: &egui::Ui) -> f32 {
    ui.input(|input| {
        let steps = input.events.iter().filter_map(|event| match event {
            egui::Event::MouseWheel { delta, .. } if delta.y != 0.0 => Some(delta.y),
            _ => None,
        });
        steps.sum::<f32>()
    })
}

/// Draws a value beside a vertical line, on the side with more room.
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

/// Names a draggable mark for screen readers.
pub(super) fn name_slider(response: &egui::Response, name: impl Into<String>) {
    let name = name.into();
    response.widget_info(move || WidgetInfo::labeled(egui::Role::Slider, true, name.clone()));
}

/// Names a field or a button for screen readers.
pub(super) fn name_it(response: &egui::Response, name: &str) {
    response.ctx.accesskit_node_builder(response.id, |node| node.set_label(name));
}

/// Width of the labels left of the lanes, the same for all of these models.
pub(super) fn gutter<'a>(ctx: &egui::Context, models: impl Iterator<Item = &'a mut ViewModel>) -> f32 {
    let longest = models.map(ViewModel::label_chars).max().unwrap_or(0).min(LABEL_CHARS_MAX);
    let char_width = ctx.fonts_mut(|fonts| fonts.glyph_width(&label_font(), '0'));
    GUTTER_MIN.max((longest as f32 * char_width).ceil() + LABEL_SPACING)
}

pub(super) const GUTTER_MIN: f32 = 66.0;
/// Space beside a label.
const LABEL_SPACING: f32 = 9.0;
/// Units have no limit of their own.
const LABEL_CHARS_MAX: usize = 24;
/// Height of the time axis below the lanes.
pub(super) const AXIS_HEIGHT: f32 = 24.0;
