//! Whether a graph can run.

use std::collections::HashSet;

use super::topology::{Edge, StageEntry, Topology};
use crate::error::Error;

/// Checks a graph; its stages, each behind all that lead to it.
///
/// # Errors
/// A name used twice, a cycle, a stage or a named input connected to nothing, an input connected twice, or a fused stage with
/// several inputs.
pub(super) fn check(topology: &Topology) -> Result<Vec<usize>, Error> {
    let stages = &topology.stages;
    let mut names = HashSet::new();
    if let Some(twin) = stages.iter().find(|stage| !names.insert(stage.name.as_str())) {
        return Err(Error::DuplicateName(twin.name.clone()));
    }
    for (at, stage) in stages.iter().enumerate() {
        let is_connected = topology.edges.iter().any(|edge| edge.from == at || edge.to == at);
        if stages.len() > 1 && !is_connected {
            return Err(Error::Unconnected(stage.name.clone()));
        }
        check_inputs(stage, &topology.arriving(at).collect::<Vec<_>>())?;
    }
    order(topology)
}

fn check_inputs(stage: &StageEntry, arriving: &[&Edge]) -> Result<(), Error> {
    if arriving.len() > 1 && arriving.iter().any(|edge| edge.queue.is_none()) {
        return Err(Error::FusedFanIn(stage.name.clone()));
    }
    let inputs = stage.ports.inputs;
    for (position, input) in inputs.iter().enumerate() {
        // An edge that names no input leads to the only one.
        let leads_here = |edge: &&&Edge| edge.input.map_or(inputs.len() == 1, |input| input == position);
        let port = format!("{}.{input}", stage.name);
        match arriving.iter().filter(leads_here).count() {
            0 => return Err(Error::Unconnected(port)),
            1 => {}
            _ => return Err(Error::ConnectedTwice(port)),
        }
    }
    let is_ambiguous = inputs.len() > 1 && arriving.iter().any(|edge| edge.input.is_none());
    if is_ambiguous { stage.port(inputs, "").map(drop) } else { Ok(()) }
}

/// The stages, each behind all that lead to it.
fn order(topology: &Topology) -> Result<Vec<usize>, Error> {
    let mut left: Vec<usize> = (0..topology.stages.len()).collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        let is_free = |stage: usize| !topology.arriving(stage).any(|edge| left.contains(&edge.from));
        let Some(at) = left.iter().position(|&stage| is_free(stage)) else {
            // What only hangs on a cycle is left over too: name a stage of the cycle itself.
            let leads_back = |stage: &usize| leads_to(topology, *stage, *stage, &mut HashSet::new());
            let on_cycle = left.iter().copied().find(leads_back);
            return Err(Error::Cycle(topology.stages[on_cycle.unwrap_or(left[0])].name.clone()));
        };
        order.push(left.remove(at));
    }
    Ok(order)
}

fn leads_to(topology: &Topology, from: usize, target: usize, seen: &mut HashSet<usize>) -> bool {
    let mut leaving = topology.edges.iter().filter(|edge| edge.from == from);
    leaving.any(|edge| edge.to == target || seen.insert(edge.to) && leads_to(topology, edge.to, target, seen))
}
