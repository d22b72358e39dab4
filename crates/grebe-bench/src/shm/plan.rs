use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use grebe_frame::HEADER_BYTES;
use serde::{Deserialize, Serialize};

use crate::canary::{Mood, cores};
use crate::{Error, Result};

/// What is carried, at which rate, to whom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scenario {
    /// What it belongs to.
    pub part: Part,
    /// Its name within the part, as `--scenario` takes it.
    pub label: &'static str,
    /// Channels a frame.
    pub channels: u32,
    /// Samples a second and channel, in millions; `None`: as fast as the consumers take it.
    pub target_msps: Option<f64>,
    /// What each consumer does, one process each.
    pub consumers: &'static [Work],
}

/// What a scenario is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Shared memory, where it runs freely beside the other ways.
    Shm,
    /// A pipe by itself, where it runs freely beside a plain one.
    Pipe,
    /// The ways into a program, in front of the same stages: how much later each frame comes.
    Ingress,
}

/// What a consumer does with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Finds minimum and maximum where the frame lies, and compares them with what was made.
    MinMax,
    /// Copies the frame out, and compares every byte of the copy with what was made.
    CopyOut,
}

const fn scenario(
    part: Part,
    label: &'static str,
    channels: u32,
    target_msps: Option<f64>,
    consumers: &'static [Work],
) -> Scenario {
    Scenario { part, label, channels, target_msps, consumers }
}

/// All scenarios.
pub const SCENARIOS: [Scenario; 8] = [
    scenario(Part::Shm, "1ch_1GSPS", 1, Some(1_000.0), &[Work::MinMax]),
    scenario(Part::Shm, "4ch_1GSPS_fanout2", 4, Some(1_000.0), &[Work::MinMax, Work::CopyOut]),
    scenario(Part::Shm, "free_run", 1, None, &[Work::MinMax]),
    // Beside these two, one is stopped and one is killed: five processes, so that what waits has to cover their turns.
    scenario(Part::Shm, FAULTS, 1, Some(250.0), &[Work::MinMax, Work::CopyOut]),
    scenario(Part::Pipe, "1ch_1GSPS", 1, Some(1_000.0), &[Work::MinMax]),
    scenario(Part::Pipe, "free_run", 1, None, &[Work::MinMax]),
    scenario(Part::Ingress, "ingress_10MSPS", 1, Some(10.0), &[Work::MinMax]),
    scenario(Part::Ingress, "ingress_1GSPS", 1, Some(1_000.0), &[Work::MinMax]),
];

/// The label of the scenario in which consumers are stopped and killed.
pub(super) const FAULTS: &str = "faults";

impl Scenario {
    /// The first scenario with this label.
    ///
    /// # Errors
    /// [`Error::UnknownScenario`], which lists them all.
    pub fn by_label(label: &str) -> Result<Scenario> {
        SCENARIOS
            .into_iter()
            .find(|scenario| scenario.label == label)
            .ok_or_else(|| unknown(label, &SCENARIOS))
    }

    /// The scenarios of these parts; those with these labels, where there are any.
    ///
    /// # Errors
    /// [`Error::UnknownScenario`], which lists what the parts have.
    pub fn choose<T: AsRef<str>>(parts: &[Part], labels: &[T]) -> Result<Vec<Scenario>> {
        let of_parts: Vec<Scenario> =
            SCENARIOS.into_iter().filter(|scenario| parts.contains(&scenario.part)).collect();
        let is_named = |scenario: &Scenario| labels.iter().any(|label| label.as_ref() == scenario.label);
        for label in labels {
            if !of_parts.iter().any(|scenario| scenario.label == label.as_ref()) {
                return Err(unknown(label.as_ref(), &of_parts));
            }
        }
        Ok(of_parts.into_iter().filter(|scenario| labels.is_empty() || is_named(scenario)).collect())
    }

    /// The ways that take turns; the first is compared with the others.
    pub(super) fn techniques(&self, baselines: &[Technique]) -> Vec<Technique> {
        match (self.part, self.target_msps) {
            (Part::Shm, None) => [&[Technique::Shm], baselines].concat(),
            (Part::Shm, Some(_)) => vec![Technique::Shm],
            (Part::Pipe, None) => vec![Technique::Pipe, Technique::PlainPipe],
            (Part::Pipe, Some(_)) => vec![Technique::Pipe],
            (Part::Ingress, _) => {
                vec![Technique::Embedded, Technique::Shm, Technique::Pipe, Technique::Udp]
            }
        }
    }

    /// Samples a channel in a frame of at most `frame_bytes`: a multiple of 32, so that frames lie back to back.
    ///
    /// # Errors
    /// [`Error::DatagramTooSmall`].
    pub fn block_for(&self, frame_bytes: usize) -> Result<u32> {
        let room = frame_bytes.saturating_sub(HEADER_BYTES) / (2 * self.channels as usize) / 32 * 32;
        if room == 0 {
            let needed = HEADER_BYTES + 64 * self.channels as usize;
            return Err(Error::DatagramTooSmall {
                datagram_bytes: frame_bytes,
                channels: self.channels,
                needed,
            });
        }
        Ok(room as u32)
    }
}

