//! Places of one scope's panes.

use eframe::egui;
use egui_tiles::{Container, Tile, TileId, Tiles, Tree};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pane {
    Traces,
    Spectrum,
    Waterfall,
    Xy,
}

pub(super) struct Layout {
    column: TileId,
    traces: TileId,
    /// Whether the panes below the traces have the same height as these.
    is_low: bool,
    pub(super) tree: Tree<Pane>,
}

impl Layout {
    pub(super) fn new(id: egui::Id) -> Layout {
        let mut tiles = Tiles::default();
        let [traces, spectrum, waterfall, xy] =
            [Pane::Traces, Pane::Spectrum, Pane::Waterfall, Pane::Xy].map(|pane| tiles.insert_pane(pane));
        // The X-Y plot is about square, so it is beside the others.
        let column = tiles.insert_vertical_tile(vec![traces, spectrum, waterfall]);
        let root = tiles.insert_horizontal_tile(vec![column, xy]);
        let mut tree = Tree::new(id, root, tiles);
        for (container, tile, share) in [(column, traces, TRACES_SHARE), (root, column, 1.8)] {
            if let Some(Tile::Container(Container::Linear(linear))) = tree.tiles.get_mut(container) {
                linear.shares.set_share(tile, share);
            }
        }
        Layout { column, traces, is_low: false, tree }
    }

    /// In a low column, the traces get the same height as each pane below them. A person's own sizes stay until that
    /// changes.
    pub(super) fn fit(&mut self, height: f32, below: [bool; 2]) {
        let below = below.into_iter().filter(|is_shown| *is_shown).count() as f32;
        let is_low = height / (TRACES_SHARE + below) < PANE_HEIGHT_MIN;
        if is_low != std::mem::replace(&mut self.is_low, is_low)
            && let Some(Tile::Container(Container::Linear(column))) = self.tree.tiles.get_mut(self.column)
        {
            column.shares.set_share(self.traces, if is_low { 1.0 } else { TRACES_SHARE });
        }
    }

    pub(super) fn set_visible(&mut self, pane: Pane, is_visible: bool) {
        if let Some(tile) = self.tree.tiles.find_pane(&pane) {
            self.tree.set_visible(tile, is_visible);
        }
    }
}

/// Share of the traces, if each pane below them has 1.
const TRACES_SHARE: f32 = 1.7;
/// With its head and its axis, in points.
const PANE_HEIGHT_MIN: f32 = 130.0;

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
