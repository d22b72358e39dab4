//! One frame of a scope: keys first, then everything that is shown, from the top down.

use std::time::Duration;

use eframe::egui::{self, Rect, pos2};
use grebe_flow::monotonic_ns;

use super::panes::ScopePanes;
use super::style;
use crate::model::hud::{RunState, STALE_NS};

impl ScopePanes {
    pub(super) fn show(&mut self, ui: &mut egui::Ui) {
        if self.has_keys {
            self.keys(ui);
        }
        self.model.refresh();
        if self.styled != Some(self.model.controls.theme) {
            style::apply(ui.ctx(), self.model.controls.theme);
            self.styled = Some(self.model.controls.theme);
        }
        self.head(ui);
        let area = ui.available_rect_before_wrap();
        let right = area.right() - self.side_width();
        let bottom = area.bottom() - self.measurements_height();
        self.panes(ui, Rect::from_min_max(area.min, pos2(right, bottom)));
        self.measurements(ui, Rect::from_min_max(pos2(area.left(), bottom), pos2(right, area.bottom())));
        self.side(ui, Rect::from_min_max(pos2(right, area.top()), area.max));
        if self.has_keys && self.model.controls.is_help_open {
            self.help(ui);
        }
        self.wake_when_stale(ui.ctx());
    }

    /// Draws once more when a stream that stops becomes stale: a picture at rest costs nothing meanwhile.
    fn wake_when_stale(&self, ctx: &egui::Context) {
        if self.model.hud.state == RunState::Live {
            let age_ns = monotonic_ns().saturating_sub(self.model.picture.newest_arrival_ns);
            ctx.request_repaint_after(Duration::from_nanos(STALE_NS.saturating_sub(age_ns) + 1_000_000));
        }
    }
}
