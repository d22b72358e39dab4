//! Thread of a worker, and its scheduling.

use std::sync::Arc;
use std::thread;

use super::handles::Ended;
use super::worker::Worker;
use crate::error::Error;

/// Drives a worker on its own thread, and informs `ended` afterwards.
pub(super) fn spawn(mut worker: Worker, ended: Arc<Ended>) -> Result<(), Error> {
    let name = worker.slots.first().map(|slot| slot.name.clone()).unwrap_or_default();
    let thread = thread::Builder::new().name(name.clone()).spawn(move || {
        if let Some(cpu) = worker.cpu {
            pin(cpu);
        }
        // Without it, threads wait longer for each other.
        short_slices();
        let stages = worker.stages();
        let result = worker.drive();
        // Frees stages, queues and chunks before announcing the end, so that waiters find everything free.
        drop(worker);
        ended.tell(&stages, result);
    });
    thread.map(drop).map_err(|source| Error::Thread { stage: name, source })
}

/// An unknown processor leaves the thread unpinned.
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

/// Requests time slices of 0.1 ms instead of some 3 ms, for the calling thread and threads that it starts.
/// Returns whether the system granted them. A woken thread then runs sooner, and threads on one processor
/// alternate within a fraction of a millisecond. At 8 GB/s, 3 ms are 24 MB of waiting data, which exceeds the
/// cache. Each thread's share of the processor is unchanged. Needs Linux 6.12 but no privilege, and does not
/// affect threads under a real-time policy.
///
/// The runtime calls this for each thread of a graph. Other threads that handle batches may call it too.
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
    // An older kernel accepts the value and ignores it.
    self::attributes().is_some_and(|granted| granted.sched_runtime == SLICE_NS)
}

#[cfg(target_os = "linux")]
fn attributes() -> Option<libc::sched_attr> {
    // SAFETY: plain numbers, for which zero is valid.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::sched_attr>() as u32;
    // SAFETY: 0 is this thread, and the kernel writes at most `size` bytes to a place of that size.
    let status = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    (status == 0).then_some(attributes)
}

/// Not available here: `false`.
#[cfg(not(target_os = "linux"))]
pub fn short_slices() -> bool {
    false
}

/// Gives the calling thread, and threads that it starts, the lowest disk priority. Returns whether the system
/// granted it. For background work at the full rate of a disk. Large sequential reads otherwise keep the disk
/// at one place. Under the scheduler `mq-deadline` of Linux, any other read, even of a program's own pages,
/// then waits half a second for its deadline. Effective with `mq-deadline` and `bfq`; disks without a
/// scheduler serve in order of arrival.
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

/// Not available here: `false`.
#[cfg(not(target_os = "linux"))]
pub fn idle_disk_priority() -> bool {
    false
}

/// `linux/ioprio.h`: class in the upper bits, level in the lower ones.
#[cfg(target_os = "linux")]
const IOPRIO_IDLE: libc::c_long = 3 << 13;
#[cfg(target_os = "linux")]
const IOPRIO_WHO_PROCESS: libc::c_long = 1;

/// Shortest slice that Linux grants.
#[cfg(target_os = "linux")]
const SLICE_NS: u64 = 100_000;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_slice_changes() {
        std::thread::spawn(|| {
            // Distinguishes this thread from one with default attributes.
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
