//! On which processor cores a thread runs, where the system lets a program choose (Linux).

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    /// The cores that this thread may use, from the first on.
    pub(crate) fn all() -> Vec<usize> {
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
        if let Some(before) = before {
            // It was allowed a moment ago; where it is no more, the thread stays.
            let _ = sched_setaffinity(None, &before);
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    pub(crate) fn all() -> Vec<usize> {
        Vec::new()
    }

    pub(crate) fn stay_on(_: Option<usize>) -> Option<()> {
        None
    }

    pub(crate) fn go_back(_: Option<()>) {}
}

pub(crate) use system::{all, go_back, stay_on};

/// The first and the last core that this thread may use, which are one where there is one.
pub(crate) fn two() -> Option<(usize, usize)> {
    let all = all();
    Some((*all.first()?, *all.last()?))
}
