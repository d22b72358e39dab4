//! A graph whose stages are on several hosts, cut into one graph for each.
//!
//! ```text
//!   adc --queue--> recorder        mast:  adc --queue, as the edge says--> adc-to-recorder (link_out)
//!   mast           here                                                        |  link 0
//!                                  here:           recorder-from-adc (link_in) -+--small queue--> recorder
//! ```
//!
//! What the edge's policy does happens where the samples are made: what is dropped was never on the way.

use std::collections::HashSet;

use super::{FileEdge, FileStage, GraphFile, Restart};
use crate::queue::QueueOptions;

/// A graph that was cut at the edges between hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// A graph for each host, in the order in which the file names them. The stages have no `host` any more.
    pub parts: Vec<Part>,
    /// The edges that were cut; an edge's position is the number of its link.
    pub links: Vec<CutEdge>,
}

/// What runs on one host.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Where, as the file says it; `None`: here.
    pub host: Option<String>,
    /// What happens when that goes away.
    pub restart: Restart,
    /// The stages there, the edges between them, and a stage of the kind [`LINK_OUT`] or [`LINK_IN`] for each edge that was cut. The
    /// registry of kinds has to have these two.
    pub file: GraphFile,
}

/// An edge between two hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct CutEdge {
    /// Position of the part that fills it.
    pub from: usize,
    /// Position of the part that empties it.
    pub to: usize,
    /// As the file has it.
    pub edge: FileEdge,
    /// As the file has it, of its own queue.
    pub queue: QueueOptions,
    /// Bytes of samples a second, as far as that is known before it runs.
    pub bytes_per_s: Option<f64>,
}

/// The kind that an edge is cut into where it begins: a sink, with the parameters `link` (its number) and `window` (batches under
/// way at most).
pub const LINK_OUT: &str = "link_out";
/// The kind that an edge is cut into where it ends: a source, with the parameter `link`.
pub const LINK_IN: &str = "link_in";

impl Cut {
    /// What runs here, if anything does.
    pub fn here(&self) -> Option<&Part> {
        self.parts.iter().find(|part| part.host.is_none())
    }
}

impl GraphFile {
    /// Whether a stage is for another host.
    pub fn has_hosts(&self) -> bool {
        self.stages.iter().any(|stage| stage.host.is_some())
    }

    /// Cuts it into one graph for each host.
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
            // Neither is missing: the file was checked.
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

/// The name, with a number where a stage of the user's has it.
fn free_name(wanted: &str, names: &mut HashSet<String>) -> String {
    let mut name = wanted.to_owned();
    let mut number = 2;
    while !names.insert(name.clone()) {
        name = format!("{wanted}-{number}");
        number += 1;
    }
    name
}

/// Behind a link: what it takes to keep the stage at work. What waits beyond that waits where the edge's own queue is.
const ARRIVED_BATCHES: usize = 8;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use schemars::JsonSchema;
    use serde::Deserialize;

    use super::*;
    use crate::kind::{Kind, Kinds, Site};
    use crate::stage::{Ports, Stage, StageError};

    /// Makes a kind of this name with these ports, which is never built.
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
        // A stage of the user's has the first name already.
        assert_eq!(ids(&cut.parts[0]), ["adc", "clean", "clean-to-clean-to-disk", "clean-to-meter"]);
        assert_eq!(ids(&cut.parts[1]), ["clean-to-disk", "disk", "clean-to-disk-from-clean"]);
        assert_eq!(ids(&cut.parts[2]), ["meter", "meter-from-clean"]);
        // The edge's policy is the producer's.
        let queues: Vec<_> = cut.parts[0].file.edges().iter().map(|edge| edge.queue).collect();
        assert_eq!(queues, [None, Some(QueueOptions::block(16)), Some(QueueOptions::drop_oldest(8))]);
        assert_eq!(cut.parts[2].file.edges()[0].queue, Some(QueueOptions::block(ARRIVED_BATCHES)));
    }

    #[test]
    fn a_part_reads_as_the_same_graph_where_it_runs() {
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
