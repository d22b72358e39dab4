//! Linux's estimate of its clock error.

/// Error that was set in the kernel, or has grown since; `None` if nothing disciplines the clock.
pub(super) fn error_ns() -> Option<u64> {
    // SAFETY: a struct of numbers; with modes = 0 the call changes nothing.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: adjtimex(2): the kernel fills in the struct; any user may call it.
    let asked = unsafe { libc::adjtimex(&mut state) };
    let is_known = asked >= 0 && state.status & libc::STA_UNSYNC == 0;
    is_known.then(|| believed(state.esterror as u64, state.maxerror as u64) * 1_000)
}

/// Meaningful one of estimate and bound, in microseconds. Some daemons set only the bound, and leave the
/// estimate at zero, or above the bound as at the start.
fn believed(estimate_us: u64, bound_us: u64) -> u64 {
    match (estimate_us, bound_us) {
        // Set just now: the kernel adds this much per second.
        (_, 0) => GROWTH_US,
        (0, bound_us) => bound_us,
        (estimate_us, bound_us) => estimate_us.min(bound_us),
    }
}

/// 500 parts in a million: adjtimex(2), `maxerror`.
const GROWTH_US: u64 = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_daemon_leaves_something_to_believe() {
        assert_eq!(believed(120, 9_000), 120, "chrony and ntpd: an estimate within a bound");
        assert_eq!(believed(0, 9_000), 9_000, "systemd-timesyncd: a bound that grows");
        assert_eq!(believed(16_000_000, 500), 500, "phc2sys: the estimate of the start");
        assert_eq!((believed(0, 0), believed(16_000_000, 0)), (500, 500), "set just now");
        if let Some(error_ns) = error_ns() {
            assert!(error_ns > 0);
        }
    }
}
