//! One scope of the window: its model, its layout, its textures, and the order of a frame. The other files draw its parts.

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
    /// Distinguishes several scopes of one window.
    pub(super) id: egui::Id,
    /// `None` while it is being drawn.
    pub(super) layout: Option<Layout>,
    /// The waterfall's texture, with its number, levels and theme.
    pub(super) waterfall: Option<(WaterfallKey, TextureHandle)>,
    /// The texture of the X-Y plot, with its number and theme.
    pub(super) xy_texture: Option<((u64, ThemeChoice), TextureHandle)>,
    /// The textures of the densities, and the number of their view.
    pub(super) densities: PerLane<TextureHandle>,
    pub(super) persistence_number: u64,
    /// Width of the labels left of the plots.
    pub(super) gutter: f32,
    /// Heights of the plots of traces and spectrum in the last frame.
    #[cfg(test)]
    pub(super) pane_heights: [f32; 2],
    /// Scroll position of the lanes in points, and the lane that was last scrolled into view.
    pub(super) lanes_offset: f32,
    pub(super) lanes_selected: Option<LaneId>,
    /// Start of a box that is being drawn.
    pub(super) box_from: Option<Pos2>,
    /// Whether the box becomes an annotation, instead of a zoom.
    pub(super) is_box_annotated: bool,
    /// Start of a box that is being drawn on the waterfall.
    pub(super) waterfall_box: Option<Pos2>,
    /// Distance of the grabbed point from the middle of the visible part, in the overview strip.
    pub(super) overview_grip: f32,
    /// Widths of the items in the head's rows, in the last frame.
    pub(super) buttons_width: f32,
    pub(super) facts_width: f32,
    /// Whether the two rows of the head are folded into more.
    pub(super) is_folded: [bool; 2],
    pub(super) trigger_width: f32,
    /// The trigger to which the list last scrolled.
    pub(super) listed_segment: Option<f64>,
    /// The search result to which the list last scrolled.
    pub(super) listed_event: Option<usize>,
    /// The button of the open list, and the line to which the list last scrolled.
    pub(super) list_anchor: Option<(Setting, Rect)>,
    pub(super) listed_mark: Option<usize>,
    /// Whether this scope gets the keys.
    pub(super) has_keys: bool,
    /// Whether the caller takes the pictures, for several scopes together.
    pub(super) is_refreshed: bool,
    /// Whether keys go to a field.
    pub(super) is_typing: bool,
    /// The number field with the keyboard focus, and its typed text.
    pub(super) typed: Option<(egui::Id, String)>,
    /// The theme that egui was last styled for.
    pub(super) styled: Option<ThemeChoice>,
}

/// The waterfall of a texture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WaterfallKey {
    pub(super) number: u64,
    pub(super) range: ValueRange,
    pub(super) theme: ThemeChoice,
    pub(super) zoom: (f64, f64),
    pub(super) size: (usize, usize),
}

impl ScopePanes {
    /// Creates one of several scopes of a window.
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

    /// Draws one frame: keys first, then all elements from the top down.
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
        let bottom = area.bottom() - self.measurements_height(area.height());
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

    /// Redraws when a stopped stream becomes stale, and while a source is being opened, because neither wakes the
    /// window. A picture at rest costs nothing otherwise.
    fn wake_when_stale(&self, ctx: &egui::Context) {
        if self.model.is_opening() {
            ctx.request_repaint_after(OPENING_INTERVAL);
        }
        if self.model.seen.hud.state == RunState::Live {
            let age_ns = monotonic_ns().saturating_sub(self.model.seen.picture.newest_arrival_ns);
            ctx.request_repaint_after(Duration::from_nanos(STALE_NS.saturating_sub(age_ns) + 1_000_000));
        }
    }

    /// A button with an action.
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

    /// A button that stays pressed while a setting is on.
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

    /// The colour of a whole channel.
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

/// Interval of checks whether a source has been opened.
const OPENING_INTERVAL: Duration = Duration::from_millis(50);
