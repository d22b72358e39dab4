//! Clocks, processor cores and ports of a run, which all its processes share.

use std::time::Duration;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod cores {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    /// The cores that this thread may use, from the first on.
    pub(crate) fn cores() -> Vec<usize> {
        let allowed = sched_getaffinity(None).ok();
        allowed.map_or(Vec::new(), |set| (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
    }

    /// Keeps this thread on a core, and gives where it was allowed before.
    pub(crate) fn stay_on(core: Option<usize>) -> Option<CpuSet> {
        let before = sched_getaffinity(None).ok()?;
        let mut only = CpuSet::new();
        only.set(core?);
        sched_setaffinity(None, &only).ok()?;
        Some(before)
    }

    pub(crate) fn go_back(before: Option<CpuSet>) {
        // It was allowed a moment ago; where it is no more, the thread stays.
        before.map(|before| sched_setaffinity(None, &before));
    }
}

/// Elsewhere a program does not choose.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod cores {
    pub(crate) fn cores() -> Vec<usize> {
        Vec::new()
    }

    pub(crate) fn stay_on(_: Option<usize>) -> Option<()> {
        None
    }

    pub(crate) fn go_back(_: Option<()>) {}
}

pub(crate) use cores::{cores, go_back, stay_on};

/// The first and the last core of this thread's affinity; equal if there is only one.
pub(crate) fn two_cores() -> Option<(usize, usize)> {
    let all = cores();
    Some((*all.first()?, *all.last()?))
}

/// Nanoseconds of a clock that all processes of this boot share.
#[cfg(unix)]
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Nanoseconds since 1970: not monotonic, but shared by all processes.
#[cfg(not(unix))]
pub(crate) fn now_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// CPU time of this thread so far, if the system reports it (Linux).
pub(crate) fn thread_cpu() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
}

/// CPU time of all threads of this process so far; `None` if not reported.
pub(crate) fn process_cpu() -> Option<Duration> {
    #[cfg(unix)]
    {
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Some(Duration::new(used.tv_sec as u64, used.tv_nsec as u32))
    }
    #[cfg(not(unix))]
    None
}

/// Usage since `before`, if both are known.
pub(crate) fn since(now: Option<Duration>, before: Option<Duration>) -> Option<Duration> {
    now.zip(before).map(|(now, before)| now.saturating_sub(before))
}

/// A port that was free a moment ago.
#[cfg(feature = "developer")]
pub(crate) fn free_port() -> crate::error::Result<u16> {
    use crate::error::Error;
    let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0));
    let listener = listener.map_err(Error::io("find a free port"))?;
    Ok(listener.local_addr().map_err(Error::io("find a free port"))?.port())
}
