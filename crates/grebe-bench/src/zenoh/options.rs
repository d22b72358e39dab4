//! Options of the bench, and the task of each process.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::peer::{Launcher, Task};
use crate::runs::{Runs, size};

/// Options of the bench.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Parts to measure.
    #[arg(long, value_name = "PART", value_delimiter = ',', default_value = "throughput,ping")]
    pub parts: Vec<Part>,
    /// Bytes of a message: of a frame with its header.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "64K,1M", value_parser = size)]
    pub sizes: Vec<usize>,
    /// How long and how often.
    #[command(flatten)]
    pub runs: Runs,
    /// Starts the ends of a run.
    #[arg(skip)]
    pub launcher: Option<Launcher>,
}

/// Part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Part {
    /// One end sends as fast as the other takes it; nothing is dropped.
    Throughput,
    /// A message goes to the other end and comes back, one at a time.
    Ping,
}

/// How messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Technique {
    /// As frames of a stream.
    Ours,
    /// By Zenoh's interface alone.
    Baseline,
}

/// Which end a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum End {
    /// Sends, or begins each round trip and takes its time.
    Near,
    /// Receives and measures, or sends data back.
    Far,
}

/// One end of one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ZenohTask {
    pub(super) part: Part,
    pub(super) technique: Technique,
    pub(super) end: End,
    pub(super) message_bytes: usize,
    pub(super) duration: Duration,
    /// Zenoh's configuration of this end.
    pub(super) config: PathBuf,
}

impl Task for ZenohTask {
    const BENCH: &'static str = "zenoh";
}
