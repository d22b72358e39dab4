//! Graphs as files: TOML that names stages by kind, and the queues between them.
//!
//! ```text
//!   text --draft--> fields, positions --check--> stages, edges, graph --> GraphFile --build--> Graph
//!                            each step adds to one list of mistakes; `build` is the first to open anything
//! ```
//!
//! A [`GraphFile`] exists only for text that was checked against kinds. Parameters keep their original form,
//! so a rewritten graph looks as the user wrote it. The number of channels and the sample format are the type
//! of a stream. They propagate from the sources.

mod check;
mod checked_edge;
mod checked_host;
mod checked_stage;
mod cut;
mod draft;
mod write;

use std::collections::HashSet;
use std::path::Path;

use check::Checked;
pub use checked_edge::FileEdge;
pub use checked_host::{FileHost, Restart};
pub use checked_stage::FileStage;
pub use cut::{Cut, CutEdge, LINK_IN, LINK_OUT, Part};
use grebe_ring::Cancel;

use crate::error::Error;
use crate::graph::{Graph, check_memory};
use crate::kind::{KindInfo, Kinds, Shared, Site};
use crate::mistake::Mistakes;
use crate::runtime::Node;
use crate::stage::{Stage, StageError};

/// Graph from a file, without any mistake that can be found before something is opened.
///
/// ```
/// use std::path::Path;
///
/// use grebe_flow::{GraphFile, Kinds};
///
/// let text = r#"
/// [[stage]]
/// id = "generator"
/// kind = "sinth"
/// "#;
/// let mistakes = GraphFile::parse(text, Path::new("scope.toml"), &Kinds::new()).unwrap_err();
/// let first = mistakes.iter().next().unwrap();
/// assert_eq!((first.line(), first.column()), (4, 8));
/// assert_eq!(first.message(), "unknown kind 'sinth'");
/// ```
#[derive(Debug, Clone, Default)]
pub struct GraphFile {
    stages: Vec<FileStage>,
    edges: Vec<FileEdge>,
    hosts: Vec<FileHost>,
    /// Rate of each edge, as far as the file determines it; empty if not computed.
    bytes_per_s: Vec<Option<f64>>,
}

impl GraphFile {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read, [`Error::Mistakes`] with all its mistakes.
    pub fn load(path: &Path, kinds: &Kinds) -> Result<Self, Error> {
        let unreadable = |source| Error::File { path: path.to_owned(), doing: "read", source };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        Ok(Self::parse(&text, path, kinds)?)
    }

    /// Checks the text of a file. `path` only names it in messages. Its type keeps it from being swapped with
    /// the text:
    ///
    /// ```compile_fail,E0308
    /// # use {std::path::Path, grebe_flow::{GraphFile, Kinds}};
    /// let read = GraphFile::parse(Path::new("scope.toml"), "[[stage]]", &Kinds::new());
    /// ```
    ///
    /// # Errors
    /// All mistakes.
    pub fn parse(text: &str, path: &Path, kinds: &Kinds) -> Result<Self, Mistakes> {
        let mut mistakes = Mistakes::new(&path.display().to_string(), text);
        let draft = draft::read(text, &mut mistakes);
        let Checked { stages, edges, hosts, bytes_per_s } = check::check(draft, kinds, &mut mistakes);
        mistakes.into_result(Self { stages, edges, hosts, bytes_per_s })
    }

    /// The graph as a file, which parses to an equal graph. Comments are lost.
    pub fn to_toml(&self) -> String {
        write::to_toml(&self.stages, &self.edges, &self.hosts)
    }

    /// Stages, in file order.
    pub fn stages(&self) -> &[FileStage] {
        &self.stages
    }

    /// Edges, in file order.
    pub fn edges(&self) -> &[FileEdge] {
        &self.edges
    }

    /// Copy with changed parameters, which are checked when the graph is parsed again.
    #[must_use]
    pub fn with_params(&self, mut change: impl FnMut(&str, &mut toml::Table)) -> Self {
        let mut changed = self.clone();
        for stage in &mut changed.stages {
            change(&stage.kind, &mut stage.params);
        }
        changed
    }

    /// Bytes of samples per second on the edge at this position, if rate, channels and format are known in
    /// advance.
    pub fn bytes_per_s(&self, edge: usize) -> Option<f64> {
        self.bytes_per_s.get(edge).copied().flatten()
    }

    /// Hosts, in file order.
    pub fn hosts(&self) -> &[FileHost] {
        &self.hosts
    }

