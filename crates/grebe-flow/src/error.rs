use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::mistake::Mistakes;
use crate::stage::StageError;

/// Why a graph did not start, or how it ended badly.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what the fields of its variant are")]
pub enum Error {
    /// Two stages have one name.
    #[error("two stages are called '{0}': give each its own name")]
    DuplicateName(String),
    /// A node that another graph gave.
    #[error("a node of another graph: a graph knows only the nodes that its own 'add' gave")]
    ForeignNode,
    /// A stage whose samples would come back to it.
    #[error("stage '{0}' is part of a cycle: a stream flows one way")]
    Cycle(String),
    /// A stage that nothing leads to or from, in a graph of several.
    #[error("stage '{0}' is connected to nothing")]
    Unconnected(String),
    /// An input that is to be connected once.
    #[error("'{0}' is connected twice: an input takes one queue")]
    ConnectedTwice(String),
    /// A name that is none of the stage's inputs or outputs.
    #[error("stage '{stage}' has no port '{port}': it has {known}")]
    NoSuchPort { stage: String, port: String, known: String },
    /// A stage that shares a thread with the one before it, and has other inputs too.
    #[error("stage '{0}' is fused and has several inputs: connect it by queues")]
    FusedFanIn(String),
    /// A stage that takes no consumers while it runs, or a consumer that would hold it up.
    #[error(
        "stage '{0}' takes consumers at run time only where it was opened for them, and with a policy that drops"
    )]
    NotOpen(String),
    /// A stage failed; the message is its own.
    #[error("{stage}: {source}")]
    Stage { stage: String, source: StageError },
    /// A stage's code panicked.
    #[error("{stage} panicked: {message}")]
    Panic { stage: String, message: String },
    /// A stage did not come back in time; its thread is left behind.
    #[error("{0} did not stop within {1:?}: its thread is left behind")]
    Overstayed(String, Duration),
    /// A stage that is for another host, in a graph that is to run here.
    #[error("stage '{stage}' is for the host {host}: `grebe run` starts graphs of several hosts")]
    Elsewhere { stage: String, host: String },
    /// A graph whose queues hold more than the machine has left.
    #[error(
        "the queues of this graph hold up to {} MiB, and {} MiB of memory are left: give them less capacity, or the graph fewer stages",
        needed_bytes >> 20,
        left_bytes >> 20
    )]
    Memory { needed_bytes: u64, left_bytes: u64 },
    /// A graph file with mistakes in it.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// A graph file that cannot be had.
    #[error("cannot {doing} {}: {source}", path.display())]
    File { path: PathBuf, doing: &'static str, source: io::Error },
    /// What a graph counts could not be published, or read from where it is.
    #[error("{what} {}: {source}", path.display())]
    Telemetry { what: &'static str, path: PathBuf, source: io::Error },
    /// The address for figures cannot be listened at.
    #[error("cannot listen for HTTP at {address}: {source}; give another address")]
    Metrics { address: SocketAddr, source: io::Error },
    /// The system gave no thread.
    #[error("cannot start a thread for {stage}: {source}")]
    Thread { stage: String, source: io::Error },
}
