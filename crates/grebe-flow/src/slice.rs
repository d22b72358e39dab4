//! For how long a thread may be kept waiting for a processor.

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
    let size = size_of::<libc::sched_attr>() as u32;
    // SAFETY: plain numbers, for which zero is a value.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: 0 is this thread, and the kernel writes no more than `size` bytes to a place of that size.
    let is_read = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) } == 0;
    let is_shared = [libc::SCHED_OTHER, libc::SCHED_BATCH].contains(&(attributes.sched_policy as i32));
    if !is_read || !is_shared {
        return false;
    }
    attributes.size = size;
    attributes.sched_runtime = SLICE_NS;
    // SAFETY: 0 is this thread, and the kernel reads as many bytes as `size` says, all of them written above.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
}

/// Not to be had here: `false`.
#[cfg(not(target_os = "linux"))]
pub fn short_slices() -> bool {
    false
}

/// The shortest that Linux grants.
#[cfg(target_os = "linux")]
const SLICE_NS: u64 = 100_000;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn a_thread_keeps_its_policy_and_its_niceness() {
        // Granted or not: an older kernel takes the number and ignores it.
        let (before, after) = std::thread::spawn(|| {
            let niceness = || std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let before = niceness();
            super::short_slices();
            (before, niceness())
        })
        .join()
        .unwrap();
        // After the name: field 3 is the state; 18 and 19 priority and niceness, 40 and 41 the real-time priority and the policy.
        let fields = |stat: &str| {
            let rest = stat.rsplit_once(')').unwrap().1.to_owned();
            let all: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
            [15, 16, 37, 38].map(|place| all[place].clone())
        };
        assert_eq!(fields(&before), fields(&after));
    }
}
