//! Stages, queues with individual policies, graphs, and their runtime.
//!
//! ```text
//!                    +--> [queue: block]       --> sink        one thread per stage, one signal per thread
//!   source --> stage +
//!                    +--> [queue: drop_oldest] --> sink        its own policy, its own pace
//! ```
//!
//! A batch is lent to every queue after a stage; samples never move. Each queue is bounded and has a
//! [`Policy`]. Drops count in frames and samples. A stage's thread sleeps on one
//! [`Signal`](grebe_ring::Signal), which its queues, its pool and the stop of the graph notify.
//!
//! ```
//! use grebe_flow::{Context, Graph, Inputs, Outcome, Outputs, QueueOptions, Stage, StageResult};
//! use grebe_frame::{BatchPool, Header};
//!
//! struct Ramp(BatchPool, u64);
//! impl Stage for Ramp {
//!     fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
//!         let Some(mut batch) = ctx.acquire(&mut self.0) else { return Ok(Outcome::Produced) };
//!         let header = Header { sequence: self.1, channel_count: 1, block_length_samples: 8, ..Header::default() };
//!         batch.push::<i16>(&header, |_, samples| samples.fill(self.1 as i16))?;
//!         output.send(batch.freeze(), ctx);
//!         self.1 += 1;
//!         Ok(if self.1 == 100 { Outcome::End } else { Outcome::Produced })
//!     }
//! }
//!
//! struct Sum(std::sync::mpsc::Sender<i64>, i64);
//! impl Stage for Sum {
//!     fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
//!         let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
//!         for frame in batch.frames() {
//!             self.1 += frame.channel::<i16>(0)?.iter().map(|&sample| i64::from(sample)).sum::<i64>();
//!         }
//!         Ok(Outcome::Produced)
//!     }
//!     fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> StageResult<()> {
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

mod batch_stream;
mod clock;
mod clock_id;
mod counters;
mod error;
mod file;
mod graph;
mod kind;
mod mistake;
mod notes;
mod quantity;
mod queue;
mod runtime;
mod snapshot;
mod stage;
mod stage_bench;
pub mod telemetry;
mod utc;

pub use batch_stream::BatchStream;
pub use clock::monotonic_ns;
pub use clock_id::clock_id;
pub use counters::{Counter, Counters};
pub use error::Error;
pub use file::{Cut, CutEdge, FileEdge, FileHost, FileStage, GraphFile, LINK_IN, LINK_OUT, Part, Restart};
pub use graph::Graph;
pub use grebe_ring::{Cancel, Policy};
pub use kind::{Fault, Kind, KindInfo, KindParam, Kinds, Site, StageName};
pub use mistake::{Mistake, Mistakes, nearest, plain_words};
pub use quantity::{Count, NoQuantity, RateHz, SizeBytes, Time};
pub use queue::{Offer, QueueOptions, QueueReceiver, QueueSender, queue};
pub use runtime::{Attached, Node, Running, Stepper, idle_disk_priority, short_slices};
pub use snapshot::{Latency, LatencyTotals, QueueSnapshot, Snapshot, StageSnapshot};
pub use stage::{
    Context, Described, Inputs, Outcome, Outputs, Ports, Rewriter, Stage, StageError, StageResult, Waker,
    Workspace,
};
pub use stage_bench::StageBench;
pub use utc::UtcClock;

/// The examples of README.md run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
