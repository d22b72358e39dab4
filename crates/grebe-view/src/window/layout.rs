//! The layout of the panes: traces above spectrum above waterfall, until a person drags them elsewhere.

use eframe::egui;
use egui_tiles::{Container, Tile, Tree};

/// The panes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pane {
    Traces,
    Spectrum,
    Waterfall,
}

pub(super) struct Layout {
    pub(super) tree: Tree<Pane>,
}

impl Layout {
    pub(super) fn new(id: egui::Id) -> Layout {
        let panes = vec![Pane::Traces, Pane::Spectrum, Pane::Waterfall];
        let mut tree = Tree::new_vertical(id, panes);
        let traces = tree.tiles.find_pane(&Pane::Traces);
        if let (Some(Tile::Container(Container::Linear(linear))), Some(traces)) =
            (tree.root().and_then(|root| tree.tiles.get_mut(root)), traces)
        {
            linear.shares.set_share(traces, 1.7);
        }
        Layout { tree }
    }

    pub(super) fn set_visible(&mut self, pane: Pane, is_visible: bool) {
        if let Some(tile) = self.tree.tiles.find_pane(&pane) {
            self.tree.set_visible(tile, is_visible);
        }
    }
}

impl Pane {
    pub(super) fn name(self) -> &'static str {
        match self {
            Pane::Traces => "traces",
            Pane::Spectrum => "spectrum",
            Pane::Waterfall => "waterfall",
        }
    }
}
