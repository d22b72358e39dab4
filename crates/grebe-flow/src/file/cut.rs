//! Cuts a graph over several hosts into one graph per host.
//!
//! ```text
//!   adc --queue--> recorder        mast:  adc --queue of the edge-----> adc-to-recorder (link_out)
//!   mast           here                                                        |  link 0
//!                                  here:           recorder-from-adc (link_in) -+--small queue--> recorder
//! ```
//!
//! The edge's policy applies at the producer, so dropped samples never use the network.

use std::collections::HashSet;

use super::{FileEdge, FileStage, GraphFile, Restart};
use crate::queue::QueueOptions;

/// Graph that was cut at the edges between hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// One graph per host, in file order. The stages no longer have a `host`.
    pub parts: Vec<Part>,
    /// Cut edges. The position of an edge is the number of its link.
    pub links: Vec<CutEdge>,
}

/// Part of a graph for one host.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Host as in the file; `None`: this one.
    pub host: Option<String>,
    /// Action after the loss of the host.
    pub restart: Restart,
    /// Its stages, the edges between them, and a stage of kind [`LINK_OUT`] or [`LINK_IN`] per cut edge. The
    /// registry must contain these two kinds.
    pub file: GraphFile,
}

/// Edge between two hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct CutEdge {
    /// Position of the producing part.
    pub from: usize,
    /// Position of the consuming part.
    pub to: usize,
    /// The edge in the file.
    pub edge: FileEdge,
    /// Options of its queue in the file.
    pub queue: QueueOptions,
    /// Bytes of samples per second, if known in advance.
    pub bytes_per_s: Option<f64>,
}

/// Kind at the start of a cut edge: a sink with the parameters `link` (its number) and `window` (maximum
/// batches in flight).
pub const LINK_OUT: &str = "link_out";
/// Kind at the end of a cut edge: a source with the parameter `link`.
pub const LINK_IN: &str = "link_in";

impl Cut {
    /// Part for this host, if any.
    pub fn here(&self) -> Option<&Part> {
        self.parts.iter().find(|part| part.host.is_none())
    }
}

impl GraphFile {
    /// Whether any stage is for another host.
    pub fn has_hosts(&self) -> bool {
        self.stages.iter().any(|stage| stage.host.is_some())
    }

    /// Cuts the graph into one graph per host.
    pub fn cut(&self) -> Cut {
        let mut parts: Vec<Part> = Vec::new();
        for stage in &self.stages {
            let at = parts.iter().position(|part| part.host == stage.host).unwrap_or_else(|| {
                let file = GraphFile::default();
                let said = self.hosts.iter().find(|host| Some(&host.name) == stage.host.as_ref());
                let restart = said.map(|host| host.restart).unwrap_or_default();
                parts.push(Part { host: stage.host.clone(), restart, file });
                parts.len() - 1
            });
            let stage = FileStage { host: None, ..stage.clone() };
            parts[at].file.stages.push(stage);
        }
        let mut names: HashSet<String> = self.stages.iter().map(|stage| stage.id.clone()).collect();
        let mut links = Vec::new();
        for (at, edge) in self.edges.iter().enumerate() {
            let part_of =
                |id: &str| parts.iter().position(|part| part.file.stages.iter().any(|it| it.id == id));
            // Both exist, because the file was checked.
            let (Some(from), Some(to)) = (part_of(&edge.from.0), part_of(&edge.to.0)) else { continue };
            let Some(queue) = edge.queue.filter(|_| from != to) else {
                parts[from].file.edges.push(edge.clone());
                continue;
            };
            let number = links.len();
            let out = free_name(&format!("{}-to-{}", edge.from.0, edge.to.0), &mut names);
            let params = [("link", number), ("window", queue.capacity_batches)];
            parts[from].file.stages.push(link(&out, LINK_OUT, &params));
            let into = (out, "in".to_owned());
            parts[from].file.edges.push(FileEdge { from: edge.from.clone(), to: into, queue: Some(queue) });

            let name = free_name(&format!("{}-from-{}", edge.to.0, edge.from.0), &mut names);
            parts[to].file.stages.push(link(&name, LINK_IN, &[("link", number)]));
            let (from_there, small) = ((name, "out".to_owned()), QueueOptions::block(ARRIVED_BATCHES));
            parts[to].file.edges.push(FileEdge { from: from_there, to: edge.to.clone(), queue: Some(small) });
            let bytes_per_s = self.bytes_per_s(at);
            links.push(CutEdge { from, to, edge: edge.clone(), queue, bytes_per_s });
        }
        Cut { parts, links }
    }
}

fn link(id: &str, kind: &str, params: &[(&str, usize)]) -> FileStage {
    let params = params.iter().map(|&(name, value)| (name.to_owned(), toml::Value::Integer(value as i64)));
    FileStage { id: id.to_owned(), kind: kind.to_owned(), params: params.collect(), cpu: None, host: None }
}

