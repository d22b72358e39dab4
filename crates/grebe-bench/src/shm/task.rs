use std::path::PathBuf;
use std::time::Duration;

use grebe_frame::HEADER_BYTES;
use serde::{Deserialize, Serialize};

use crate::cores;
use crate::error::{Error, Result};
use crate::stream::{Stream, Work};

/// What is carried, at which rate, to whom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scenario {
    pub part: Part,
    pub stream: Stream,
    /// What each consumer does, one process each.
    pub consumers: &'static [Work],
}

/// What a scenario is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Shared memory, where it runs freely beside the other techniques.
    Shm,
    /// A pipe by itself, where it runs freely beside a plain one.
    Pipe,
    /// The ways into a program, in front of the same stages: how much later each frame comes.
    Ingress,
}

const fn scenario(
    part: Part,
    label: &'static str,
    channels: u32,
    target_msps: Option<f64>,
    consumers: &'static [Work],
) -> Scenario {
    Scenario { part, stream: Stream { label, channels, block: None, target_msps }, consumers }
}

const SCENARIOS: [Scenario; 8] = [
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
const FAULTS: &str = "faults";

impl Part {
    fn by_name(name: &str) -> Result<Self> {
        match name {
            "shm" => Ok(Part::Shm),
            "pipe" => Ok(Part::Pipe),
            "ingress" => Ok(Part::Ingress),
            _ => Err(Error::unknown("part", name, &["shm", "pipe", "ingress"])),
        }
    }
}

impl Scenario {
    /// The scenarios of these parts; those with these labels, where there are any.
    pub(super) fn choose(parts: &[String], labels: &[String]) -> Result<Vec<Scenario>> {
        let parts: Vec<Part> = parts.iter().map(|name| Part::by_name(name)).collect::<Result<_>>()?;
        let of_parts: Vec<_> =
            SCENARIOS.into_iter().filter(|scenario| parts.contains(&scenario.part)).collect();
        for label in labels {
            if !of_parts.iter().any(|scenario| scenario.stream.label == label) {
                let mut known: Vec<_> = of_parts.iter().map(|scenario| scenario.stream.label).collect();
                known.dedup();
                return Err(Error::unknown("scenario", label, &known));
            }
        }
        let is_named = |scenario: &Scenario| labels.iter().any(|label| label == scenario.stream.label);
        Ok(of_parts.into_iter().filter(|scenario| labels.is_empty() || is_named(scenario)).collect())
    }

    /// The techniques that take turns; the first is compared with the others.
    pub(super) fn techniques(&self, has_baselines: bool) -> Vec<Technique> {
        use Technique::{Embedded, Pipe, PlainPipe, Shm, Udp, UnixStream};
        match (self.part, self.stream.target_msps) {
            (Part::Shm, None) if has_baselines => vec![Shm, UnixStream, Pipe, Udp],
            (Part::Shm, _) => vec![Shm],
            (Part::Pipe, None) => vec![Pipe, PlainPipe],
            (Part::Pipe, Some(_)) => vec![Pipe],
            (Part::Ingress, _) => vec![Embedded, Shm, Pipe, Udp],
        }
    }

    pub(super) fn has_faults(&self) -> bool {
        self.stream.label == FAULTS
    }
}

/// How frames travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Technique {
    /// Lent in shared memory.
    Shm,
    /// Written to a Unix stream socket, several frames per call.
    UnixStream,
    /// Written to a pipe of 1 MiB, several frames per call.
    Pipe,
    /// Written to a pipe of 64 KiB, one frame per call.
    PlainPipe,
    /// UDP over loopback, as `bench udp` measures it.
    Udp,
    /// Not at all: the producer is a stage of the same program.
    Embedded,
    /// By another program.
    Other,
}

impl Technique {
    pub(super) fn name(self) -> &'static str {
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

/// One run, as both sides are told it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ShmTask {
    pub channels: u32,
    pub block: u32,
    pub target_msps: Option<f64>,
    pub duration: Duration,
    pub tick: Duration,
    pub technique: Technique,
    /// Whether each end is a graph of stages, as in use, and not the barest loop.
    pub in_graph: bool,
    /// What this consumer does.
    pub work: Work,
    pub queue_batches: u32,
    /// Bytes that are sent at once, at most.
    pub chunk_bytes: usize,
    /// The core that this consumer is kept on.
    pub core: Option<usize>,
    /// Where sockets are made.
    pub directory: PathBuf,
}

impl ShmTask {
    /// Keeps this thread on the consumer's core, if it has one, and asks for short slices.
    pub(super) fn settle(&self) {
        grebe_flow::short_slices();
        if self.core.is_some() {
            cores::stay_on(self.core);
        }
    }

    pub(super) fn frame_bytes(&self) -> usize {
        HEADER_BYTES + self.channels as usize * self.block as usize * 2
    }

    /// Frames that are sent at once, at most.
    pub(super) fn frames_max(&self) -> u64 {
        (self.chunk_bytes / self.frame_bytes()).max(1) as u64
    }
}

/// The name of the stream in the directory of the run.
pub(super) const STREAM: &str = "bench";

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(parts: &[&str], labels: &[&str]) -> Result<Vec<(Part, &'static str)>> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let chosen = Scenario::choose(&owned(parts), &owned(labels))?;
        Ok(chosen.iter().map(|scenario| (scenario.part, scenario.stream.label)).collect())
    }

    #[test]
    fn scenarios_are_chosen_by_part_and_label() {
        assert_eq!(labels(&["pipe"], &["free_run"]).unwrap(), [(Part::Pipe, "free_run")]);
        assert_eq!(labels(&["shm", "pipe", "ingress"], &[]).unwrap().len(), SCENARIOS.len());
        let error = labels(&["pipe"], &["faults"]).unwrap_err().to_string();
        assert!(error.contains("faults") && error.contains("1ch_1GSPS, free_run"), "{error}");
        assert!(labels(&["smoke"], &[]).is_err());
    }
}
