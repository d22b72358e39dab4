//! Graphs as files: TOML that names stages by kind, and the queues between them.

mod check;
mod draft;
mod mistake;
mod processor;
mod whole;
mod write;

use std::path::Path;

pub use mistake::{Mistake, Mistakes};

use crate::kind::Site;
use crate::{Error, Graph, Kinds, Node, Policy, Ports, QueueOptions, Stage};

/// A graph that was read from a file, with every mistake that can be found without opening anything ruled out.
///
/// ```
/// use grebe_flow::{GraphFile, Kinds};
///
/// let text = r#"
/// [[stage]]
/// id = "generator"
/// kind = "sinth"
/// "#;
/// let mistakes = GraphFile::parse(text, "scope.toml", &Kinds::new()).unwrap_err();
/// let first = mistakes.iter().next().unwrap();
/// assert_eq!((first.line(), first.column()), (4, 8));
/// assert_eq!(first.message(), "there is no kind 'sinth'");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GraphFile {
    pub(crate) stages: Vec<FileStage>,
    pub(crate) edges: Vec<FileEdge>,
}

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
    /// What lies in between.
    pub link: Link,
}

/// How an edge of a graph file hands batches on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// A queue from one thread to another.
    Queue {
        /// Batches that fit.
        capacity_batches: usize,
        /// Bytes that they may pin; `None` where only the batches bound the queue.
        capacity_bytes: Option<usize>,
        /// What happens when it is full.
        policy: Policy,
    },
    /// No queue: both stages share a thread.
    Fused,
}

impl GraphFile {
    /// Reads a file and checks it.
    ///
    /// # Errors
    /// [`Error::File`] where it cannot be read, [`Error::Mistakes`] with all that is wrong with it.
    pub fn load(path: &Path, kinds: &Kinds) -> Result<Self, Error> {
        let unreadable = |source| Error::File { path: path.to_owned(), doing: "read", source };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        Ok(Self::parse(&text, &path.display().to_string(), kinds)?)
    }

    /// Checks the text of a file; `origin` is what the messages call it.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(text: &str, origin: &str, kinds: &Kinds) -> Result<Self, Mistakes> {
        let mut mistakes = Mistakes::new(origin, text);
        let draft = draft::read(text, &mut mistakes);
        let file = check::check(draft, kinds, &mut mistakes);
        mistakes.into_result(file)
    }

    /// The graph as a file, which reads as the same graph. Comments are not kept.
    pub fn to_toml(&self) -> String {
        write::to_toml(self)
    }

    /// Writes the graph to a file.
    ///
    /// # Errors
    /// [`Error::File`] where it cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let unwritable = |source| Error::File { path: path.to_owned(), doing: "write", source };
        std::fs::write(path, self.to_toml()).map_err(unwritable)
    }

    /// The stages, as they stand in the file.
    pub fn stages(&self) -> &[FileStage] {
        &self.stages
    }

    /// The edges, as they stand in the file.
    pub fn edges(&self) -> &[FileEdge] {
        &self.edges
    }

    /// The stages that lead nowhere: where the samples end up.
    pub fn ends(&self) -> impl Iterator<Item = &FileStage> {
        self.stages.iter().filter(|stage| !self.edges.iter().any(|edge| edge.from.0 == stage.id))
    }

    /// Makes the stages, in the order of the file, and connects them; and what a person should be told of it.
    ///
    /// # Errors
    /// [`Error::Stage`] for a stage that cannot be made (an address in use, a file that is missing);
    /// [`Error::NoSuchPort`] where another kind of the same name has other ports. Nothing has run then.
    pub fn build(&self, kinds: &Kinds) -> Result<(Graph, Vec<String>), Error> {
        let (mut graph, mut notes) = (Graph::new(), Vec::new());
        let mut nodes: Vec<(&str, Node)> = Vec::new();
        for stage in &self.stages {
            let (made, ports) = stage.build(kinds, &mut notes)?;
            let node = graph.add_with_ports(stage.id.clone(), made, ports);
            if let Some(cpu) = stage.cpu {
                graph.pin(node, cpu);
            }
            nodes.push((&stage.id, node));
        }
        let node_of = |id: &str| nodes.iter().find(|(known, _)| *known == id).map(|&(_, node)| node);
        for edge in &self.edges {
            let (Some(from), Some(to)) = (node_of(&edge.from.0), node_of(&edge.to.0)) else { continue };
            match edge.link {
                Link::Fused => graph.fuse(from, to),
                Link::Queue { capacity_batches, capacity_bytes, policy } => {
                    let options = match policy {
                        Policy::Block => QueueOptions::block(capacity_batches),
                        Policy::DropOldest => QueueOptions::drop_oldest(capacity_batches),
                        Policy::DropLatest => QueueOptions::drop_latest(capacity_batches),
                    };
                    let options = QueueOptions { capacity_bytes, ..options };
                    graph.connect_ports((from, &edge.from.1), (to, &edge.to.1), options)?;
                }
            }
        }
        Ok((graph, notes))
    }
}

impl FileStage {
    fn build(&self, kinds: &Kinds, notes: &mut Vec<String>) -> Result<(Box<dyn Stage>, Ports), Error> {
        let failed = |source| Error::Stage { stage: self.id.clone(), source };
        let kind = kinds.get(&self.kind);
        let kind = kind.ok_or_else(|| failed(format!("there is no kind '{}'", self.kind).into()))?;
        let ready = (kind.from_table)(self.params.clone()).map_err(|error| failed(error.into()))?;
        let mut site = Site::new(&self.id);
        let stage = ready.build(&mut site).map_err(failed)?;
        notes.extend(site.into_notes());
        Ok((stage, kind.ports()))
    }
}

/// What an edge has that says nothing of its queue.
const CAPACITY_BATCHES: usize = 64;

#[cfg(test)]
mod tests;
