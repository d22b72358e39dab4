//! The stages of a graph, and the edges between them, by position.

use crate::error::Error;
use crate::queue::QueueOptions;
use crate::stage::{Ports, Stage};

/// The stages of a graph, and the edges between them.
#[derive(Default)]
pub(super) struct Topology {
    pub(super) stages: Vec<StageEntry>,
    pub(super) edges: Vec<Edge>,
    /// Batches that the queues of consumers may hold that come later.
    pub(super) reserved_batches: usize,
}

/// A stage that was added.
pub(super) struct StageEntry {
    pub(super) name: String,
    pub(super) stage: Box<dyn Stage>,
    pub(super) ports: Ports,
    /// The processor that its thread is to be kept on.
    pub(super) cpu: Option<usize>,
    /// Whether consumers may be attached while it runs.
    pub(super) is_open: bool,
}

/// Stages and ports are positions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) output: usize,
    pub(super) to: usize,
    /// Among the names of the stage's inputs; `None` where they have none.
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
    /// The edges that lead to a stage.
    pub(super) fn arriving(&self, stage: usize) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |edge| edge.to == stage)
    }

    /// Which worker each stage belongs to: fused stages share one.
    pub(super) fn fused(&self) -> Vec<usize> {
        let mut workers: Vec<usize> = (0..self.stages.len()).collect();
        for edge in self.edges.iter().filter(|edge| edge.queue.is_none()) {
            let (one, other) = (workers[edge.from], workers[edge.to]);
            workers.iter_mut().filter(|worker| **worker == other).for_each(|worker| *worker = one);
        }
        workers
    }
}
