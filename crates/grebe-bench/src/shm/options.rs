//! Options of the bench, and the task of one run for both sides.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use grebe_frame::SampleFormat;
use serde::{Deserialize, Serialize};

use crate::error::{Result, choose};
use crate::machine::Machine;
use crate::peer::{Launcher, Task};
use crate::runs::{Runs, size, time};
use crate::stream::{FrameSender, Plan, Stream, Work};

/// Measurement.
#[derive(Debug, Clone, Parser)]
pub struct Options {
    /// Parts to measure.
    #[arg(long, value_name = "PART", value_delimiter = ',', default_value = "shm")]
    pub parts: Vec<Part>,
    /// Scenarios by label [default: all of the parts].
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    pub scenario: Vec<String>,
    /// Maximum bytes per frame.
    #[arg(long, value_name = "BYTES", default_value = "65000", value_parser = size)]
    pub frame_size: usize,
    /// Bytes per chunk of the shared memory.
    #[arg(long, value_name = "BYTES", default_value = "256K", value_parser = size)]
    pub chunk_size: usize,
    /// Chunks of the shared memory.
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub chunks: usize,
    /// Chunks that rest after sending [default: by the size of a core's cache].
    #[arg(long, value_name = "N")]
    pub rest: Option<usize>,
    /// Batches in the queue of a consumer, at a given rate.
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub queue: u32,
    /// Batches in the queue of a consumer, free-running.
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub free_queue: u32,
    /// Interval at which a producer with a rate generates samples.
    #[arg(long, value_name = "TIME", default_value = "125us", value_parser = time)]
    pub tick: Duration,
    /// Do not pin processes to cores.
    #[arg(long)]
    pub no_pin: bool,
    /// Omit the baselines of free_run.
    #[arg(long)]
    pub no_baseline: bool,
    /// Duration and repeats.
    #[command(flatten)]
    pub runs: Runs,
    /// State of the machine.
    #[command(flatten)]
    pub machine: Machine,
    /// Starts consumers. Needed unless the producer is a stage of the same program.
    #[arg(skip)]
    pub launcher: Option<Launcher>,
    /// Other programs' shared memory to measure in turn with ours.
    #[arg(skip)]
    pub others: Vec<Arc<dyn Other>>,
}

impl Default for Options {
    fn default() -> Self {
        Self::parse_from([""])
    }
}

/// Part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Shared memory without a rate, beside the other techniques.
    Shm,
    /// A pipe alone without a rate, beside a simple one.
    Pipe,
    /// Routes into a program, before the same stages: added latency per frame.
    Ingress,
}

/// Another program's shared memory, measured in turns with ours: the same frames, chunks, checks and queue lengths.
pub trait Other: std::fmt::Debug + Send + Sync {
    /// Its name in results.
    fn name(&self) -> &'static str;

    /// Offers the stream, in the producer's process and before a consumer starts.
    ///
    /// # Errors
    /// The program's error.
    fn producer(&self, stream: &OtherStream) -> Result<Box<dyn FrameSender>>;

    /// Reads the stream, in a consumer's process. Gives each chunk to `take`, which returns whether the stream has
    /// ended.
    ///
    /// # Errors
    /// The program's error.
    fn consume(&self, stream: &OtherStream, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<()>;
}

/// A stream for another program.
#[derive(Debug, Clone)]
pub struct OtherStream {
    /// A unique name.
    pub name: String,
    /// Maximum bytes of a chunk.
    pub chunk_bytes: usize,
    /// Queue length of a consumer in chunks.
    pub queue_chunks: usize,
    /// Whether the stream has a rate. Then the oldest chunk is dropped, otherwise the producer waits.
    pub has_rate: bool,
}

/// A stream: its content, rate and consumers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scenario {
    pub(super) part: Part,
    pub(super) stream: Stream,
    /// The work of each consumer, one process each.
    pub(super) consumers: &'static [Work],
}

const fn scenario(
    part: Part,
    label: &'static str,
    channels: u32,
    target_msps: Option<f64>,
    consumers: &'static [Work],
) -> Scenario {
    Scenario {
        part,
        stream: Stream { label, format: SampleFormat::I16, channels, block: None, target_msps },
        consumers,
    }
}

