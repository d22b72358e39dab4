//! Report of a graph: rates, shares and fills over an interval.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::snapshot::{Latency, QueueSnapshot};

/// Activity of a graph over an interval, and its totals since the start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Process of the graph.
    pub pid: u32,
    /// Published name.
    pub name: String,
    /// Facts from its program, under its own keys. `grebe record --ring` sets `stream`, and the folder as
    /// `ring`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub about: BTreeMap<String, String>,
    /// Seconds since publishing.
    pub uptime_s: f64,
    /// Length of the interval in seconds; before the first interval 0, as are all rates and shares.
    pub interval_s: f64,
    /// Stage that limits the others, if any is active.
    pub slowest: Option<Slowest>,
    /// In the order of adding.
    pub stages: Vec<StageReport>,
    /// In the order of connecting.
    pub queues: Vec<QueueReport>,
}

/// Activity of a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// Name.
    pub name: String,
    /// Frames per second through the stage.
    pub frames_per_s: f64,
    /// Samples per second and channel.
    pub samples_per_s: f64,
    /// Share of the interval spent working, 0 to 1.
    pub busy_share: f64,
    /// Share spent waiting inside its steps, 0 to 1: for room, a chunk or its time. In the rest it was not
    /// called.
    pub waiting_share: f64,
    /// Frames since the start.
    pub frames: u64,
    /// Samples per channel since the start.
    pub samples: u64,
    /// Frames read or passed on in place since the start.
    pub borrowed_frames: u64,
    /// Frames copied since the start.
    pub copied_frames: u64,
    /// Latency from the producer's stamp to this stage, over about the last second.
    pub latency: Option<Latency>,
    /// The stage's own counters since the start.
    pub own: BTreeMap<String, u64>,
}

/// Activity of a queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueReport {
    /// Options and totals since the start.
    #[serde(flatten)]
    pub queue: QueueSnapshot,
    /// Fill, 0 to 1: by batches or bytes, whichever is closer to its limit.
    pub fill: f64,
    /// Accepted frames per second.
    pub frames_per_s: f64,
    /// Dropped frames per second.
    pub dropped_frames_per_s: f64,
}

/// Stage that limits the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slowest {
    /// Name.
    pub stage: String,
    /// Share of the interval spent working, 0 to 1.
    pub busy_share: f64,
    /// Fill of its fullest input, 0 to 1.
    pub input_fill: f64,
}

/// Publishing process.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// Process id.
    pub pid: u32,
    /// Published name.
    pub name: String,
    /// Last report; `None` before the first.
    pub report: Option<Report>,
    /// Time since then, or since the process was found.
    pub silent_for: Duration,
}

impl Report {
    /// Stage with this name.
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

/// Fill from which a queue counts as full, because its consumer has always just taken a batch.
pub(super) const FULL: f64 = 0.85;
/// Share from which a stage counts as fully busy.
const BUSY: f64 = 0.85;
