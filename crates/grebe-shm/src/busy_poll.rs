//! Busy polling before a sleep, when that paid recently.

use std::time::{Duration, Instant};

/// Time that one side polls for the other before it sleeps.
///
/// In a free-running stream both sides wait for each other by the microsecond. A wake-up costs both more than
/// that: a system call, and a core leaving its idle state. So after a sleep shorter than [`WINDOW_MAX`], the
/// next wait polls that long. A failed poll halves the time down to nothing, and then pauses polling for
/// longer and longer. It means that the other side is slow, was preempted, or waits for this one. A stream
/// with a fixed rate, which arrives in bursts, is not polled.
///
/// It does not yield. A core given to a busy program comes back after milliseconds, but at once after a
/// sleep.
#[derive(Debug, Default)]
pub(crate) struct BusyPoll {
    window: Duration,
    /// Short sleeps to ignore after the next failure, and the number remaining.
    penalty: u32,
    left: u32,
}

impl BusyPoll {
    /// Polls for a worthwhile time. Returns whether it became ready. If not, sleep and call
    /// [`slept`](Self::slept).
    pub(crate) fn spin(&mut self, mut is_ready: impl FnMut() -> bool) -> bool {
        let mut spin = || {
            (0..SPINS).any(|_| {
                std::hint::spin_loop();
                is_ready()
            })
        };
        if spin() {
            return true;
        }
        if self.window.is_zero() {
            return false;
        }
        let began = Instant::now();
        while began.elapsed() < self.window {
            if spin() {
                self.window = (self.window * 2).min(WINDOW_MAX);
                self.penalty = 0;
                return true;
            }
        }
        false
    }

    /// Learns the total length of a wait that ended in a sleep.
    pub(crate) fn slept(&mut self, waited: Duration) {
        if !self.window.is_zero() {
            self.window /= 2;
            if self.window < WINDOW_MIN {
                self.window = Duration::ZERO;
                self.penalty = (self.penalty * 2).clamp(1, PENALTY_MAX);
                self.left = self.penalty;
            }
        } else if waited <= WINDOW_MAX {
            match self.left {
                0 => self.window = WINDOW_MAX,
                _ => self.left -= 1,
            }
        }
    }
}

/// About the cost of a sleep and a wake-up for both sides on a virtual machine. Less than the gap between two
/// bursts of a stream with a fixed rate.
const WINDOW_MAX: Duration = Duration::from_micros(50);
const WINDOW_MIN: Duration = Duration::from_micros(10);
/// If polling never pays, as on a single core, it costs 90 us per this number of waits.
const PENALTY_MAX: u32 = 1 << 10;
/// About a microsecond.
const SPINS: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(20);
    /// More than any number of steps here.
    const MANY: u32 = 100;

    /// Repeats a scenario until no preemption disturbs it, because a preempted poll has not polled.
    fn undisturbed(story: impl Fn() -> bool) {
        assert!((0..1_000).any(|_| story()));
    }

    /// Whether it polls for longer than a moment, without success.
    fn looks(poll: &mut BusyPoll) -> bool {
        let mut count = 0;
        assert!(!poll.spin(|| {
            count += 1;
            false
        }));
        count > SPINS
    }

    #[test]
    fn who_sleeps_shortly_looks_and_who_looks_in_vain_does_so_less_and_less() {
        undisturbed(|| {
            let mut poll = BusyPoll::default();
            if looks(&mut poll) {
                return false; // nothing is known
            }
            poll.slept(Duration::from_millis(1));
            if looks(&mut poll) {
                return false; // it would have failed
            }
            let mut waits_between = Vec::new();
            for _ in 0..5 {
                let mut waits = 0;
                while waits < MANY && !looks(&mut poll) {
                    poll.slept(SHORT);
                    waits += 1;
                }
                let mut looked = 0;
                while looked < MANY && looks(&mut poll) {
                    poll.slept(SHORT);
                    looked += 1;
                }
                waits_between.push(waits);
            }
            waits_between == [1, 2, 3, 5, 9]
        });
    }

    #[test]
    fn what_is_found_by_looking_is_looked_for() {
        undisturbed(|| {
            let mut poll = BusyPoll::default();
            poll.slept(SHORT);
            let found = (0..100).all(|_| {
                let mut left = 3 * SPINS;
                poll.spin(|| {
                    left -= 1;
                    left == 0
                })
            });
            found && looks(&mut poll)
        });
    }
}
