//! Which stages there are and how they are connected; checked before anything runs.
//!
//! ```text
//!   Graph --check--> order of the stream --assemble--> Assembly --> Running (threads) or Stepper (one step at a time)
//! ```

mod assemble;
mod topology;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use assemble::assemble;
pub(crate) use topology::fused;
use topology::{Edge, StageEntry, Topology, check};

use crate::batch_stream::{AsyncEnd, BatchStream};
use crate::error::Error;
use crate::queue::QueueOptions;
use crate::runtime::{Node, QueueHandle, Running, Stepper};
use crate::stage::{Ports, Stage};

/// Stages and the queues between them, not yet running.
pub struct Graph {
    topology: Topology,
}

impl Default for Graph {
    fn default() -> Self {
        static GRAPHS: AtomicU64 = AtomicU64::new(0);
        Self { topology: Topology { id: GRAPHS.fetch_add(1, Ordering::Relaxed), ..Topology::default() } }
    }
}

impl Graph {
    /// A graph without stages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a stage under a name of its own, which errors and counters use.
    pub fn add(&mut self, name: impl Into<String>, stage: impl Stage + 'static) -> Node {
        self.add_boxed(name, Box::new(stage))
    }

    /// As [`add`](Self::add), for a stage whose type was chosen at run time.
    pub fn add_boxed(&mut self, name: impl Into<String>, stage: Box<dyn Stage>) -> Node {
        let ports = stage.ports();
        self.add_with_ports(name.into(), stage, ports)
    }

    /// As [`add_boxed`](Self::add_boxed), with the ports that the stage's kind names.
    pub(crate) fn add_with_ports(&mut self, name: String, stage: Box<dyn Stage>, ports: Ports) -> Node {
        self.topology.stages.push(StageEntry {
            name,
            stage,
            ports,
            cpu: None,
            is_open: false,
            ends_graph: false,
        });
        Node { graph: self.topology.id, at: self.topology.stages.len() - 1 }
    }

    /// Leads `from`'s first output to `to` through a queue of its own. Several queues from one stage are a fan-out: each gets
    /// every batch.
    pub fn connect(&mut self, from: Node, to: Node, options: QueueOptions) {
        self.add_edge(from, to, Some(options));
    }

    /// As [`connect`](Self::connect), from a named output to a named input; an empty name is the only one there is.
    ///
    /// # Errors
    /// The stage has no such output or input, or is of another graph.
    pub fn connect_ports(
        &mut self,
        from: (Node, &str),
        to: (Node, &str),
        options: QueueOptions,
    ) -> Result<(), Error> {
        let (from_at, to_at) = (self.topology.at(from.0)?, self.topology.at(to.0)?);
        let (source, sink) = (&self.topology.stages[from_at], &self.topology.stages[to_at]);
        let output = if from.1.is_empty() { 0 } else { source.port(source.ports.outputs, from.1)? };
        let input = if to.1.is_empty() { None } else { Some(sink.port(sink.ports.inputs, to.1)?) };
        self.topology.edges.push(Edge { from: from_at, output, to: to_at, input, queue: Some(options) });
        Ok(())
    }

    /// Puts `to` on the thread of `from`, and leads there without a queue: for stages that cost less than a queue would.
    pub fn fuse(&mut self, from: Node, to: Node) {
        self.add_edge(from, to, None);
    }

