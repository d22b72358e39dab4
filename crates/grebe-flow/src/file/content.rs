//! What stands in a graph file.

use crate::queue::QueueOptions;

/// A `[[stage]]` of a graph file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileStage {
    /// Its name in the graph: letters, digits, `_` and `-`.
    pub id: String,
    /// What it is.
    pub kind: String,
    /// As they stand in the file.
    pub params: toml::Table,
    /// The processor that its thread is kept on.
    pub cpu: Option<usize>,
}

/// An `[[edge]]` of a graph file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdge {
    /// The stage that it leads from, and which of its outputs.
    pub from: (String, String),
    /// The stage that it leads to, and which of its inputs.
    pub to: (String, String),
    /// The queue from one thread to the other; `None`: both stages share a thread (`fuse = true`).
    pub queue: Option<QueueOptions>,
}
