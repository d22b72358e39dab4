//! The machine's canary: the present latency between its cores.
//!
//! On a virtual machine the host moves the cores. The round trip of a cache line between two of them then changes
//! between about 65 and 325 ns (the best of five tries; means are 100 and 480), for seconds to minutes. Techniques that
//! cross cores differ by up to a factor of three, so only runs in the same state are comparable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::system;

/// How far apart the cores were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MachineState {
    /// A round trip below 150 ns: the cores share a cache.
    Near,
    /// In between: it changed while it was measured, or something else ran.
    Mixed,
    /// Above 250 ns.
    Far,
}

/// One reading of the canary.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Nanoseconds for a cache line to go to the other core and back.
    pub round_trip_ns: f64,
    /// The state that this means.
    pub state: MachineState,
}

/// Bounces one cache line between two threads for some 20 ms.
pub fn read() -> Reading {
    bounce(Duration::from_millis(4))
}

/// Reads the state a few times per second while something else runs, at a cost of less than 0.1 % of two cores.
#[derive(Debug)]
pub(crate) struct Watcher {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<Vec<MachineState>>,
}

impl Watcher {
    pub(crate) fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut states = Vec::new();
            while !seen.load(Ordering::Relaxed) {
                states.push(bounce(Duration::from_micros(20)).state);
                thread::sleep(Duration::from_millis(250));
            }
            states
        });
        Self { stop, thread }
    }

    /// The share of readings, from 0 to 1, that were near.
    pub(crate) fn near(self) -> f64 {
        self.stop.store(true, Ordering::Relaxed);
        // The thread cannot panic; if it did, nothing was read.
        let states = self.thread.join().unwrap_or_default();
        let near = states.iter().filter(|&&state| state == MachineState::Near);
        near.count() as f64 / states.len().max(1) as f64
    }
}

fn bounce(part: Duration) -> Reading {
    let cores = system::two_cores();
    let ball = Ball(AtomicU64::new(0));
    let round_trip_ns = thread::scope(|scope| {
        scope.spawn(|| {
            system::stay_on(cores.map(|(_, second)| second));
            let mut next = 1;
            ball.0.store(READY, Ordering::Release);
            while ball.wait_for(next) {
                ball.0.store(next + 1, Ordering::Release);
                next += 2;
            }
        });
        let before = system::stay_on(cores.map(|(first, _)| first));
        // Its core may be busy: this one is left to others meanwhile.
        while ball.0.load(Ordering::Acquire) != READY {
            thread::sleep(Duration::from_micros(50));
        }
        let (mut best, mut at) = (f64::INFINITY, 0);
        // The best of several parts, because a preempted thread says nothing about the distance of cores.
        for _ in 0..PARTS {
            let (began, first) = (Instant::now(), at);
            while began.elapsed() < part {
                for _ in 0..16 {
                    ball.0.store(at + 1, Ordering::Release);
                    ball.wait_for(at + 2);
                    at += 2;
                }
            }
            best = best.min(began.elapsed().as_nanos() as f64 / ((at - first) / 2).max(1) as f64);
        }
        ball.0.store(STOP, Ordering::Release);
        system::go_back(before);
        best
    });
    let state = match round_trip_ns {
        ns if ns < 150.0 => MachineState::Near,
        ns if ns > 250.0 => MachineState::Far,
        _ => MachineState::Mixed,
    };
    Reading { round_trip_ns, state }
}

/// A cache line of its own.
#[repr(align(128))]
struct Ball(AtomicU64);

impl Ball {
    /// Whether that value came, and not the end.
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
                thread::yield_now();
            }
        }
    }
}

const STOP: u64 = u64::MAX;
const PARTS: u32 = 5;
/// The other side runs; even, so that it is neither side's turn.
const READY: u64 = STOP - 1;

#[cfg(test)]
mod tests {
    #[test]
    fn a_round_trip_takes_some_time() {
        let reading = super::read();
        assert!(reading.round_trip_ns > 1.0 && reading.round_trip_ns.is_finite());
    }
}
