//! One scope of the window: its model, its layout, its textures, and the order of a frame. The other files draw it.

use std::time::Duration;

use eframe::egui::{self, Color32, Pos2, Rect, TextureHandle, WidgetText, pos2};
use grebe_flow::monotonic_ns;
use grebe_scope::raster::Theme;

use super::labels::{GUTTER_MIN, gutter};
use super::lanes::color32;
use super::layout::Layout;
use super::style;
use crate::data::lane::{LaneId, PerLane};
use crate::data::link::ScopeLink;
use crate::model::action::Action;
use crate::model::channel::ThemeChoice;
use crate::model::options::ViewOptions;
use crate::model::seen::hud::{RunState, STALE_NS};
use crate::model::setting::Setting;
use crate::model::vertical::ValueRange;
use crate::model::view_model::ViewModel;
use crate::png;

pub(super) struct ScopePanes {
    pub(super) model: ViewModel,
    /// Tells several scopes of one window apart.
    pub(super) id: egui::Id,
    /// `None` while it is being drawn.
    pub(super) layout: Option<Layout>,
    /// The waterfall's texture: its number, what its colours mean, and the texture.
    pub(super) waterfall: Option<((u64, ValueRange, ThemeChoice), TextureHandle)>,
    /// The texture of one lane over another: which view in which theme.
    pub(super) xy_texture: Option<((u64, ThemeChoice), TextureHandle)>,
    /// The textures of the densities, and the number of the view that they are of.
    pub(super) densities: PerLane<TextureHandle>,
    pub(super) persistence_number: u64,
    /// Left of the plots, for their labels.
    pub(super) gutter: f32,
    /// Heights of the plots of traces and spectrum in the last frame.
    #[cfg(test)]
    pub(super) pane_heights: [f32; 2],
    /// How far the lanes are scrolled, in points, and the one that was last brought into view.
    pub(super) lanes_offset: f32,
    pub(super) lanes_selected: Option<LaneId>,
    /// Where a box was begun, while it is drawn.
    pub(super) box_from: Option<Pos2>,
    /// Whether it is to be annotated, instead of zoomed into.
    pub(super) is_box_annotated: bool,
    /// Where a box was begun on the waterfall, while it is drawn.
    pub(super) waterfall_box: Option<Pos2>,
    /// How far from the middle of what is shown the strip with all of the history was taken hold of.
    pub(super) overview_grip: f32,
    /// Widths of what stands in the rows of the head, in the last frame.
    pub(super) buttons_width: f32,
    pub(super) facts_width: f32,
    /// Whether the two rows of the head are folded into more.
    pub(super) is_folded: [bool; 2],
    pub(super) trigger_width: f32,
    /// The trigger that the list was last scrolled to.
    pub(super) listed_segment: Option<f64>,
    /// The place of the found event that was brought into sight last.
    pub(super) listed_event: Option<usize>,
    /// The button that opened the list, and the line that the list was last scrolled to.
    pub(super) list_anchor: Option<(Setting, Rect)>,
    pub(super) listed_mark: Option<usize>,
    /// Whether keys are for this one of several.
    pub(super) has_keys: bool,
    /// Whether somebody else takes its pictures, with those of others.
    pub(super) is_refreshed: bool,
    /// Whether keys go to a field.
    pub(super) is_typing: bool,
    /// The field of a quantity that has the keys, and what is typed there.
    pub(super) typed: Option<(egui::Id, String)>,
    /// The theme that egui was last styled for.
    pub(super) styled: Option<ThemeChoice>,
}

impl ScopePanes {
    /// One of several in a window.
    pub(super) fn new(number: usize, link: ScopeLink, options: ViewOptions) -> ScopePanes {
        let id = egui::Id::unique(("scope", number));
        ScopePanes {
            model: ViewModel::new(link, options, png::encode),
            id,
            layout: Some(Layout::new(id.with("layout"))),
            waterfall: None,
            xy_texture: None,
            densities: Default::default(),
            persistence_number: 0,
            gutter: GUTTER_MIN,
            #[cfg(test)]
            pane_heights: [0.0; 2],
            lanes_offset: 0.0,
            lanes_selected: None,
            box_from: None,
            is_box_annotated: false,
            waterfall_box: None,
            overview_grip: 0.0,
            buttons_width: 600.0,
            facts_width: 400.0,
            is_folded: [false; 2],
            trigger_width: 430.0,
            listed_segment: None,
            listed_event: None,
            list_anchor: None,
            listed_mark: None,
            has_keys: true,
            is_refreshed: false,
            is_typing: false,
            typed: None,
            styled: None,
        }
    }