/// The name, with a number if a stage of the user has it.
fn free_name(wanted: &str, names: &mut HashSet<String>) -> String {
    let mut name = wanted.to_owned();
    let mut number = 2;
    while !names.insert(name.clone()) {
        name = format!("{wanted}-{number}");
        number += 1;
    }
    name
}

/// Queue after a link: enough to keep the stage busy. Further batches wait in the edge's own queue.
const ARRIVED_BATCHES: usize = 8;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use schemars::JsonSchema;
    use serde::Deserialize;

    use super::*;
    use crate::kind::{Kind, Kinds, Site};
    use crate::stage::{Ports, Stage, StageError};

    /// Makes a kind with this name and these ports for tests; it cannot be built.
    macro_rules! kind {
        ($type:ident, $name:expr, $ports:expr) => {
            /// Of a test.
            #[derive(Deserialize, JsonSchema)]
            #[allow(dead_code, reason = "they are only read")]
            struct $type {
                link: Option<u16>,
                window: Option<usize>,
            }

            impl Kind for $type {
                const NAME: &'static str = $name;
                const PORTS: Ports = $ports;
                fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
                    Err("it is never built".into())
                }
            }
        };
    }

    kind!(From, "from", Ports::SOURCE);
    kind!(Through, "through", Ports::STAGE);
    kind!(To, "to", Ports::SINK);
    kind!(Out, LINK_OUT, Ports::SINK);
    kind!(In, LINK_IN, Ports::SOURCE);

    const GRAPH: &str = r#"
        stage = [
            { id = "adc", kind = "from", host = "pi@mast3" },
            { id = "clean", kind = "through", host = "pi@mast3" },
            { id = "clean-to-disk", kind = "through", host = "big" },
            { id = "disk", kind = "to", host = "big" },
            { id = "meter", kind = "to" },
        ]
        edge = [
            { from = "adc", to = "clean", fuse = true },
            { from = "clean", to = "clean-to-disk", capacity = 16 },
            { from = "clean-to-disk", to = "disk" },
            { from = "clean", to = "meter", capacity = 8, policy = "drop_oldest" },
        ]
        host = [{ name = "big", restart = "always" }]
    "#;

    fn kinds() -> Kinds {
        let mut kinds = Kinds::new();
        kinds.add::<From>().add::<Through>().add::<To>().add::<Out>().add::<In>();
        kinds
    }

    #[test]
    fn each_host_gets_its_stages_and_the_ends_of_the_edges_that_were_cut() {
        let file = GraphFile::parse(GRAPH, Path::new("lab.toml"), &kinds()).unwrap();
        assert!(file.has_hosts());
        let cut = file.cut();
        let hosts: Vec<_> = cut.parts.iter().map(|part| part.host.as_deref()).collect();
        assert_eq!(hosts, [Some("pi@mast3"), Some("big"), None]);
        let restarts: Vec<_> = cut.parts.iter().map(|part| part.restart).collect();
        assert_eq!(restarts, [Restart::No, Restart::Always, Restart::No]);
        assert_eq!(cut.links.iter().map(|link| (link.from, link.to)).collect::<Vec<_>>(), [(0, 1), (0, 2)]);
        let ids = |part: &Part| part.file.stages().iter().map(|stage| stage.id.clone()).collect::<Vec<_>>();
        // A stage of the user already has the first name.
        assert_eq!(ids(&cut.parts[0]), ["adc", "clean", "clean-to-clean-to-disk", "clean-to-meter"]);
        assert_eq!(ids(&cut.parts[1]), ["clean-to-disk", "disk", "clean-to-disk-from-clean"]);
        assert_eq!(ids(&cut.parts[2]), ["meter", "meter-from-clean"]);
        // The producer's part applies the edge's policy.
        let queues: Vec<_> = cut.parts[0].file.edges().iter().map(|edge| edge.queue).collect();
        assert_eq!(queues, [None, Some(QueueOptions::block(16)), Some(QueueOptions::drop_oldest(8))]);
        assert_eq!(cut.parts[2].file.edges()[0].queue, Some(QueueOptions::block(ARRIVED_BATCHES)));
    }

    #[test]
    fn a_part_of_a_graph_file_reads_the_same_on_its_host() {
        let file = GraphFile::parse(GRAPH, Path::new("lab.toml"), &kinds()).unwrap();
        for part in file.cut().parts {
            let read = GraphFile::parse(&part.file.to_toml(), Path::new("part"), &kinds()).unwrap();
            assert_eq!(read, part.file);
            assert!(!read.has_hosts());
        }
    }

    #[test]
    fn a_graph_of_one_host_is_whole() {
        let text = r#"
            stage = [{ id = "a", kind = "from" }, { id = "b", kind = "to" }]
            edge = [{ from = "a", to = "b" }]
        "#;
        let file = GraphFile::parse(text, Path::new("one.toml"), &kinds()).unwrap();
        let cut = file.cut();
        assert_eq!((cut.parts.len(), cut.links.len()), (1, 0));
        assert_eq!(cut.parts[0].file, file);
        assert_eq!(cut.parts[0].restart, Restart::No);
    }
}
