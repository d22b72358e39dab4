//! Streams over Zenoh, beside programs that use Zenoh itself as its own `z_pub_thr`, `z_sub_thr`, `z_ping` and `z_pong` do: the same
//! version, configuration and size of a message, in turns.
//!
//! Each end is a process. Ours are graphs with the source and the sink of `zenoh://`, as every command has them.

#[cfg(feature = "zenoh")]
mod baseline;
#[cfg(feature = "zenoh")]
mod ours;
#[cfg(feature = "zenoh")]
mod run;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde::{Deserialize, Serialize};

#[cfg(not(feature = "zenoh"))]
use self::without as imp;
#[cfg(feature = "zenoh")]
use run as imp;

pub(crate) use imp::peer;
pub use imp::run;

use crate::peer::Launcher;
use crate::runs::{Runs, size};

/// What to measure.
#[derive(Debug, Clone, Parser)]
pub struct Options {
    /// What to measure.
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

impl Default for Options {
    fn default() -> Self {
        Self::parse_from([""])
    }
}

/// What a run is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Part {
    /// One end sends as fast as the other takes it; nothing is dropped.
    Throughput,
    /// A message goes to the other end and comes back, one at a time.
    Ping,
}

/// How messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Technique {
    /// As frames of a stream.
    Ours,
    /// By Zenoh's interface alone.
    Baseline,
}

/// Which end a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum End {
    /// Sends, or begins each round trip and takes its time.
    Near,
    /// Receives and measures, or sends back what comes.
    Far,
}

/// One end of one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ZenohTask {
    part: Part,
    technique: Technique,
    end: End,
    message_bytes: usize,
    duration: Duration,
    /// Zenoh's configuration of this end.
    config: PathBuf,
}

/// Where the feature `zenoh` was left out.
#[cfg(not(feature = "zenoh"))]
mod without {
    use super::{Options, ZenohTask};
    use crate::error::Result;
    use crate::row::Tell;

    /// # Errors
    /// Always: this was built without Zenoh.
    pub fn run(_: &Options, _: Tell) -> Result<()> {
        Err(grebe_zenoh::Error::NotBuilt.into())
    }

    pub(crate) fn peer(_: ZenohTask) -> Result<()> {
        Err(grebe_zenoh::Error::NotBuilt.into())
    }
}
