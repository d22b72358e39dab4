//! Looking for a while before sleeping, where that paid lately.

use std::time::{Duration, Instant};

/// How long one side looks for the other's word before it sleeps.
///
/// Where a stream runs freely, its sides wait for each other by the microsecond, and a wake-up costs both more than that: a
/// system call here, a core that comes out of its idle state there. So who slept for less than [`WINDOW_MAX`] looks that long
/// the next time. Looking in vain halves it, down to nothing, and then for longer and longer: the other side is slow, was put
/// off its core, or waits for this one. A stream with a rate, which is made in bursts, is not looked for.
///
/// It does not yield: a core that is given away to a program at work comes back after milliseconds, after a sleep at once.
#[derive(Debug, Default)]
pub(super) struct BusyPoll {
    window: Duration,
    /// Short sleeps that change nothing, after the next time that looking was given up; and how many of them are left.
    penalty: u32,
    left: u32,
}

impl BusyPoll {
    /// Whether it became ready within the time that is worth looking. To be followed by a sleep, and [`slept`](Self::slept), where
    /// it did not.
    pub(super) fn look(&mut self, mut is_ready: impl FnMut() -> bool) -> bool {
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

    /// Learns how long a wait was in all that ended in a sleep.
    pub(super) fn slept(&mut self, waited: Duration) {
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

/// About what a sleep and a wake-up cost both sides together on a virtual machine; less than lies between two bursts of a stream
/// with a rate.
const WINDOW_MAX: Duration = Duration::from_micros(50);
const WINDOW_MIN: Duration = Duration::from_micros(10);
/// Where looking never pays, as on a single core, it costs 90 us in so many waits.
const PENALTY_MAX: u32 = 1 << 10;
/// About a microsecond.
const SPINS: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(20);
    /// More than there are of anything here.
    const MANY: u32 = 100;

    /// Who is put aside while it looks has not looked: on a busy machine a story is told until nobody interrupts it.
    fn undisturbed(story: impl Fn() -> bool) {
        assert!((0..1_000).any(|_| story()));
    }

    /// Whether it looks for longer than a moment; in vain.
    fn looks(poll: &mut BusyPoll) -> bool {
        let mut count = 0;
        assert!(!poll.look(|| {
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
                return false; // it would have been in vain
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
                poll.look(|| {
                    left -= 1;
                    left == 0
                })
            });
            found && looks(&mut poll)
        });
    }
}
