use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use grebe_frame::HEADER_BYTES;
use serde::{Deserialize, Serialize};

use crate::canary::Mood;
use crate::{Error, Result};

/// What is carried, at which rate, to whom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scenario {
    /// Its name, as `--scenario` takes it.
    pub label: &'static str,
    /// Channels a frame.
    pub channels: u32,
    /// Samples a second and channel, in millions; `None`: as fast as the consumers take it.
    pub target_msps: Option<f64>,
    /// What each consumer does, one process each.
    pub consumers: &'static [Work],
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

/// All scenarios.
pub const SCENARIOS: [Scenario; 3] = [
    Scenario { label: "1ch_1GSPS", channels: 1, target_msps: Some(1_000.0), consumers: &[Work::MinMax] },
    Scenario {
        label: "4ch_1GSPS_fanout2",
        channels: 4,
        target_msps: Some(1_000.0),
        consumers: &[Work::MinMax, Work::CopyOut],
    },
    Scenario { label: "free_run", channels: 1, target_msps: None, consumers: &[Work::MinMax] },
];

impl Scenario {
    /// The scenario with this label.
    ///
    /// # Errors
    /// [`Error::UnknownScenario`], which lists them all.
    pub fn by_label(label: &str) -> Result<Scenario> {
        SCENARIOS.into_iter().find(|scenario| scenario.label == label).ok_or_else(|| Error::UnknownScenario {
            label: label.to_owned(),
            known: SCENARIOS.map(|scenario| scenario.label).join(", "),
        })
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
    /// UDP over loopback, as `bench --udp` measures it.
    Udp,
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
            Technique::Udp => "udp",
            Technique::Other => "other",
        }
    }
}

/// A command that calls [`peer_main`](super::peer_main) and does nothing else.
pub type Spawn = Arc<dyn Fn() -> Command + Send + Sync>;

/// What to measure.
#[derive(Clone)]
pub struct Plan {
    /// One row of shared memory for each.
    pub scenarios: Vec<Scenario>,
    /// Ways to measure beside it where a scenario runs freely.
    pub baselines: Vec<Technique>,
    /// Bytes of header and samples together.
    pub frame_bytes: usize,
    /// Bytes a chunk of the pool.
    pub chunk_bytes: usize,
    /// Chunks of the pool.
    pub chunks: usize,
    /// Batches that rest after they were sent.
    pub rest_chunks: usize,
    /// Batches that may wait for a consumer, where the scenario has a rate.
    pub queue_batches: u32,
    /// The same, where it runs freely: then it is always as full as it can be, and should stay in cache.
    pub free_queue_batches: u32,
    /// How long one run produces.
    pub duration: Duration,
    /// Runs of each kind, in turns; medians are reported.
    pub repeats: usize,
    /// A producer with a rate makes what is due this often.
    pub tick: Duration,
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
    /// All scenarios, each consumer in a process of its own.
    pub fn new(spawn: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        Self {
            scenarios: SCENARIOS.to_vec(),
            baselines: vec![Technique::UnixStream, Technique::Pipe],
            frame_bytes: 65_000,
            chunk_bytes: 256 << 10,
            chunks: 256,
            rest_chunks: 16,
            queue_batches: 64,
            free_queue_batches: 16,
            duration: Duration::from_secs(1),
            repeats: 3,
            tick: Duration::from_micros(125),
            mood: None,
            patience: Duration::from_secs(20),
            spawn: Arc::new(spawn),
            spawn_udp: None,
        }
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
    /// What this consumer does.
    pub work: Work,
    /// Batches that may wait for a consumer.
    pub queue_batches: u32,
    /// Where sockets are made.
    pub directory: PathBuf,
}

impl Job {
    /// Bytes of a frame.
    pub fn frame_bytes(&self) -> usize {
        HEADER_BYTES + self.channels as usize * self.block as usize * 2
    }
}
