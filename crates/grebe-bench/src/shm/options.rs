use std::sync::Arc;
use std::time::Duration;

use super::other::Other;
use crate::cores;
use crate::peer::Launcher;
use crate::stream::Turns;

/// What to measure.
#[derive(Clone)]
pub struct Options {
    /// By name: `shm` (shared memory), `pipe`, `ingress` (the ways into a program).
    pub parts: Vec<String>,
    /// Only scenarios with these labels, where there are any.
    pub scenarios: Vec<String>,
    /// Whether a Unix socket, a pipe and UDP are measured beside shared memory where it runs freely.
    pub baselines: bool,
    /// Bytes of header and samples together, at most.
    pub frame_bytes: usize,
    /// Bytes of a chunk of the pool.
    pub chunk_bytes: usize,
    /// Chunks of the pool.
    pub chunks: usize,
    /// Chunks that rest after they were sent.
    pub rest_chunks: usize,
    /// Batches that may wait for a consumer, where the scenario has a rate: more than its share of the chunks never do.
    pub queue_batches: u32,
    /// The same, where it runs freely: then it is always as full as it can be, and should stay in cache.
    pub free_queue_batches: u32,
    /// How long one run produces.
    pub duration: Duration,
    /// How often, and in which state of the machine.
    pub turns: Turns,
    /// A producer with a rate makes what is due this often.
    pub tick: Duration,
    /// Keeps the producer on the first core and the consumers on the others, the last one first (not UDP, nor graphs): else the
    /// system may put two that wake each other on one core.
    pub pin: bool,
    /// Starts consumers.
    pub launcher: Launcher,
    /// Other programs' shared memory to measure in turn with ours.
    pub others: Vec<Arc<dyn Other>>,
}

impl Options {
    /// All scenarios of shared memory.
    pub fn new(launcher: Launcher) -> Self {
        Self {
            parts: vec!["shm".to_owned()],
            scenarios: Vec::new(),
            baselines: true,
            frame_bytes: 65_000,
            chunk_bytes: 256 << 10,
            chunks: 256,
            rest_chunks: 16,
            queue_batches: 256,
            free_queue_batches: 16,
            duration: Duration::from_secs(1),
            turns: Turns::default(),
            tick: Duration::from_micros(125),
            pin: true,
            launcher,
            others: Vec::new(),
        }
    }

    /// The core for the consumer at this place, where they are pinned.
    pub(super) fn core(&self, place: usize) -> Option<usize> {
        let cores = cores::all();
        let others = cores.get(1..).filter(|others| !others.is_empty()).unwrap_or(&cores);
        let core = others.iter().rev().nth(place % others.len().max(1)).copied();
        core.filter(|_| self.pin)
    }
}
