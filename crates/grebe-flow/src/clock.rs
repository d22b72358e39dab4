//! The clock that frames are stamped with.

/// Nanoseconds of the system's monotonic clock: one time base for all processes of a boot, so that a consumer can
/// subtract a producer's stamp from its own.
///
/// On systems without POSIX clocks it is the wall clock, advanced monotonically within the process.
pub fn monotonic_ns() -> u64 {
    now_ns()
}

#[cfg(unix)]
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

#[cfg(not(unix))]
fn now_ns() -> u64 {
    use std::sync::OnceLock;
    use std::time::{Instant, SystemTime, UNIX_EPOCH};
    static BASE: OnceLock<(Instant, u64)> = OnceLock::new();
    let (began, wall_ns) = BASE.get_or_init(|| {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (Instant::now(), wall.as_nanos() as u64)
    });
    wall_ns + began.elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_runs_backwards() {
        let stamps: Vec<u64> = (0..1000).map(|_| monotonic_ns()).collect();
        assert!(stamps.windows(2).all(|pair| pair[0] <= pair[1]) && stamps[0] > 0);
    }
}
