//! The machine's mood: how far apart its cores are right now.
//!
//! On a virtual machine the host moves the cores about, and the round trip of a cache line between two of them flips between
//! about 65 and 325 ns (the best of five tries; means are 100 and 480) for seconds to minutes. What crosses cores then differs by up to a factor of three. Only runs of the
//! same mood can be compared.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// How far apart the cores were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mood {
    /// A round trip below 150 ns: the cores share a cache.
    Near,
    /// Between the two: it changed while it was measured, or something else ran.
    Mixed,
    /// Above 250 ns.
    Far,
}

/// One reading of the canary.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Nanoseconds for a cache line to go to the other core and back.
    pub round_trip_ns: f64,
    /// What that says.
    pub mood: Mood,
}

/// Bounces one cache line between two threads for some 20 ms.
pub fn read() -> Reading {
    let ball = Ball(AtomicU64::new(0));
    let round_trip_ns = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut next = 1;
            while ball.wait_for(next) {
                ball.0.store(next + 1, Ordering::Release);
                next += 2;
            }
        });
        let mut best = f64::INFINITY;
        let mut at = 0;
        // The best of several parts: a part in which a thread was put off the core says nothing about distance.
        for _ in 0..PARTS {
            let began = Instant::now();
            let first = at;
            while began.elapsed() < PART {
                for _ in 0..64 {
                    ball.0.store(at + 1, Ordering::Release);
                    if !ball.wait_for(at + 2) {
                        break;
                    }
                    at += 2;
                }
            }
            let trips = (at - first) / 2;
            if trips > 0 {
                best = best.min(began.elapsed().as_nanos() as f64 / trips as f64);
            }
        }
        ball.0.store(STOP, Ordering::Release);
        // The other thread cannot panic; if it did, the reading is what it is.
        let _ = other.join();
        best
    });
    let mood = match round_trip_ns {
        ns if ns < 150.0 => Mood::Near,
        ns if ns > 250.0 => Mood::Far,
        _ => Mood::Mixed,
    };
    Reading { round_trip_ns, mood }
}

/// A cache line of its own.
#[repr(align(128))]
struct Ball(AtomicU64);

impl Ball {
    fn wait_for(&self, value: u64) -> bool {
        let mut spins = 0_u32;
        loop {
            match self.0.load(Ordering::Acquire) {
                STOP => return false,
                seen if seen == value => return true,
                _ => std::hint::spin_loop(),
            }
            spins += 1;
            if spins.is_multiple_of(1 << 14) {
                // On a single core the other side needs this one.
                std::thread::yield_now();
            }
        }
    }
}

const STOP: u64 = u64::MAX;
const PARTS: u32 = 5;
const PART: Duration = Duration::from_millis(4);

impl fmt::Display for Mood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mood::Near => "near",
            Mood::Mixed => "mixed",
            Mood::Far => "far",
        })
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:.0} ns)", self.mood, self.round_trip_ns)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_round_trip_takes_some_time() {
        let reading = super::read();
        assert!(reading.round_trip_ns > 1.0 && reading.round_trip_ns.is_finite());
    }
}
