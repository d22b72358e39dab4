//! Stages of a graph and the edges between them by position, with their checks.

use std::collections::HashSet;

use crate::error::Error;
use crate::queue::QueueOptions;
use crate::runtime::{Node, QueueHandle};
use crate::stage::{Ports, Stage};

#[derive(Default)]
pub(super) struct Topology {
    /// Distinguishes its nodes from other graphs' nodes.
    pub(super) id: u64,
    pub(super) has_foreign: bool,
    pub(super) stages: Vec<StageEntry>,
    pub(super) edges: Vec<Edge>,
    /// Queues from the last stage of a thread to a task.
    pub(super) async_queues: Vec<QueueHandle>,
    /// Capacity reserved for the queues of later consumers.
    pub(super) reserved_batches: usize,
}

pub(super) struct StageEntry {
    pub(super) name: String,
    pub(super) stage: Box<dyn Stage>,
    pub(super) ports: Ports,
    pub(super) cpu: Option<usize>,
    pub(super) is_open: bool,
    pub(super) ends_graph: bool,
}

/// Edge, with stages and ports by position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) output: usize,
    pub(super) to: usize,
    /// Position among the names of the stage's inputs; `None` if they have no names.
    pub(super) input: Option<usize>,
    /// `None`: on the same thread, without a queue.
    pub(super) queue: Option<QueueOptions>,
}

impl StageEntry {
    /// Position of a port among the stage's inputs or outputs.
    pub(super) fn port(&self, known: &[&str], name: &str) -> Result<usize, Error> {
        known.iter().position(|known| *known == name).ok_or_else(|| Error::NoSuchPort {
            stage: self.name.clone(),
            port: name.to_owned(),
            known: known.join(", "),
        })
    }
}

impl Topology {
    /// Position of this node's stage.
    pub(super) fn at(&self, node: Node) -> Result<usize, Error> {
        if node.graph == self.id { Ok(node.at) } else { Err(Error::ForeignNode) }
    }

    pub(super) fn arriving(&self, stage: usize) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |edge| edge.to == stage)
    }

    /// Worker of each stage.
    pub(super) fn workers(&self) -> Vec<usize> {
        let is_fused = |edge: &&Edge| edge.queue.is_none();
        fused(self.stages.len(), self.edges.iter().filter(is_fused).map(|edge| (edge.from, edge.to)))
    }
}

/// Worker of each of `stages` stages, if each of these edges puts two stages on one thread.
pub(crate) fn fused(stages: usize, edges: impl Iterator<Item = (usize, usize)>) -> Vec<usize> {
    let mut workers: Vec<usize> = (0..stages).collect();
    for (from, to) in edges {
        let (one, other) = (workers[from], workers[to]);
        workers.iter_mut().filter(|worker| **worker == other).for_each(|worker| *worker = one);
    }
    workers
}

/// Checks a graph. Returns its stages in topological order.
pub(super) fn check(topology: &Topology) -> Result<Vec<usize>, Error> {
    if topology.has_foreign {
        return Err(Error::ForeignNode);
    }
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
        // An edge without a named input leads to the only one.
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

/// Stages in topological order.
fn order(topology: &Topology) -> Result<Vec<usize>, Error> {
    let mut left: Vec<usize> = (0..topology.stages.len()).collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        let is_free = |stage: usize| !topology.arriving(stage).any(|edge| left.contains(&edge.from));
        let Some(at) = left.iter().position(|&stage| is_free(stage)) else {
            // Stages after a cycle remain too; this reports a stage of the cycle itself.
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
