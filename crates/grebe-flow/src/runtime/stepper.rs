//! A graph driven by hand.

use super::handles::Handles;
use super::worker::{Assembly, Worker};
use crate::error::Error;
use crate::snapshot::Snapshot;

/// Calls each stage of a graph in turn, on the caller's thread: no queue, no thread, and nothing that depends on time.
#[derive(Debug)]
pub struct Stepper {
    worker: Worker,
    handles: Handles,
}

impl Stepper {
    /// `assembly` has all its stages on one thread.
    pub(crate) fn new(assembly: Assembly) -> Self {
        let worker = assembly.workers.into_iter().next().unwrap_or_default();
        Self { worker, handles: assembly.handles }
    }

    /// Calls every stage once, upstream first, and again while it has input; whether any of them did something.
    ///
    /// # Errors
    /// The error of the stage that failed.
    pub fn step(&mut self) -> Result<bool, Error> {
        self.worker.round().map_err(|failed| failed.error)
    }

    /// Steps until every stage has ended or nothing happens any more; whether all have ended.
    ///
    /// # Errors
    /// The error of the stage that failed.
    pub fn run(&mut self) -> Result<bool, Error> {
        while self.step()? {}
        Ok(self.worker.is_ended())
    }

    /// What has been counted.
    pub fn snapshot(&self) -> Snapshot {
        self.handles.snapshot()
    }
}
