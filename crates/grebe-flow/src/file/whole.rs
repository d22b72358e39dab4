//! Whether the graph as a whole can run: which way it flows, who shares a thread, how many channels go where.

use std::collections::HashMap;

use toml::Spanned;

use super::check::{Checked, Joined};
use super::mistake::Mistakes;
use crate::file::Link;

/// Says of each edge that closes a cycle which way it goes around.
pub(super) fn refuse_cycles(edges: &[Joined], stages: &[Checked<'_, '_>], mistakes: &mut Mistakes) {
    let mut kept: Vec<(usize, usize)> = Vec::new();
    for edge in edges {
        let (from, to) = (edge.from.0, edge.to.0);
        let Some(way) = way(to, from, &kept, &mut Vec::new()) else {
            kept.push((from, to));
            continue;
        };
        let around: Vec<&str> = std::iter::once(from).chain(way).map(|stage| stages[stage].name()).collect();
        mistakes
            .add(edge.to_span.clone(), format!("a cycle: {}", around.join(" -> ")))
            .label("leads back")
            .help("a stream flows one way");
    }
}

/// The stages from one to another along the edges, both included.
fn way(from: usize, to: usize, edges: &[(usize, usize)], seen: &mut Vec<usize>) -> Option<Vec<usize>> {
    if from == to {
        return Some(vec![to]);
    }
    if seen.contains(&from) {
        return None;
    }
    seen.push(from);
    edges.iter().filter(|edge| edge.0 == from).find_map(|edge| {
        let mut rest = way(edge.1, to, edges, seen)?;
        rest.insert(0, from);
        Some(rest)
    })
}

/// Stages that share a thread cannot be kept on different processors.
pub(super) fn refuse_split_crews(edges: &[Joined], stages: &[Checked<'_, '_>], mistakes: &mut Mistakes) {
    let mut crews: Vec<usize> = (0..stages.len()).collect();
    for edge in edges.iter().filter(|edge| edge.link == Link::Fused) {
        let (one, other) = (crews[edge.from.0], crews[edge.to.0]);
        crews.iter_mut().filter(|crew| **crew == other).for_each(|crew| *crew = one);
    }
    let mut pinned: HashMap<usize, &Spanned<usize>> = HashMap::new();
    for (stage, crew) in stages.iter().zip(crews) {
        let Some(cpu) = &stage.cpu else { continue };
        let first = *pinned.entry(crew).or_insert(cpu);
        if first.get_ref() != cpu.get_ref() {
            mistakes
                .add(cpu.span(), "stages that are fused share a thread: one processor for all of them")
                .beside(first.span(), "another one here");
        }
    }
}

/// Follows the number of channels from the sources on. There is neither a cycle nor an unknown stage.
pub(super) fn check_channels(edges: &[Joined], stages: &[Checked<'_, '_>], mistakes: &mut Mistakes) {
    let mut channels: Vec<Option<Option<u32>>> = vec![None; stages.len()];
    // Each round settles at least the next stage in the order of the stream.
    for _ in 0..stages.len() {
        for at in 0..stages.len() {
            let mut incoming = edges.iter().filter(|edge| edge.to.0 == at);
            let Some(ready) = stages[at].ready.as_ref().filter(|_| channels[at].is_none()) else { continue };
            if incoming.clone().any(|edge| channels[edge.from.0].is_none()) {
                continue;
            }
            let first = incoming.by_ref().min_by_key(|edge| edge.to.1);
            let before = first.and_then(|edge| channels[edge.from.0].flatten());
            channels[at] = Some(ready.channels(before).unwrap_or_else(|fault| {
                stages[at].add_fault(&fault, mistakes);
                None
            }));
        }
    }
}
