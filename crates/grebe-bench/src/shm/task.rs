//! One run, as both sides are told it.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::options::{OtherStream, Technique};
use crate::peer::Task;
use crate::stream::{Plan, Work};

/// One run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ShmTask {
    pub(super) plan: Plan,
    pub(super) technique: Technique,
    /// Whether each end is a graph of stages, as in use, and not the barest loop.
    pub(super) in_graph: bool,
    /// What this consumer does.
    pub(super) work: Work,
    pub(super) queue_batches: u32,
    pub(super) chunk_bytes: usize,
    /// The core that this consumer is kept on.
    pub(super) core: Option<usize>,
    /// Where sockets are made.
    pub(super) directory: PathBuf,
}

impl Task for ShmTask {
    const BENCH: &'static str = "shm";
}

impl ShmTask {
    /// The stream as another program is told it.
    pub(super) fn for_other(&self) -> OtherStream {
        OtherStream {
            name: self.directory.to_string_lossy().into_owned(),
            chunk_bytes: self.chunk_bytes,
            queue_chunks: self.queue_batches as usize,
            has_rate: self.plan.target_msps.is_some(),
        }
    }
}

/// The name of the stream in the directory of the run.
pub(super) const STREAM: &str = "bench";

/// How long one side waits for the other to come.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