    /// Leads `from`'s first output out of the graph, to a task: through a queue of its own, which `name` stands for in counters.
    /// No thread is added. A task that stops taking batches holds up `from` under [`Policy::Block`](crate::Policy::Block) alone.
    ///
    /// ```
    /// use grebe_flow::{Graph, QueueOptions};
    /// # use grebe_flow::{Context, Inputs, Outcome, Outputs, Stage, StageResult};
    /// # use grebe_frame::{BatchPool, Header};
    /// # struct Ramp(BatchPool, u64);
    /// # impl Stage for Ramp {
    /// #     fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
    /// #         let Some(mut batch) = ctx.acquire(&mut self.0) else { return Ok(Outcome::Produced) };
    /// #         let header = Header { sequence: self.1, channel_count: 1, block_length_samples: 8, ..Header::default() };
    /// #         batch.push::<i16>(&header, |_, samples| samples.fill(0))?;
    /// #         output.send(batch.freeze(), ctx);
    /// #         self.1 += 1;
    /// #         Ok(if self.1 == 100 { Outcome::End } else { Outcome::Produced })
    /// #     }
    /// # }
    /// # let ramp = Ramp(BatchPool::new(8, 4096), 0);
    ///
    /// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// runtime.block_on(async {
    ///     let mut graph = Graph::new();
    ///     let source = graph.add("source", ramp);
    ///     let mut batches = graph.connect_async(source, "task", QueueOptions::block(4));
    ///     let running = graph.start()?;
    ///     let mut samples = 0;
    ///     while let Some(batch) = batches.next().await {
    ///         samples += batch.samples();
    ///     }
    ///     assert_eq!(samples, 800);
    ///     // The stages have ended, or are about to: this says how.
    ///     tokio::task::spawn_blocking(|| running.wait()).await??;
    ///     Ok::<(), Box<dyn std::error::Error>>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn connect_async(
        &mut self,
        from: Node,
        name: impl Into<String>,
        options: QueueOptions,
    ) -> BatchStream {
        let (queue, batches) = BatchStream::new(options, Arc::default());
        let counts = queue.counts();
        let end = self.add(name, AsyncEnd(Some(queue)));
        self.fuse(from, end);
        if let Some(from) = self.own(from) {
            self.topology.async_queues.push(QueueHandle { from, to: end.at, policy: options.policy, counts });
        }
        batches
    }

    /// Keeps the stage's thread on one processor (Linux; elsewhere it has no effect).
    pub fn pin(&mut self, node: Node, cpu: usize) {
        if let Some(at) = self.own(node) {
            self.topology.stages[at].cpu = Some(cpu);
        }
    }

    /// Lets consumers be attached to the stage while the graph runs ([`Running::attach`]), with queues of up to `batches` in
    /// all at any time. The stage goes on although nobody listens.
    pub fn open(&mut self, node: Node, batches: usize) {
        if let Some(at) = self.own(node) {
            self.topology.stages[at].is_open = true;
            self.topology.reserved_batches += batches;
        }
    }

    /// Stops the graph when this stage has ended, although its source leads elsewhere, too: the others are only beside it.
    pub fn end_with(&mut self, node: Node) {
        if let Some(at) = self.own(node) {
            self.topology.stages[at].ends_graph = true;
        }
    }

    /// Checks the graph and starts its threads.
    ///
    /// # Errors
    /// A name used twice, a cycle, a stage or a named input connected to nothing, an input connected twice, a fused stage with
    /// several inputs, a node of another graph, or a thread the system did not give; nothing runs then.
    pub fn start(self) -> Result<Running, Error> {
        let order = check(&self.topology)?;
        let async_queues = self.topology.async_queues.iter().map(|queue| queue.counts.capacity_batches);
        let queues = self
            .topology
            .edges
            .iter()
            .filter_map(|edge| edge.queue)
            .chain(async_queues.map(QueueOptions::block));
        let sources = (0..order.len()).filter(|&at| !self.topology.edges.iter().any(|edge| edge.to == at));
        check_memory(sources.count(), order.len(), queues)?;
        let worker_of = self.topology.workers();
        Running::start(assemble(self.topology, &order, &worker_of))
    }

    /// Checks the graph and hands it to the caller, to be driven step by step on the caller's thread: the same stages, in a
    /// fixed order, without queues, threads or time.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn stepper(mut self) -> Result<Stepper, Error> {
        let order = check(&self.topology)?;
        self.topology.edges.iter_mut().for_each(|edge| edge.queue = None);
        let one_worker = vec![0; order.len()];
        Ok(Stepper::new(assemble(self.topology, &order, &one_worker)))
    }

    /// Checks the graph without starting it.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn check(&self) -> Result<(), Error> {
        check(&self.topology).map(drop)
    }

    fn add_edge(&mut self, from: Node, to: Node, queue: Option<QueueOptions>) {
        if let (Some(from), Some(to)) = (self.own(from), self.own(to)) {
            self.topology.edges.push(Edge { from, output: 0, to, input: None, queue });
        }
    }

    /// Where the stage is; one of another graph is told of when the graph is checked.
    fn own(&mut self, node: Node) -> Option<usize> {
        let at = self.topology.at(node);
        self.topology.has_foreign |= at.is_err();
        at.ok()
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.topology.stages.iter().map(|stage| stage.name.as_str()).collect();
        let edges = self.topology.edges.len();
        f.debug_struct("Graph").field("stages", &names).field("edges", &edges).finish()
    }
}

/// Refuses queues that hold more than the memory that is left: each source has as many chunks as the whole graph can hold.
pub(crate) fn check_memory(
    sources: usize,
    stages: usize,
    queues: impl Iterator<Item = QueueOptions>,
) -> Result<(), Error> {
    let batches = queues.map(|queue| queue.capacity_batches as u64).sum::<u64>() + 2 * stages as u64;
    let needed_bytes = batches.saturating_mul(CHUNK_BYTES).saturating_mul(sources.max(1) as u64);
    match left_bytes() {
        Some(left_bytes) if needed_bytes > left_bytes => Err(Error::Memory { needed_bytes, left_bytes }),
        _ => Ok(()),
    }
}

/// The memory that is left on this machine, and to the group of processes that this one is in; `None` where nobody tells.
fn left_bytes() -> Option<u64> {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let machine = std::fs::read_to_string("/proc/meminfo").ok()?;
    let machine = machine.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let machine = machine.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10;
    let group = number("/sys/fs/cgroup/memory.max").zip(number("/sys/fs/cgroup/memory.current"));
    let group = group.map(|(most, used)| most.saturating_sub(used));
    Some(machine.min(group.unwrap_or(u64::MAX)))
}

/// Of a source's chunk.
const CHUNK_BYTES: u64 = 64 << 10;
