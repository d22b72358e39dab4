//! Stages and their connections, checked before anything runs.
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

/// Stages and the queues between them, before the start.
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
    /// Makes an empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a stage under a unique name for errors and counters.
    pub fn add(&mut self, name: impl Into<String>, stage: impl Stage + 'static) -> Node {
        self.add_boxed(name, Box::new(stage))
    }

    /// Like [`add`](Self::add), for a stage whose type is known only at run time.
    pub fn add_boxed(&mut self, name: impl Into<String>, stage: Box<dyn Stage>) -> Node {
        let ports = stage.ports();
        self.add_with_ports(name.into(), stage, ports)
    }

    /// Like [`add_boxed`](Self::add_boxed), with the ports of the stage's kind.
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

    /// Connects `from`'s first output to `to` by its own queue. Several queues from one stage are a fan-out:
    /// each gets every batch.
    pub fn connect(&mut self, from: Node, to: Node, options: QueueOptions) {
        self.add_edge(from, to, Some(options));
    }

    /// Like [`connect`](Self::connect), from a named output to a named input. An empty name stands for the
    /// only one.
    ///
    /// # Errors
    /// The stage lacks this output or input, or belongs to another graph.
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

    /// Runs `to` on the thread of `from`, connected without a queue. For stages that cost less than a queue.
    pub fn fuse(&mut self, from: Node, to: Node) {
        self.add_edge(from, to, None);
    }

    /// Connects `from`'s first output to a task outside the graph, by its own queue. Counters list the queue
    /// under `name`. This adds no thread. A task that stops taking batches blocks `from` only under
    /// [`Policy::Block`](crate::Policy::Block).
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

    /// Pins the stage's thread to one processor (Linux; no effect elsewhere).
    pub fn pin(&mut self, node: Node, cpu: usize) {
        if let Some(at) = self.own(node) {
            self.topology.stages[at].cpu = Some(cpu);
        }
    }

    /// Allows attaching consumers to the stage while the graph runs ([`Running::attach`]), with queues of up
    /// to `batches` in total at any time. The stage continues without consumers.
    pub fn open(&mut self, node: Node, batches: usize) {
        if let Some(at) = self.own(node) {
            self.topology.stages[at].is_open = true;
            self.topology.reserved_batches += batches;
        }
    }

    /// Stops the graph when this stage has ended, even if its source has other consumers.
    pub fn end_with(&mut self, node: Node) {
        if let Some(at) = self.own(node) {
            self.topology.stages[at].ends_graph = true;
        }
    }

    /// Checks the graph and starts its threads.
    ///
    /// # Errors
    /// A duplicate name, a cycle, an unconnected stage or named input, an input with two connections, a fused
    /// stage with several inputs, a node of another graph, or a thread that the system could not start.
    /// Nothing runs then.
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

    /// Checks the graph for step-by-step execution on the caller's thread: the same stages in a fixed order,
    /// without queues, threads or time.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    pub fn stepper(mut self) -> Result<Stepper, Error> {
        let order = check(&self.topology)?;
        self.topology.edges.iter_mut().for_each(|edge| edge.queue = None);
        let one_worker = vec![0; order.len()];
        Ok(Stepper::new(assemble(self.topology, &order, &one_worker)))
    }

    /// Checks the graph without starting it.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    pub fn check(&self) -> Result<(), Error> {
        check(&self.topology).map(drop)
    }

    fn add_edge(&mut self, from: Node, to: Node, queue: Option<QueueOptions>) {
        if let (Some(from), Some(to)) = (self.own(from), self.own(to)) {
            self.topology.edges.push(Edge { from, output: 0, to, input: None, queue });
        }
    }

    /// Position of the stage. A node of another graph is reported by the check.
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

/// Refuses queues that exceed the available memory. Each source has as many chunks as the whole graph can
/// hold.
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

/// Available memory of this machine and of this process's control group; `None` if unknown.
fn left_bytes() -> Option<u64> {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let machine = std::fs::read_to_string("/proc/meminfo").ok()?;
    let machine = machine.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let machine = machine.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10;
    let group = number("/sys/fs/cgroup/memory.max").zip(number("/sys/fs/cgroup/memory.current"));
    let group = group.map(|(most, used)| most.saturating_sub(used));
    Some(machine.min(group.unwrap_or(u64::MAX)))
}

/// Length of a source's chunk.
const CHUNK_BYTES: u64 = 64 << 10;
