//! Stages, queues with a policy each, graphs, and the runtime that drives them.
//!
//! ```text
//!                    +--> [queue: block]       --> sink        one thread a stage, one signal a thread
//!   source --> stage +
//!                    +--> [queue: drop_oldest] --> sink        its own policy, its own pace
//! ```
//!
//! A batch is lent to every queue behind a stage; samples never move. Each queue is bounded and has a [`Policy`]; what a
//! policy drops is counted in frames and samples. A stage's thread sleeps on one [`Signal`](grebe_ring::Signal) that
//! its queues, its pool and whoever stops the graph notify.
//!
//! ```
//! use grebe_flow::{Context, Graph, Inputs, Outcome, Outputs, QueueOptions, Stage, StageError};
//! use grebe_frame::{BatchPool, Header};
//!
//! struct Ramp(BatchPool, u64);
//! impl Stage for Ramp {
//!     fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> Result<Outcome, StageError> {
//!         let Some(mut batch) = ctx.acquire(&mut self.0) else { return Ok(Outcome::Produced) };
//!         let header = Header { sequence: self.1, channel_count: 1, block_length_samples: 8, ..Header::default() };
//!         batch.push(&header, |_, samples| samples.fill(self.1 as i16))?;
//!         output.send(batch.freeze(), ctx);
//!         self.1 += 1;
//!         Ok(if self.1 == 100 { Outcome::End } else { Outcome::Produced })
//!     }
//! }
//!
//! struct Sum(std::sync::mpsc::Sender<i64>, i64);
//! impl Stage for Sum {
//!     fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> Result<Outcome, StageError> {
//!         let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
//!         for frame in batch.frames() {
//!             self.1 += frame.channel(0).iter().map(|&sample| i64::from(sample)).sum::<i64>();
//!         }
//!         Ok(Outcome::Produced)
//!     }
//!     fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> Result<(), StageError> {
//!         Ok(self.0.send(self.1)?)
//!     }
//! }
//!
//! let (tx, rx) = std::sync::mpsc::channel();
//! let mut graph = Graph::new();
//! let ramp = graph.add("ramp", Ramp(BatchPool::new(8, 4096), 0));
//! let sum = graph.add("sum", Sum(tx, 0));
//! graph.connect(ramp, sum, QueueOptions::block(4));
//! graph.start().unwrap().wait().unwrap();
//! assert_eq!(rx.recv().unwrap(), (0..100).map(|value| value * 8).sum::<i64>());
//! ```
#![deny(unsafe_code)]

mod built;
mod clock;
mod counters;
mod crew;
mod file;
mod graph;
mod kind;
mod latency;
mod port;
mod quantity;
mod queue;
mod runtime;
#[allow(unsafe_code, reason = "two system calls for which there is no library")]
mod slice;
mod stage;
mod stepper;
pub mod telemetry;

pub use clock::monotonic_ns;
pub use counters::{Counters, QueueSnapshot, Snapshot, StageSnapshot};
pub use file::{FileEdge, FileStage, GraphFile, Link, Mistake, Mistakes};
pub use graph::{Graph, Node};
pub use grebe_ring::Policy;
pub use kind::{Fault, Kind, KindInfo, KindParam, Kinds, Site};
pub use latency::Latency;
pub use port::{Context, Inputs, Outputs, Waker};
pub use quantity::{Count, NoQuantity, RateHz, SizeBytes, Time};
pub use queue::{Offer, QueueOptions, QueueReceiver, QueueSender, queue};
pub use runtime::{Attached, Running};
pub use slice::short_slices;
pub use stage::{Outcome, Ports, Stage, StageError};
pub use stepper::{StageBench, Stepper};

/// Why a graph did not start, or how it ended badly.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Two stages have one name.
    #[error("two stages are called '{0}': give each its own name")]
    DuplicateName(String),
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
    NoSuchPort {
        /// The stage's name.
        stage: String,
        /// What was asked for.
        port: String,
        /// What there is.
        known: String,
    },
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
    Stage {
        /// The stage's name.
        stage: String,
        /// What it said.
        source: StageError,
    },
    /// A stage's code panicked.
    #[error("{stage} panicked: {message}")]
    Panic {
        /// The stage's name.
        stage: String,
        /// What it said.
        message: String,
    },
    /// A stage did not come back in time; its thread is left behind.
    #[error("{0} did not stop within {1:?}: its thread is left behind")]
    Overstayed(String, std::time::Duration),
    /// A graph file with mistakes in it.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// A graph file that cannot be had.
    #[error("cannot {doing} {}: {source}", path.display())]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// What a graph counts could not be published, or read from where it is.
    #[error("{what} {}: {source}", path.display())]
    Telemetry {
        /// What was tried.
        what: &'static str,
        /// Where.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system gave no thread.
    #[error("cannot start a thread for {stage}: {source}")]
    Thread {
        /// The stage's name.
        stage: String,
        /// What the system said.
        source: std::io::Error,
    },
}
