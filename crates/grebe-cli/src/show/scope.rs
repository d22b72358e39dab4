//! The graph of a scope: a source and what keeps its picture.

use grebe_flow::{Graph, QueueOptions, Stage};
use grebe_view::{ScopeLink, ScopeStage};

use super::failure::Failure;

/// A source that leads to a scope.
pub(crate) struct Scope {
    pub(crate) graph: Graph,
    pub(crate) link: ScopeLink,
    /// Why the source failed, once it has.
    pub(crate) failure: Failure,
}

impl Scope {
    /// One of so many scopes, which share the memory for their history. `queue` says what happens where it is too slow.
    pub(crate) fn new(source: Box<dyn Stage>, queue: fn(usize) -> QueueOptions, scopes: usize) -> Self {
        let failure = Failure::default();
        let (scope, link) = ScopeStage::new(HISTORY_BYTES / scopes);
        let mut graph = Graph::new();
        let source = graph.add("source", failure.watch(source));
        let scope = graph.add("scope", scope);
        graph.connect(source, scope, queue(QUEUE_BATCHES));
        Self { graph, link, failure }
    }
}

/// The history that all scopes of a command keep together.
const HISTORY_BYTES: usize = 512 << 20;
/// 16 MiB of frames: what a scope may be late by before it loses any.
const QUEUE_BATCHES: usize = 256;