fn unknown(label: &str, known: &[Scenario]) -> Error {
    let mut labels: Vec<_> = known.iter().map(|scenario| scenario.label).collect();
    labels.dedup();
    Error::UnknownScenario { label: label.to_owned(), known: labels.join(", ") }
}

/// By which way frames travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Technique {
    /// Lent in shared memory.
    Shm,
    /// Written to a Unix stream socket, several frames a call.
    UnixStream,
    /// Written to a pipe of 1 MiB, several frames a call.
    Pipe,
    /// Written to a pipe of 64 KiB, one frame a call.
    PlainPipe,
    /// UDP over loopback, as `bench --udp` measures it.
    Udp,
    /// Not at all: the producer is a stage of the same program.
    Embedded,
    /// Another program's way.
    Other,
}

impl Technique {
    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Technique::Shm => "shm",
            Technique::UnixStream => "unix_stream",
            Technique::Pipe => "pipe",
            Technique::PlainPipe => "plain_pipe",
            Technique::Udp => "udp",
            Technique::Embedded => "embedded",
            Technique::Other => "other",
        }
    }
}

/// A command that calls [`peer_main`](super::peer_main) and does nothing else.
pub type Spawn = Arc<dyn Fn() -> Command + Send + Sync>;

/// What to measure.
#[derive(Clone)]
pub struct Plan {
    /// What to carry.
    pub scenarios: Vec<Scenario>,
    /// Ways to measure beside shared memory where it runs freely.
    pub baselines: Vec<Technique>,
    /// Bytes of header and samples together.
    pub frame_bytes: usize,
    /// Bytes a chunk of the pool.
    pub chunk_bytes: usize,
    /// Chunks of the pool.
    pub chunks: usize,
    /// Batches that rest after they were sent.
    pub rest_chunks: usize,
    /// Batches that may wait for a consumer, where the scenario has a rate: more than its share of the chunks never do.
    pub queue_batches: u32,
    /// The same, where it runs freely: then it is always as full as it can be, and should stay in cache.
    pub free_queue_batches: u32,
    /// How long one run produces.
    pub duration: Duration,
    /// Runs of each kind, in turns; medians are reported.
    pub repeats: usize,
    /// A producer with a rate makes what is due this often.
    pub tick: Duration,
    /// Keeps the producer on the first core and the consumers on the others, the last one first (not UDP, nor graphs): else the
    /// system may put two that wake each other on one core.
    pub pin: bool,
    /// Takes only rounds that were in this mood throughout, as long as `patience` lasts.
    pub mood: Option<Mood>,
    /// For how long to wait for that, and to repeat rounds, for each scenario.
    pub patience: Duration,
    /// A consumer's process.
    pub spawn: Spawn,
    /// The receiver's process of `bench --udp`, where UDP is a baseline.
    pub spawn_udp: Option<Spawn>,
}

impl Plan {
    /// All scenarios of shared memory, each consumer in a process of its own.
    pub fn new(spawn: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        Self {
            scenarios: SCENARIOS.into_iter().filter(|scenario| scenario.part == Part::Shm).collect(),
            baselines: vec![Technique::UnixStream, Technique::Pipe],
            frame_bytes: 65_000,
            chunk_bytes: 256 << 10,
            chunks: 256,
            rest_chunks: 16,
            queue_batches: 256,
            free_queue_batches: 16,
            duration: Duration::from_secs(1),
            repeats: 3,
            tick: Duration::from_micros(125),
            pin: true,
            mood: None,
            patience: Duration::from_secs(20),
            spawn: Arc::new(spawn),
            spawn_udp: None,
        }
    }
}

impl Plan {
    /// The core for the consumer at this place, where they are pinned.
    pub fn core(&self, place: usize) -> Option<usize> {
        let cores = cores::all();
        let others = cores.get(1..).filter(|others| !others.is_empty()).unwrap_or(&cores);
        let core = others.iter().rev().nth(place % others.len().max(1)).copied();
        core.filter(|_| self.pin)
    }
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan").field("scenarios", &self.scenarios).finish_non_exhaustive()
    }
}

/// One run, as both sides are told it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// Channels a frame.
    pub channels: u32,
    /// Samples a channel and frame.
    pub block: u32,
    /// Millions of samples a second and channel; `None`: as fast as it goes.
    pub target_msps: Option<f64>,
    /// How long is produced.
    pub duration: Duration,
    /// How often what is due is made.
    pub tick: Duration,
    /// By which way.
    pub technique: Technique,
    /// Whether each end is a graph of stages, as in use, and not the barest loop.
    pub in_graph: bool,
    /// What this consumer does.
    pub work: Work,
    /// Batches that may wait for a consumer.
    pub queue_batches: u32,
    /// Bytes a chunk.
    pub chunk_bytes: usize,
    /// The core that this consumer is kept on.
    pub core: Option<usize>,
    /// Where sockets are made.
    pub directory: PathBuf,
}

impl Job {
    /// Keeps this thread on the consumer's core, if it has one, and asks for short slices.
    pub fn settle(&self) {
        grebe_flow::short_slices();
        if self.core.is_some() {
            cores::stay_on(self.core);
        }
    }

    /// Bytes of a frame.
    pub fn frame_bytes(&self) -> usize {
        HEADER_BYTES + self.channels as usize * self.block as usize * 2
    }
}
