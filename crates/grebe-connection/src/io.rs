//! The data path: sockets and clocks around the protocol's core.

pub(crate) mod session;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Microseconds since its creation.
#[derive(Debug, Clone, Copy)]
struct Clock(Instant);

impl Clock {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn now_us(&self) -> u64 {
        self.0.elapsed().as_micros() as u64
    }

    /// Reads this clock and the system's clock at the same moment.
    fn reading(&self) -> Reading {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Reading { us: self.now_us(), unix }
    }
}

/// Reading of both clocks at one moment.
struct Reading {
    us: u64,
    unix: Duration,
}

impl Reading {
    /// Converts an earlier stamp of the system's clock to this clock.
    fn us_at(&self, stamp: Duration) -> u64 {
        self.us.saturating_sub(self.unix.saturating_sub(stamp).as_micros() as u64)
    }
}

/// Arrival times of datagrams, by kernel stamps where available. Train dispersion measures the path's rate,
/// and several datagrams may have waited for this thread. The system's clock may be set at any time; the
/// result never goes back.
#[derive(Debug, Clone, Copy, Default)]
struct ArrivalTimes {
    newest_us: u64,
}

impl ArrivalTimes {
    fn us_of(&mut self, now: &Reading, stamp: Option<Duration>) -> u64 {
        let arrived_us = stamp.map_or(now.us, |stamp| now.us_at(stamp));
        self.newest_us = arrived_us.clamp(self.newest_us.min(now.us), now.us);
        self.newest_us
    }
}

/// Seconds since 1970.
fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
