//! The thread of a worker.

use std::sync::Arc;
use std::thread;

use super::ended::Ended;
use super::slice::short_slices;
use super::worker::Worker;
use crate::error::Error;

/// Drives a worker on a thread of its own, and tells `ended` when its stages are done.
pub(super) fn spawn(mut worker: Worker, ended: Arc<Ended>) -> Result<(), Error> {
    let name = worker.slots.first().map(|slot| slot.name.clone()).unwrap_or_default();
    let thread = thread::Builder::new().name(name.clone()).spawn(move || {
        if let Some(cpu) = worker.cpu {
            pin(cpu);
        }
        // Where it is not granted, threads wait longer for each other.
        short_slices();
        let nodes = worker.nodes();
        let result = worker.drive();
        // The stages, their queues and their chunks go before the end is told: whoever waits finds everything free.
        drop(worker);
        ended.tell(&nodes, result);
    });
    thread.map(drop).map_err(|source| Error::Thread { stage: name, source })
}

/// A processor that is not there leaves the thread where it is.
#[cfg(target_os = "linux")]
fn pin(cpu: usize) {
    use rustix::thread::{CpuSet, sched_setaffinity};
    if cpu < CpuSet::MAX_CPU {
        let mut set = CpuSet::new();
        set.set(cpu);
        let _ = sched_setaffinity(None, &set);
    }
}

#[cfg(not(target_os = "linux"))]
fn pin(_: usize) {}
