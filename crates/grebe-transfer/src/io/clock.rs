//! The clocks of a session: one that never goes back, and the system's.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Microseconds since it was made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now_us(&self) -> u64 {
        self.0.elapsed().as_micros() as u64
    }

    /// This clock and the system's at the same moment.
    pub(super) fn reading(&self) -> Reading {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Reading { us: self.now_us(), unix }
    }
}

/// Two clocks at one moment.
pub(super) struct Reading {
    pub(super) us: u64,
    unix: Duration,
}

impl Reading {
    /// The time by this clock of what the system's clock stamped before.
    pub(super) fn us_at(&self, stamp: Duration) -> u64 {
        self.us.saturating_sub(self.unix.saturating_sub(stamp).as_micros() as u64)
    }
}

/// Seconds since 1970.
pub(super) fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
