//! Results of a process.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Results of a process.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Seen {
    /// Bytes of messages that came, and how long that took.
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    /// Messages that did not come.
    pub(super) lost: u64,
    /// Of a round trip, in microseconds.
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) round_trips: u64,
}

/// Bytes and losses within `duration`, from counters of other threads.
pub(super) fn measured(bytes: impl Fn() -> u64, lost: impl Fn() -> u64, duration: Duration) -> Result<Seen> {
    let until = Instant::now() + PATIENCE;
    while bytes() == 0 {
        if Instant::now() >= until {
            return Err(Error::peer("receiver", "nothing came"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(WARM_UP);
    let (began, bytes_before, lost_before) = (Instant::now(), bytes(), lost());
    std::thread::sleep(duration);
    let (came, seconds) = (bytes() - bytes_before, began.elapsed().as_secs_f64());
    Ok(Seen { bytes: came, seconds, lost: lost() - lost_before, ..Seen::default() })
}

/// Times of round trips.
#[derive(Debug, Default)]
pub(super) struct RoundTrips(Vec<Duration>);

impl RoundTrips {
    pub(super) fn add(&mut self, took: Duration) {
        if self.0.len() < ROUND_TRIPS_MAX {
            self.0.push(took);
        }
    }

    pub(super) fn seen(&self) -> Seen {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = |share: f64| {
            let place = (sorted.len() as f64 * share) as usize;
            sorted.get(place).map_or(0.0, |took| took.as_secs_f64() * 1e6)
        };
        Seen { p50_us: at(0.5), p99_us: at(0.99), round_trips: sorted.len() as u64, ..Seen::default() }
    }
}

/// Messages of this time do not count.
pub(super) const WARM_UP: Duration = Duration::from_millis(300);

/// For how long the first message is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
const ROUND_TRIPS_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_has_median_and_99th_percentile() {
        let mut trips = RoundTrips::default();
        (1..=1_000).rev().for_each(|us| trips.add(Duration::from_micros(us)));
        let seen = trips.seen();
        assert_eq!((seen.p50_us.round(), seen.p99_us.round(), seen.round_trips), (501.0, 991.0, 1_000));
        assert_eq!(RoundTrips::default().seen().p50_us, 0.0);
    }
}
