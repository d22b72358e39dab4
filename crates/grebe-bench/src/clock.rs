//! Time and processor time, as both processes of a run see them.

use std::time::Duration;

/// Nanoseconds of a clock that all processes of this boot share.
#[cfg(unix)]
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Nanoseconds since 1970: not monotonic, but shared by all processes.
#[cfg(not(unix))]
pub(crate) fn now_ns() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64)
}

/// Processor time of this thread so far, where the system tells it (Linux).
pub(crate) fn thread_cpu() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
}

/// Processor time of this process so far, all its threads.
#[cfg(unix)]
pub(crate) fn process_cpu() -> Option<Duration> {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(Duration::new(used.tv_sec as u64, used.tv_nsec as u32))
}

/// Not told here.
#[cfg(not(unix))]
pub(crate) fn process_cpu() -> Option<Duration> {
    None
}

/// What was used since `before`, where both are known.
pub(crate) fn since(now: Option<Duration>, before: Option<Duration>) -> Option<Duration> {
    now.zip(before).map(|(now, before)| now.saturating_sub(before))
}
