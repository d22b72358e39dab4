//! Where the panes of one scope stand.

use eframe::egui;
use egui_tiles::{Container, Tile, Tiles, Tree};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pane {
    Traces,
    Spectrum,
    Waterfall,
    Xy,
}

pub(super) struct Layout {
    pub(super) tree: Tree<Pane>,
}

impl Layout {
    pub(super) fn new(id: egui::Id) -> Layout {
        let mut tiles = Tiles::default();
        let [traces, spectrum, waterfall, xy] =
            [Pane::Traces, Pane::Spectrum, Pane::Waterfall, Pane::Xy].map(|pane| tiles.insert_pane(pane));
        // The plot of one over another is about as wide as it is high: it stands beside the others.
        let column = tiles.insert_vertical_tile(vec![traces, spectrum, waterfall]);
        let root = tiles.insert_horizontal_tile(vec![column, xy]);
        let mut tree = Tree::new(id, root, tiles);
        for (container, tile, share) in [(column, traces, 1.7), (root, column, 1.8)] {
            if let Some(Tile::Container(Container::Linear(linear))) = tree.tiles.get_mut(container) {
                linear.shares.set_share(tile, share);
            }
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
            Pane::Xy => "XY",
        }
    }
}