    /// One frame: keys first, then everything that is shown, from the top down.
    pub(super) fn show(&mut self, ui: &mut egui::Ui) {
        if self.has_keys {
            self.keys(ui);
        }
        self.is_typing = false;
        if self.has_keys {
            self.take_dropped(ui);
        }
        if !self.is_refreshed {
            self.model.refresh();
        }
        if self.model.take_replaced() {
            let ctx = ui.ctx().clone();
            ctx.request_repaint();
            self.model.link.on_picture(move || ctx.request_repaint());
            let title =
                egui::ViewportCommand::Title(format!("{} \u{2013} grebe", self.model.seen.hud.source));
            ui.ctx().send_viewport_cmd(title);
            (self.densities, self.waterfall, self.xy_texture) = Default::default();
        }
        if self.styled != Some(self.model.controls.theme) {
            style::apply(ui.ctx(), self.model.controls.theme);
            self.styled = Some(self.model.controls.theme);
        }
        if !self.is_refreshed {
            self.gutter = gutter(ui.ctx(), [&mut self.model].into_iter());
        }
        self.head(ui);
        let area = ui.available_rect_before_wrap();
        let right = area.right() - self.side_width();
        // More rows than this scroll.
        let bottom = area.bottom() - self.measurements_height().min(area.height() * 0.4);
        let mut panes = Rect::from_min_max(area.min, pos2(right, bottom));
        let strip = self.take_overview(&mut panes, ui.ctx().pixels_per_point());
        self.panes(ui, panes);
        if let Some(strip) = strip {
            self.overview(ui, strip);
        }
        self.measurements(ui, Rect::from_min_max(pos2(area.left(), bottom), pos2(right, area.bottom())));
        self.side(ui, Rect::from_min_max(pos2(right, area.top()), area.max));
        if self.has_keys && self.model.controls.is_help_open {
            self.help(ui);
        }
        self.list(ui, area);
        self.prompt(ui);
        self.wake_when_stale(ui.ctx());
    }

    /// Draws once more when a stream that stops becomes stale: a picture at rest costs nothing meanwhile. Nobody wakes for a source that is
    /// being opened.
    fn wake_when_stale(&self, ctx: &egui::Context) {
        if self.model.is_opening() {
            ctx.request_repaint_after(OPENING_INTERVAL);
        }
        if self.model.seen.hud.state == RunState::Live {
            let age_ns = monotonic_ns().saturating_sub(self.model.seen.picture.newest_arrival_ns);
            ctx.request_repaint_after(Duration::from_nanos(STALE_NS.saturating_sub(age_ns) + 1_000_000));
        }
    }

    /// A button that does something.
    pub(super) fn button(
        &mut self,
        ui: &mut egui::Ui,
        text: impl Into<WidgetText>,
        hint: &str,
        action: Action,
    ) {
        if ui.button(text.into()).on_hover_text(hint).clicked() {
            self.model.act(action);
        }
    }

    /// A button that stays pressed while something is on.
    pub(super) fn toggle(
        &mut self,
        ui: &mut egui::Ui,
        is_on: bool,
        text: impl Into<WidgetText>,
        hint: &str,
        action: Action,
    ) {
        if ui.selectable_label(is_on, text.into()).on_hover_text(hint).clicked() {
            self.model.act(action);
        }
    }

    /// Identifies the GPU buffers of an area of this scope.
    pub(super) fn slot(&self, area: &str) -> u64 {
        self.id.with(area).value()
    }

    pub(super) fn trace_color(&self, lane: LaneId) -> Color32 {
        color32(self.model.controls.lanes.setup(lane).trace_color(lane, &self.theme()))
    }

    /// The colour of a channel where all of it is meant.
    pub(super) fn channel_color(&self, channel: usize) -> Color32 {
        self.trace_color(self.model.channel_lane(channel))
    }

    pub(super) fn theme(&self) -> Theme {
        self.model.controls.theme.colors()
    }

    #[cfg(test)]
    pub(super) fn lanes_shown(&self) -> String {
        let lanes: Vec<_> = self.model.seen.picture.lanes.iter().map(|data| data.lane.to_string()).collect();
        lanes.join(" ")
    }
}

/// How often is looked whether a source that is being opened is there.
const OPENING_INTERVAL: Duration = Duration::from_millis(50);
