//! The panes, traces above spectrum above waterfall until a person drags them elsewhere.

use eframe::egui::{self, CursorIcon, Rect, Sense, UiBuilder, pos2, vec2};
use egui_tiles::{Behavior, SimplificationOptions, TileId, UiResponse};

use super::lanes::color32;
use super::layout::Pane;
use super::panes::ScopePanes;
use crate::model::widget::Widget;

impl ScopePanes {
    pub(super) fn panes(&mut self, ui: &mut egui::Ui, area: Rect) {
        let Some(mut layout) = self.layout.take() else { return };
        let show = self.model.controls.show;
        layout.fit(area.height(), [show.spectrum, show.waterfall]);
        layout.set_visible(Pane::Spectrum, show.spectrum);
        layout.set_visible(Pane::Waterfall, show.waterfall);
        layout.set_visible(Pane::Xy, show.xy);
        ui.scope_builder(UiBuilder::new().max_rect(area), |ui| {
            layout.tree.ui(&mut TileBehavior(self), ui);
        });
        self.layout = Some(layout);
    }

    /// Draws the strip above a pane: its name, for dragging, and `controls` at the right, or below in a narrow pane.
    /// Returns the rest of the area.
    pub(super) fn pane_head(
        &mut self,
        ui: &mut egui::Ui,
        pane: Pane,
        words: &str,
        mut controls: Vec<Widget>,
    ) -> (Rect, UiResponse) {
        let area = ui.max_rect();
        let strip = Rect::from_min_size(area.min + vec2(10.0, 3.0), vec2(area.width() - 20.0, 22.0));
        let is_narrow = strip.width() < NAME_WIDTH + CONTROL_WIDTH * controls.len() as f32
            && area.height() >= TWO_ROWS_HEIGHT_MIN;
        let theme = self.theme();
        let words = egui::Label::new(egui::RichText::new(words).color(color32(theme.text_dim))).truncate();
        let mut response = UiResponse::None;
        let head = ui.scope_builder(UiBuilder::new().max_rect(strip), |ui| {
            ui.horizontal(|ui| {
                let name = egui::RichText::new(pane.name()).strong().color(color32(theme.text));
                let handle = ui.add(egui::Label::new(name).sense(Sense::drag()));
                if handle.on_hover_cursor(CursorIcon::Grab).drag_started() {
                    response = UiResponse::DragStarted;
                }
                if is_narrow {
                    ui.add(words);
                    return;
                }
                ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                    controls.reverse();
                    self.widgets(ui, &controls);
                    ui.with_layout(egui::Layout::left_to_right(egui::Align::Center), |ui| ui.add(words));
                });
            });
            if is_narrow {
                ui.horizontal_wrapped(|ui| self.widgets(ui, &controls));
            }
        });
        let bottom = if is_narrow { head.response.rect.bottom() } else { strip.bottom() };
        (Rect::from_min_max(pos2(area.left(), bottom + 2.0), area.max), response)
    }
}

struct TileBehavior<'a>(&'a mut ScopePanes);

impl Behavior<Pane> for TileBehavior<'_> {
    fn pane_ui(&mut self, ui: &mut egui::Ui, _: TileId, pane: &mut Pane) -> UiResponse {
        match pane {
            Pane::Traces => {
                let area = ui.max_rect();
                self.0.plot(ui, area);
                UiResponse::None
            }
            Pane::Spectrum => self.0.spectrum(ui),
            Pane::Waterfall => self.0.waterfall(ui),
            Pane::Xy => self.0.xy(ui),
        }
    }

    fn tab_title_for_pane(&mut self, pane: &Pane) -> egui::WidgetText {
        pane.name().into()
    }

    fn simplification_options(&self) -> SimplificationOptions {
        // If the traces stand alone, their container stays for the others.
        SimplificationOptions { prune_single_child_containers: false, ..SimplificationOptions::default() }
    }

    fn gap_width(&self, _: &egui::Style) -> f32 {
        4.0
    }

    fn resize_stroke(&self, _: &egui::Style, state: egui_tiles::ResizeState) -> egui::Stroke {
        let theme = self.0.theme();
        match state {
            egui_tiles::ResizeState::Idle => egui::Stroke::new(1.0, color32(theme.grid)),
            _ => egui::Stroke::new(2.0, color32(theme.grid_zero)),
        }
    }
}

/// About the width of a pane's name, and of each of its controls.
const NAME_WIDTH: f32 = 70.0;
const CONTROL_WIDTH: f32 = 60.0;
/// Lower panes have no room for a second row of controls.
const TWO_ROWS_HEIGHT_MIN: f32 = 140.0;
