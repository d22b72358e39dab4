//! The overview strip below the panes: the whole history, with the visible part marked.

use eframe::egui::{self, CursorIcon, Rect, Sense, StrokeKind, pos2};

use super::labels::{label_font, name_slider};
use super::lanes::{Lane, LanePainter, color32};
use super::panes::ScopePanes;
use super::quads;
use crate::data::overview::OverviewView;
use crate::model::action::Action;
use crate::model::vertical::ValueRange;
use crate::model::view_model::extremes;

impl ScopePanes {
    /// Cuts the strip from the lower end of an area, and requests its columns. A low area has no strip.
    pub(super) fn take_overview(&mut self, area: &mut Rect, pixels_per_point: f32) -> Option<Rect> {
        let has_room = area.height() >= AREA_HEIGHT_MIN && area.width() >= AREA_WIDTH_MIN;
        let is_shown = self.model.controls.show.overview_strip && has_room;
        let strip = is_shown.then(|| {
            let bottom = area.bottom();
            area.set_bottom(bottom - HEIGHT);
            Rect::from_min_max(
                pos2(area.left() + self.gutter, bottom - HEIGHT + 2.0),
                pos2(area.right() - 12.0, bottom - 4.0),
            )
        });
        self.model.overview_columns = strip.map(|strip| (strip.width() * pixels_per_point) as usize);
        strip
    }

    pub(super) fn overview(&mut self, ui: &mut egui::Ui, strip: Rect) {
        ui.advance_cursor_after_rect(strip.expand(4.0));
        let Some(view) = self.model.seen.picture.overview.clone() else { return };
        let shown = self.shown_part(&view, strip);
        self.move_shown(ui, &view, strip, shown);
        self.paint_overview(ui, &view, strip);
        let theme = self.theme();
        let beyond = color32(theme.background).gamma_multiply(0.55);
        let left = Rect::from_x_y_ranges(strip.left()..=shown.left(), strip.y_range());
        let right = Rect::from_x_y_ranges(shown.right()..=strip.right(), strip.y_range());
        for rect in [left, right].into_iter().filter(|rect| rect.width() > 0.0) {
            ui.painter().rect_filled(rect, 0.0, beyond);
        }
        let stroke = egui::Stroke::new(1.0, color32(theme.cursor));
        ui.painter().rect_stroke(shown, 2.0, stroke, StrokeKind::Inside);
        let color = color32(theme.text_dim);
        let at = pos2(strip.left() - 7.0, strip.center().y);
        ui.painter().text(at, egui::Align2::RIGHT_CENTER, "all", label_font(), color);
    }

    /// The visible part of the history, at least wide enough to be seen and grabbed.
    fn shown_part(&self, view: &OverviewView, strip: Rect) -> Rect {
        let picture = &self.model.seen.picture;
        let x = |index: f64| {
            let part = ((index - view.left_index) / view.span_samples).clamp(0.0, 1.0);
            strip.left() + strip.width() * part as f32
        };
        let (left, right) = (x(picture.left_index), x(picture.right_index()));
        let missing = (SHOWN_WIDTH_MIN - (right - left)).max(0.0) / 2.0;
        let left = (left - missing).clamp(strip.left(), strip.right() - SHOWN_WIDTH_MIN);
        let right = (right + missing).clamp(left + SHOWN_WIDTH_MIN, strip.right());
        Rect::from_x_y_ranges(left..=right, strip.y_range())
    }

    /// A click shows that place in the middle; dragging moves the visible part with the pointer.
    fn move_shown(&mut self, ui: &egui::Ui, view: &OverviewView, strip: Rect, shown: Rect) {
        let response = ui.interact(strip, self.id.with("overview"), Sense::click_and_drag());
        name_slider(&response, "which part of the history is shown");
        let response = response.on_hover_cursor(CursorIcon::ResizeHorizontal);
        if response.drag_started() {
            let began = ui.input(|input| input.pointer.press_origin());
            // A part that was grabbed beside its middle keeps that offset.
            let inside = began.filter(|began| shown.contains(*began));
            self.overview_grip = inside.map_or(0.0, |began| began.x - shown.center().x);
        }
        let is_moved = response.clicked() || response.dragged();
        let Some(pointer) = response.interact_pointer_pos().filter(|_| is_moved) else { return };
        let grip = if response.dragged() { self.overview_grip } else { 0.0 };
        let part = f64::from((pointer.x - grip - strip.left()) / strip.width());
        self.model.act(Action::ShowAt(view.left_index + part * view.span_samples));
    }

    /// Draws all lanes over each other, each by its own extremes.
    fn paint_overview(&self, ui: &egui::Ui, view: &OverviewView, strip: Rect) {
        let theme = self.theme();
        let mut painter = LanePainter::new(strip, ui.ctx().pixels_per_point(), &theme);
        for (place, (shown, columns)) in view.lanes.iter().enumerate() {
            let setup = self.model.setup(*shown);
            let whole = ValueRange { bottom: 0.0, top: 1.0 };
            let range = extremes(columns, &setup).filter(|range| range.height() > 0.0).unwrap_or(whole);
            let lane = Lane {
                rect: strip,
                columns,
                line: None,
                range,
                color: self.trace_color(*shown).gamma_multiply(0.8),
                scale: (setup.scale, setup.offset),
            };
            if place == 0 {
                painter.losses(&lane);
            }
            painter.trace(&lane);
        }
        ui.painter().add(quads::shape(self.slot("overview"), strip, painter.quads));
    }
}

const HEIGHT: f32 = 34.0;
/// Minimum height of the area for panes and strip; a lower one needs it for the traces.
const AREA_HEIGHT_MIN: f32 = 330.0;
const AREA_WIDTH_MIN: f32 = 200.0;
const SHOWN_WIDTH_MIN: f32 = 6.0;
