//! Whether what stands in a graph file makes a graph.

use super::checked_edge::CheckedEdge;
use super::checked_stage::CheckedStage;
use super::content::{FileEdge, FileStage};
use super::draft::Draft;
use super::graph_checks::{
    check_channels, refuse_cycles, refuse_double_claims, refuse_double_inputs, refuse_open_ends,
    refuse_split_workers, refuse_twins,
};
use crate::kind::Kinds;
use crate::mistake::Mistakes;

/// Checks everything that can be checked without opening anything. What it answers is good where no mistake was added.
pub(super) fn check(
    draft: Draft<'_>,
    kinds: &Kinds,
    mistakes: &mut Mistakes,
) -> (Vec<FileStage>, Vec<FileEdge>) {
    if draft.stages.is_empty() && draft.edges.is_empty() && mistakes.is_empty() {
        mistakes.add(0..0, "there is no [[stage]] in this file");
    }
    let stages: Vec<CheckedStage<'_, '_>> =
        draft.stages.into_iter().map(|stage| CheckedStage::of(stage, kinds, mistakes)).collect();
    refuse_twins(&stages, mistakes);
    refuse_double_claims(&stages, mistakes);
    let edges: Vec<CheckedEdge> =
        draft.edges.iter().filter_map(|edge| CheckedEdge::of(edge, &stages, mistakes)).collect();
    refuse_double_inputs(&edges, &stages, mistakes);
    if draft.is_whole && edges.len() == draft.edges.len() {
        refuse_open_ends(&edges, &stages, mistakes);
    }
    refuse_cycles(&edges, &stages, mistakes);
    refuse_split_workers(&edges, &stages, mistakes);
    if mistakes.is_empty() {
        check_channels(&edges, &stages, mistakes);
    }
    let edges = edges.iter().map(|edge| edge.to_file(&stages)).collect();
    (stages.into_iter().map(CheckedStage::into_file).collect(), edges)
}
