//! The thread of a worker, and what it asks of the scheduler.

use std::sync::Arc;
use std::thread;

use super::handles::Ended;
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
        let stages = worker.stages();
        let result = worker.drive();
        // The stages, their queues and their chunks go before the end is told: whoever waits finds everything free.
        drop(worker);
        ended.tell(&stages, result);
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

/// Asks the scheduler for slices of 0.1 ms for the calling thread and those that it starts, instead of some 3 ms; whether that was
/// granted. A thread that is woken is let in sooner, and threads that share a processor take turns within a fraction of a
/// millisecond: at 8 GB/s, 3 ms are 24 MB that lie waiting and push each other out of the cache. Each thread's share of the
/// processor stays what it was. No privilege is needed, but Linux 6.12; a thread under a real-time policy is left as it is.
///
/// The runtime does this for each thread of a graph. A thread that handles batches outside of one may do the same.
///
/// ```
/// std::thread::spawn(|| {
///     let is_granted = grebe_flow::short_slices();
///     // ... take batches from a `Subscriber`, and work on them
/// # drop(is_granted);
/// });
/// ```
#[cfg(target_os = "linux")]
pub fn short_slices() -> bool {
    let Some(mut attributes) = attributes() else { return false };
    if ![libc::SCHED_OTHER, libc::SCHED_BATCH].contains(&(attributes.sched_policy as i32)) {
        return false;
    }
    attributes.size = size_of::<libc::sched_attr>() as u32;
    attributes.sched_runtime = SLICE_NS;
    // SAFETY: 0 is this thread, and the kernel reads as many bytes as `size` says, all of them written above.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    // An older kernel takes the number and forgets it.
    self::attributes().is_some_and(|granted| granted.sched_runtime == SLICE_NS)
}

#[cfg(target_os = "linux")]
fn attributes() -> Option<libc::sched_attr> {
    // SAFETY: plain numbers, for which zero is a value.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::sched_attr>() as u32;
    // SAFETY: 0 is this thread, and the kernel writes no more than `size` bytes to a place of that size.
    let status = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    (status == 0).then_some(attributes)
}

/// Not to be had here: `false`.
#[cfg(not(target_os = "linux"))]
pub fn short_slices() -> bool {
    false
}

/// Lets the disk serve everybody else before the calling thread and those that it starts from now on; whether that was granted. For
/// work in the background that reads or writes as fast as a disk can. Large reads in order keep a disk's queue at one place: where
/// the scheduler of Linux is `mq-deadline`, any other read then waits for its deadline of half a second, a program's own pages among
/// them. It has an effect there and with `bfq`; disks without a scheduler serve in the order of what comes.
///
/// ```
/// std::thread::spawn(|| {
///     let is_granted = grebe_flow::idle_disk_priority();
///     // ... read a file from its begin to its end
/// # drop(is_granted);
/// });
/// ```
#[cfg(target_os = "linux")]
pub fn idle_disk_priority() -> bool {
    // SAFETY: numbers only; 0 is this thread.
    let status = unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE) };
    status == 0
}

/// Not to be had here: `false`.
#[cfg(not(target_os = "linux"))]
pub fn idle_disk_priority() -> bool {
    false
}

/// `linux/ioprio.h`: a class in the upper bits, a level in the lower ones.
#[cfg(target_os = "linux")]
const IOPRIO_IDLE: libc::c_long = 3 << 13;
#[cfg(target_os = "linux")]
const IOPRIO_WHO_PROCESS: libc::c_long = 1;

/// The shortest that Linux grants.
#[cfg(target_os = "linux")]
const SLICE_NS: u64 = 100_000;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_slice_changes() {
        std::thread::spawn(|| {
            // Unlike what a thread has that nobody asked anything for.
            let _ = rustix::process::nice(3);
            let Some(before) = attributes() else { return eprintln!("skipped: the system does not tell") };
            let is_granted = short_slices();
            let after = attributes().unwrap();
            assert_eq!((after.sched_policy, after.sched_nice), (before.sched_policy, before.sched_nice));
            assert_eq!(
                (after.sched_flags, after.sched_priority),
                (before.sched_flags, before.sched_priority)
            );
            assert_eq!(is_granted, after.sched_runtime == 100_000, "{}", after.sched_runtime);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn threads_that_are_started_afterwards_have_the_priority_too() {
        // SAFETY: numbers only; 0 is this thread.
        let priority = || unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0) };
        let own = std::thread::spawn(move || {
            if !idle_disk_priority() {
                return eprintln!("skipped: the system does not let it");
            }
            let started = std::thread::spawn(priority).join().unwrap();
            assert_eq!((priority(), started), (IOPRIO_IDLE, IOPRIO_IDLE));
        });
        own.join().unwrap();
        assert_ne!(priority(), IOPRIO_IDLE, "of that thread alone");
    }
}
