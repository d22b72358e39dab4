//! What one scope of the window consists of: its model, its layout, its textures. The other files draw it.

use eframe::egui::{self, Color32, TextureHandle};
use grebe_scope::raster::Theme;

use super::lanes::color32;
use super::layout::Layout;
use super::quads::QuadPainter;
use crate::data::link::ScopeLink;
use crate::data::math::LANES;
use crate::model::options::ViewOptions;
use crate::model::theme::ThemeChoice;
use crate::model::view_model::ViewModel;
use crate::png;

pub(super) struct ScopePanes {
    pub(super) model: ViewModel,
    pub(super) painter: QuadPainter,
    /// Tells several scopes of one window apart.
    pub(super) id: egui::Id,
    /// `None` while it is being drawn.
    pub(super) layout: Option<Layout>,
    /// The waterfall's texture: its number, what its colours mean, and the texture.
    pub(super) waterfall: Option<(u64, i32, TextureHandle)>,
    /// The textures of the densities, by channel, and the number of the view that they are of.
    pub(super) densities: [Option<TextureHandle>; 8],
    pub(super) persistence_number: u64,
    /// Width of the controls of both rows in the last frame.
    pub(super) buttons_width: f32,
    pub(super) trigger_width: f32,
    /// The trigger that the list was last scrolled to.
    pub(super) listed_segment: Option<f64>,
    /// Whether keys are for this one of several.
    pub(super) has_keys: bool,
    /// Whether keys go to a field.
    pub(super) is_typing: bool,
    /// The theme that egui was last styled for.
    pub(super) styled: Option<ThemeChoice>,
}

impl ScopePanes {
    /// The first of a window.
    #[cfg(test)]
    pub(super) fn new(link: ScopeLink, options: ViewOptions, painter: QuadPainter) -> ScopePanes {
        ScopePanes::numbered(0, link, options, painter)
    }

    /// One of several in a window.
    pub(super) fn numbered(
        number: usize,
        link: ScopeLink,
        options: ViewOptions,
        painter: QuadPainter,
    ) -> ScopePanes {
        let id = egui::Id::unique(("scope", number));
        ScopePanes {
            model: ViewModel::new(link, options, png::encode),
            painter,
            id,
            layout: Some(Layout::new(id.with("layout"))),
            waterfall: None,
            densities: Default::default(),
            persistence_number: 0,
            buttons_width: 600.0,
            trigger_width: 430.0,
            listed_segment: None,
            has_keys: true,
            is_typing: false,
            styled: None,
        }
    }

    /// Identifies the GPU buffers of an area of this scope.
    pub(super) fn slot(&self, area: &str) -> u64 {
        self.id.with(area).value()
    }

    pub(super) fn trace_color(&self, channel: usize) -> Color32 {
        color32(self.model.controls.lanes.setups[channel % LANES].trace_color(channel, &self.theme()))
    }

    pub(super) fn theme(&self) -> Theme {
        self.model.controls.theme.colors()
    }

    pub(super) fn is_done(&self) -> bool {
        self.model.is_done()
    }

    #[cfg(test)]
    pub(super) fn channels_shown(&self) -> Vec<usize> {
        self.model.picture.channels.iter().map(|data| data.channel).collect()
    }
}