const SCENARIOS: [Scenario; 10] = [
    scenario(Part::Shm, "1ch_1GSPS", 1, Some(1_000.0), &[Work::MinMax]),
    scenario(Part::Shm, "4ch_1GSPS_fanout2", 4, Some(1_000.0), &[Work::MinMax, Work::CopyOut]),
    scenario(Part::Shm, "free_run", 1, None, &[Work::MinMax]),
    // A pair: the same work on the same bytes.
    scenario(Part::Shm, "free_run_compare", 1, None, &[Work::Compare]),
    scenario(Part::Shm, "free_run_cf32", 1, None, &[Work::Compare]).of(SampleFormat::Cf32),
    // Two more consumers, one stopped and one killed. With five processes the queue must cover their turns.
    scenario(Part::Shm, FAULTS, 1, Some(250.0), &[Work::MinMax, Work::CopyOut]),
    scenario(Part::Pipe, "1ch_1GSPS", 1, Some(1_000.0), &[Work::MinMax]),
    scenario(Part::Pipe, "free_run", 1, None, &[Work::MinMax]),
    scenario(Part::Ingress, "ingress_10MSPS", 1, Some(10.0), &[Work::MinMax]),
    scenario(Part::Ingress, "ingress_1GSPS", 1, Some(1_000.0), &[Work::MinMax]),
];

/// The label of the scenario in which consumers are stopped and killed.
pub(super) const FAULTS: &str = "faults";

impl Scenario {
    const fn of(mut self, format: SampleFormat) -> Self {
        self.stream.format = format;
        self
    }

    /// The scenarios of these parts, limited to these labels if any.
    pub(super) fn choose(parts: &[Part], labels: &[String]) -> Result<Vec<Scenario>> {
        let of_parts: Vec<_> =
            SCENARIOS.into_iter().filter(|scenario| parts.contains(&scenario.part)).collect();
        choose(&of_parts, |scenario| scenario.stream.label, "scenario", labels)
    }

    /// Techniques in turns. The first is compared with the others.
    pub(super) fn techniques(&self, has_baselines: bool) -> &'static [Technique] {
        use Technique::{Embedded, Pipe, PlainPipe, Shm, Udp, UnixStream};
        match (self.part, self.stream.target_msps) {
            (Part::Shm, None) if has_baselines && self.stream.label == "free_run" => {
                &[Shm, UnixStream, Pipe, Udp]
            }
            (Part::Shm, _) => &[Shm],
            (Part::Pipe, None) => &[Pipe, PlainPipe],
            (Part::Pipe, Some(_)) => &[Pipe],
            (Part::Ingress, _) => &[Embedded, Shm, Pipe, Udp],
        }
    }

    pub(super) fn has_faults(&self) -> bool {
        self.stream.label == FAULTS
    }
}

/// Transport of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Technique {
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
    /// None: the producer is a stage of the same program.
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

/// One run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ShmTask {
    pub(super) plan: Plan,
    pub(super) technique: Technique,
    /// Whether each end is a graph of stages, as in use, instead of a minimal loop.
    pub(super) in_graph: bool,
    /// The work of this consumer.
    pub(super) work: Work,
    pub(super) queue_batches: u32,
    pub(super) chunk_bytes: usize,
    /// Core of this consumer.
    pub(super) core: Option<usize>,
    /// Folder of sockets.
    pub(super) directory: PathBuf,
}

impl Task for ShmTask {
    const BENCH: &'static str = "shm";
}

impl ShmTask {
    /// The stream for another program.
    pub(super) fn for_other(&self) -> OtherStream {
        OtherStream {
            name: self.directory.to_string_lossy().into_owned(),
            chunk_bytes: self.chunk_bytes,
            queue_chunks: self.queue_batches as usize,
            has_rate: self.plan.target_msps.is_some(),
        }
    }
}

/// Name of the stream in the folder of the run.
pub(super) const STREAM: &str = "bench";

/// Timeout for the other side.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(parts: &[Part], labels: &[&str]) -> Result<Vec<(Part, &'static str)>> {
        let labels: Vec<_> = labels.iter().map(|&name| name.to_owned()).collect();
        let chosen = Scenario::choose(parts, &labels)?;
        Ok(chosen.iter().map(|scenario| (scenario.part, scenario.stream.label)).collect())
    }

    #[test]
    fn scenarios_are_chosen_by_part_and_label() {
        assert_eq!(labels(&[Part::Pipe], &["free_run"]).unwrap(), [(Part::Pipe, "free_run")]);
        assert_eq!(labels(Part::value_variants(), &[]).unwrap().len(), SCENARIOS.len());
        let error = labels(&[Part::Pipe], &["faults"]).unwrap_err().to_string();
        assert!(error.contains("faults") && error.contains("1ch_1GSPS, free_run"), "{error}");
        assert!(Options::try_parse_from(["", "--parts", "smoke"]).is_err());
    }
}