    /// Checks that this machine has enough memory for the graph, without opening anything.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn check_memory(&self) -> Result<(), Error> {
        let targets: HashSet<&str> = self.edges.iter().map(|edge| edge.to.0.as_str()).collect();
        let sources = self.stages.iter().filter(|stage| !targets.contains(stage.id.as_str())).count();
        check_memory(sources, self.stages.len(), self.edges.iter().filter_map(|edge| edge.queue))
    }

    /// Stages without outgoing edges.
    pub fn ends(&self) -> impl Iterator<Item = &FileStage> {
        self.stages.iter().filter(|stage| !self.edges.iter().any(|edge| edge.from.0 == stage.id))
    }

    /// Makes the stages and connects them. Passes notices for the user to `notify` at once, because a stage
    /// may wait for something; `cancel` ends the wait. Makes sources last, so that no stream arrives while
    /// another stage waits. Otherwise keeps the file's order.
    ///
    /// # Errors
    /// [`Error::Stage`] for a stage that cannot be made (an address in use, a missing file), or whose wait
    /// was cancelled. [`Error::NoSuchPort`] if another kind of the same name has other ports.
    /// [`Error::Elsewhere`] for a stage of another host. Nothing has run then.
    pub fn build(
        &self,
        kinds: &Kinds,
        cancel: &Cancel,
        notify: &mut dyn FnMut(String),
    ) -> Result<Graph, Error> {
        self.build_with(kinds, cancel, notify, &mut |_| None)
    }

    /// Like [`build`](Self::build), with some stages made in advance. `made_before` is called for each stage,
    /// and its stage replaces the one of the kind. So the [parts](Cut) of a graph get the ends of their
    /// links.
    ///
    /// # Errors
    /// Those of `build`.
    pub fn build_with(
        &self,
        kinds: &Kinds,
        cancel: &Cancel,
        notify: &mut dyn FnMut(String),
        made_before: &mut dyn FnMut(&FileStage) -> Option<Box<dyn Stage>>,
    ) -> Result<Graph, Error> {
        let elsewhere = |stage: &FileStage| Some((stage.id.clone(), stage.host.clone()?));
        if let Some((stage, host)) = self.stages.iter().find_map(elsewhere) {
            return Err(Error::Elsewhere { stage, host });
        }
        let shared = Shared::default();
        let mut made: Vec<_> = self.stages.iter().map(|_| None).collect();
        for is_source in [false, true] {
            for (stage, made) in self.stages.iter().zip(&mut made) {
                let kind = kind_of(stage, kinds)?;
                if kind.ports().inputs.is_empty() == is_source {
                    let mut site = Site::of_graph(&stage.id, cancel, notify, &shared);
                    let stage = match made_before(stage) {
                        Some(stage) => stage,
                        None => build(stage, kind, &mut site)?,
                    };
                    *made = Some((stage, kind.ports()));
                }
            }
        }
        let mut graph = Graph::new();
        let mut nodes: Vec<(&str, Node)> = Vec::new();
        for (stage, (made, ports)) in self.stages.iter().zip(made.into_iter().flatten()) {
            let node = graph.add_with_ports(stage.id.clone(), made, ports);
            if let Some(cpu) = stage.cpu {
                graph.pin(node, cpu);
            }
            nodes.push((&stage.id, node));
        }
        let node_of = |id: &str| nodes.iter().find(|(known, _)| *known == id).map(|&(_, node)| node);
        for edge in &self.edges {
            let (Some(from), Some(to)) = (node_of(&edge.from.0), node_of(&edge.to.0)) else { continue };
            match edge.queue {
                None => graph.fuse(from, to),
                Some(options) => graph.connect_ports((from, &edge.from.1), (to, &edge.to.1), options)?,
            }
        }
        Ok(graph)
    }
}

/// Compares contents, not positions in the text.
impl PartialEq for GraphFile {
    fn eq(&self, other: &Self) -> bool {
        self.stages == other.stages && self.edges == other.edges && self.hosts == other.hosts
    }
}

fn kind_of<'a>(stage: &FileStage, kinds: &'a Kinds) -> Result<&'a KindInfo, Error> {
    kinds.get(&stage.kind).ok_or_else(|| failed(stage, format!("unknown kind '{}'", stage.kind).into()))
}

/// Makes a stage.
fn build(stage: &FileStage, kind: &KindInfo, site: &mut Site) -> Result<Box<dyn Stage>, Error> {
    let ready = (kind.from_table)(stage.params.clone()).map_err(|error| failed(stage, error.into()))?;
    ready.build(site).map_err(|error| failed(stage, error))
}

fn failed(stage: &FileStage, source: StageError) -> Error {
    Error::Stage { stage: stage.id.clone(), source }
}

#[cfg(test)]
mod tests;
