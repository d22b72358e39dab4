use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::mistake::Mistakes;
use crate::stage::StageError;

/// Error that keeps a graph from starting, or that ends it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what the fields of its variant are")]
pub enum Error {
    /// Two stages with the same name.
    #[error("two stages are called '{0}': give each its own name")]
    DuplicateName(String),
    /// Node of another graph.
    #[error("a node of another graph: a graph knows only the nodes that its own 'add' gave")]
    ForeignNode,
    /// Cycle through this stage.
    #[error("stage '{0}' is part of a cycle: a stream flows one way")]
    Cycle(String),
    /// Stage without a connection, in a graph of several.
    #[error("stage '{0}' is connected to nothing")]
    Unconnected(String),
    /// Input with two connections.
    #[error("'{0}' is connected twice: an input takes one queue")]
    ConnectedTwice(String),
    /// Unknown port of a stage.
    #[error("stage '{stage}' has no port '{port}': it has {known}")]
    NoSuchPort { stage: String, port: String, known: String },
    /// Fused stage with further inputs.
    #[error("stage '{0}' is fused and has several inputs: connect it by queues")]
    FusedFanIn(String),
    /// Stage that is not open for consumers at run time, or a consumer whose policy would block it.
    #[error(
        "stage '{0}' takes consumers at run time only where it was opened for them, and with a policy that drops"
    )]
    NotOpen(String),
    /// Stage error, with its own message.
    #[error("{stage}: {source}")]
    Stage { stage: String, source: StageError },
    /// Panic in a stage.
    #[error("{stage} panicked: {message}")]
    Panic { stage: String, message: String },
    /// Stage that did not return in time; its thread is left behind.
    #[error("{0} did not stop within {1:?}: its thread is left behind")]
    Overstayed(String, Duration),
    /// Stage for another host, in a graph that runs here.
    #[error("stage '{stage}' is for the host {host}: `grebe run` starts graphs of several hosts")]
    Elsewhere { stage: String, host: String },
    /// Graph whose queues hold more than the available memory.
    #[error(
        "the queues of this graph hold up to {} MiB, and {} MiB of memory are left: give them less capacity, or the graph fewer stages",
        needed_bytes >> 20,
        left_bytes >> 20
    )]
    Memory { needed_bytes: u64, left_bytes: u64 },
    /// Invalid graph file.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// Graph file that cannot be read or written.
    #[error("cannot {doing} {}: {source}", path.display())]
    File { path: PathBuf, doing: &'static str, source: io::Error },
    /// Counters could not be published, or read from another process.
    #[error("{what} {}: {source}", path.display())]
    Telemetry { what: &'static str, path: PathBuf, source: io::Error },
    /// Metrics address that cannot be listened at.
    #[error("cannot listen for HTTP at {address}: {source}; give another address")]
    Metrics { address: SocketAddr, source: io::Error },
    /// The system could not start a thread.
    #[error("cannot start a thread for {stage}: {source}")]
    Thread { stage: String, source: io::Error },
}
