//! A report of a graph: rates, shares and fills over an interval.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::snapshot::{Latency, QueueSnapshot};

/// What a graph did over an interval, and all it counted since it started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The process that the graph runs in.
    pub pid: u32,
    /// What it was published as.
    pub name: String,
    /// What its program says of it, by keys of its own: of `grebe record --ring` the `stream` and the folder of the `ring`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub about: BTreeMap<String, String>,
    /// Seconds since it was published.
    pub uptime_s: f64,
    /// Seconds that the rates and shares are of; 0 before there was an interval, and they are 0 then.
    pub interval_s: f64,
    /// Which stage holds the others up, if any does work.
    pub slowest: Option<Slowest>,
    /// In the order they were added.
    pub stages: Vec<StageReport>,
    /// In the order they were connected.
    pub queues: Vec<QueueReport>,
}

/// What a stage did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// Its name.
    pub name: String,
    /// Frames per second that went through it.
    pub frames_per_s: f64,
    /// Samples per second and channel.
    pub samples_per_s: f64,
    /// The share of the interval that it worked, 0 to 1.
    pub busy_share: f64,
    /// The share that it waited inside its steps, 0 to 1: for room, for a chunk, for its time. What is left, it was not called.
    pub waiting_share: f64,
    /// Frames since the start.
    pub frames: u64,
    /// Samples per channel since the start.
    pub samples: u64,
    /// Frames that it read or handed on where they lie, since the start.
    pub borrowed_frames: u64,
    /// Frames whose samples it copied, since the start.
    pub copied_frames: u64,
    /// From the producer's stamp to this stage, over about the last second.
    pub latency: Option<Latency>,
    /// The stage's own counters, since the start.
    pub own: BTreeMap<String, u64>,
}

/// What a queue did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueReport {
    /// What it is, and what it has carried since the start.
    #[serde(flatten)]
    pub queue: QueueSnapshot,
    /// How full it is, 0 to 1: by batches or by bytes, whichever is nearer to its bound.
    pub fill: f64,
    /// Frames per second taken in.
    pub frames_per_s: f64,
    /// Frames per second dropped.
    pub dropped_frames_per_s: f64,
}

/// The stage that limits the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slowest {
    /// Its name.
    pub stage: String,
    /// The share of the interval that it worked, 0 to 1.
    pub busy_share: f64,
    /// How full its fullest input is, 0 to 1.
    pub input_fill: f64,
}

/// A process that publishes.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// The process.
    pub pid: u32,
    /// What it publishes its graph as.
    pub name: String,
    /// Its last report; `None` until one has come.
    pub report: Option<Report>,
    /// How long ago that was, or since it was found.
    pub silent_for: Duration,
}

impl Report {
    /// The stage of this name.
    pub fn stage(&self, name: &str) -> Option<&StageReport> {
        self.stages.iter().find(|stage| stage.name == name)
    }
}

impl fmt::Display for Slowest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| (share * 100.0).round();
        write!(f, "{}, busy {} %", self.stage, percent(self.busy_share))?;
        if self.input_fill >= FULL {
            write!(
                f,
                ": its input is {} % full and the stages before it wait or drop",
                percent(self.input_fill)
            )
        } else if self.busy_share >= BUSY {
            f.write_str(": it sets the pace")
        } else {
            f.write_str(": nothing waits for it")
        }
    }
}

/// A queue this full counts as full: its consumer has always just taken one.
pub(super) const FULL: f64 = 0.85;
/// From here on a stage counts as busy all the time.
const BUSY: f64 = 0.85;
