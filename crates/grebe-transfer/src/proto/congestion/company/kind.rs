//! Which kind of neighbour fills the queue: one that yields to loss, or one that does not (BBR).

use super::Heard;

/// Collects what tells a neighbour that does not yield.
#[derive(Debug)]
pub struct Kind {
    /// The queue as it usually is, in microseconds.
    level_us: f64,
    yielded: Option<Yielded>,
    refills: u32,
    /// Losses in a row that came soon after the one before.
    soon: u32,
    rounds_since_loss: u32,
    /// Round trips since we left the queue ourselves, for whatever reason.
    rounds_since_own: u32,
    dip: Option<Dip>,
    /// The last time that the queue ran empty and full again, and not because of us.
    dipped: Option<Dipped>,
    /// Only that tells from now on.
    doubted: bool,
}

/// The neighbour paused.
#[derive(Debug, Clone, Copy)]
pub struct Dipped {
    pub at_us: u64,
    /// Ours alone made no queue.
    pub emptied: bool,
}

/// We left a part of the queue.
#[derive(Debug, Clone, Copy)]
struct Yielded {
    window: f64,
    level_us: f64,
    rounds: u32,
    /// The shortest queue of this round.
    shortest_us: u64,
}

/// The queue has run empty.
#[derive(Debug, Clone, Copy)]
struct Dip {
    since_us: u64,
    /// Nobody of ours made it.
    foreign: bool,
    emptied: bool,
    /// Since when without a break it is empty.
    empty_since_us: Option<u64>,
    empty_us_max: u64,
}

impl Kind {
    pub fn new(queue_us: u64, doubted: bool) -> Self {
        Self {
            level_us: queue_us as f64,
            yielded: None,
            refills: 0,
            soon: 0,
            rounds_since_loss: u32::MAX,
            rounds_since_own: u32::MAX,
            dip: None,
            dipped: None,
            doubted,
        }
    }

    /// Takes a report, and our window in bytes; says whether the neighbour was just seen not to yield.
    pub fn on_report(&mut self, heard: &Heard, window: f64) -> bool {
        if heard.round_ended {
            self.rounds_since_own = self.rounds_since_own.saturating_add(1);
            self.rounds_since_loss = self.rounds_since_loss.saturating_add(1);
        }
        let dipped = self.watch_dip(heard);
        let refilled = self.watch_refill(heard, window);
        dipped || refilled && !self.doubted
    }

    /// We yielded to a loss, from this window in bytes; says whether that was too often for a neighbour that yields too.
    pub fn on_yield(&mut self, heard: &Heard, window: f64) -> bool {
        // What was left by the yield before, and is full again: that is what this loss tells.
        if let Some(yielded) = &self.yielded
            && yielded.is_refilled(heard.queue_us, window, heard.capacity)
        {
            self.refills += 1;
        }
        self.soon = if self.rounds_since_loss <= SOON_ROUNDS { self.soon + 1 } else { 1 };
        (self.rounds_since_loss, self.rounds_since_own) = (0, 0);
        self.yielded = Some(Yielded { window, level_us: self.level_us, rounds: 0, shortest_us: u64::MAX });
        !self.doubted && (self.soon >= SOON_MAX || self.refills >= REFILLS_MAX)
    }

    /// We took ours out of the queue for a while.
    pub fn on_test(&mut self) {
        (self.rounds_since_own, self.yielded, self.dip) = (0, None, None);
    }

    /// Losses or refills that came one after the other until now.
    pub fn is_first(&self) -> bool {
        self.refills == 0 && (self.soon == 0 || self.rounds_since_loss > SOON_ROUNDS)
    }

    /// It did not pause as BBR does: losses and refills misled.
    pub fn doubt(&mut self) {
        (self.soon, self.refills, self.yielded, self.dipped) = (0, 0, None, None);
        self.doubted = true;
    }

    pub fn is_doubted(&self) -> bool {
        self.doubted
    }

    /// When the neighbour last left the queue for a moment.
    pub fn dipped(&self) -> Option<Dipped> {
        self.dipped
    }

    #[cfg(test)]
    pub fn dipped_at(at_us: u64, emptied: bool) -> Self {
        Self { dipped: Some(Dipped { at_us, emptied }), ..Self::new(0, false) }
    }

    /// The queue as it is between such moments, in microseconds.
    pub fn level_us(&self) -> f64 {
        self.level_us
    }

    /// BBR leaves the queue for 200 ms every ten seconds, to see the path without one, and is back at once. One that yields to
    /// loss comes back slowly.
    fn watch_dip(&mut self, heard: &Heard) -> bool {
        let queue_us = heard.queue_us as f64;
        let Some(dip) = &mut self.dip else {
            if queue_us < DIP_LOW * self.level_us {
                let foreign = self.rounds_since_own > DIP_ROUNDS_OWN;
                self.dip = Some(Dip {
                    since_us: heard.now_us,
                    foreign,
                    emptied: false,
                    empty_since_us: None,
                    empty_us_max: 0,
                });
            } else if heard.round_ended {
                self.level_us += (queue_us - self.level_us) / LEVEL_ROUNDS;
            }
            return false;
        };
        if heard.is_queue_empty() {
            dip.emptied = true;
            let since_us = *dip.empty_since_us.get_or_insert(heard.now_us);
            dip.empty_us_max = dip.empty_us_max.max(heard.now_us - since_us);
        } else {
            dip.empty_since_us = None;
        }
        let dip = *dip;
        // All that yield at once leave something in a queue of half a round trip and more.
        let empties = dip.emptied && self.level_us > DIP_DEEP * heard.min_rtt_us as f64;
        let back = queue_us > if empties { DIP_BACK_EMPTIED } else { DIP_BACK } * self.level_us;
        let long = heard.now_us > dip.since_us + DIP_US + DIP_ROUNDS_BACK * heard.rtt_us;
        if back || long {
            self.dip = None;
        }
        if long {
            self.level_us = queue_us;
        }
        let dipped = back && !long && dip.foreign && heard.now_us > dip.since_us + DIP_US_MIN;
        if dipped {
            self.dipped = Some(Dipped { at_us: heard.now_us, emptied: dip.empty_us_max >= DIP_EMPTY_US });
        }
        dipped
    }

    /// What we leave is gone from the queue, until somebody else takes it: BBR does so within two of its cycles of eight round
    /// trips of an empty path, and CUBIC grows for seconds.
    fn watch_refill(&mut self, heard: &Heard, window: f64) -> bool {
        let Some(yielded) = &mut self.yielded else { return false };
        yielded.shortest_us = yielded.shortest_us.min(heard.queue_us);
        if !heard.round_ended {
            return false;
        }
        yielded.rounds += 1;
        let shortest_us = std::mem::replace(&mut yielded.shortest_us, u64::MAX);
        // In the first round trips the queue is still that from before.
        if yielded.rounds <= REFILL_ROUNDS_MIN {
            return false;
        }
        let refilled = yielded.is_refilled(shortest_us, window, heard.capacity);
        if !refilled && yielded.rounds <= REFILL_ROUNDS_MAX {
            return false;
        }
        self.yielded = None;
        self.refills = if refilled { self.refills + 1 } else { 0 };
        self.refills >= REFILLS_MAX
    }
}

impl Yielded {
    /// Whether a queue of this length has what our smaller window left of it.
    fn is_refilled(&self, queue_us: u64, window: f64, capacity: f64) -> bool {
        let left_us = (self.window - window) / capacity.max(1.0) * 1e6;
        left_us > REFILL_LEAST * self.level_us
            && self.level_us - (queue_us as f64) < (1.0 - REFILLED) * left_us
    }
}

/// The usual queue is a mean over so many round trips: as long as BBR's cycles leave a mark in it.
const LEVEL_ROUNDS: f64 = 8.0;

/// What all others yield after a loss leaves more than a third of a queue of one round trip.
const DIP_LOW: f64 = 0.35;
const DIP_BACK: f64 = 0.75;

/// Of a queue that is deep for the path, no loss empties all. BBR takes a while to fill it where it has most of the path.
const DIP_DEEP: f64 = 0.45;
const DIP_BACK_EMPTIED: f64 = 0.4;

/// BBR stays away for 200 ms and a round trip, more where a packet is lost then, and fills what it left in a few cycles of eight
/// round trips of an empty path.
const DIP_US: u64 = 400_000;
const DIP_US_MIN: u64 = 100_000;
const DIP_ROUNDS_BACK: u64 = 12;

/// A window that is too large for the path alone builds a queue in less than the pause.
const DIP_EMPTY_US: u64 = 150_000;

/// So soon after we left the queue, it is short because of that.
const DIP_ROUNDS_OWN: u32 = 6;

/// Losses that come so soon after each other, so often: the neighbour does not yield.
const SOON_ROUNDS: u32 = 20;
const SOON_MAX: u32 = 4;

/// Two cycles of BBR are sixteen round trips without a queue, and ten with one that is not full.
const REFILL_ROUNDS_MIN: u32 = 2;
const REFILL_ROUNDS_MAX: u32 = 10;

/// The share of what we left that is somebody else's again: CUBIC takes half of it in this time at most.
const REFILLED: f64 = 0.75;

/// One CUBIC that lost nothing when we did looks so once.
const REFILLS_MAX: u32 = 2;

/// What is less of the queue than this cannot be told from its noise.
const REFILL_LEAST: f64 = 0.06;

#[cfg(test)]
mod tests {
    use super::super::tests::heard;
    use super::*;

    /// Takes the queue every 50 ms from one time to another; says whether the neighbour was seen not to yield.
    fn insists(
        kind: &mut Kind,
        ms: std::ops::Range<u64>,
        window: f64,
        queue_us: impl Fn(u64) -> u64,
    ) -> bool {
        let reports = ms.step_by(50).map(|now_ms| heard(now_ms, queue_us(now_ms), 0));
        reports.fold(false, |seen, heard| kind.on_report(&heard, window) | seen)
    }

    /// A queue of 50 ms that is empty for 250 ms from 3 s on, and then grows by so much a second.
    fn paused(growth_us: u64) -> impl Fn(u64) -> u64 {
        move |now_ms| match now_ms {
            3_000..3_250 => 0,
            3_250.. => ((now_ms - 3_250) * growth_us / 1_000).min(50_000),
            _ => 50_000,
        }
    }

    #[test]
    fn one_that_pauses_and_is_back_soon_does_not_yield() {
        let mut kind = Kind::new(50_000, false);
        assert!(insists(&mut kind, 100..6_000, 6e5, paused(60_000)));
        assert!(kind.dipped().unwrap().emptied);
        let mut kind = Kind::new(50_000, false);
        assert!(!insists(&mut kind, 100..6_000, 6e5, paused(8_000)), "CUBIC is not back so soon");
    }

    #[test]
    fn a_queue_that_we_left_tells_nothing() {
        let mut kind = Kind::new(50_000, false);
        insists(&mut kind, 100..2_950, 6e5, paused(60_000));
        kind.on_test();
        assert!(!insists(&mut kind, 2_950..6_000, 6e5, paused(60_000)));
    }

    #[test]
    fn what_we_left_and_is_full_again_twice_tells() {
        for (queue_us, expected) in [(50_000, true), (36_000, false)] {
            let mut kind = Kind::new(50_000, false);
            let mut seen = false;
            for second in [0, 3] {
                seen |= kind.on_yield(&heard(second * 1_000, 50_000, 1), 6e5);
                // What was left is 200 kB: 17 ms.
                seen |= insists(&mut kind, second * 1_000..second * 1_000 + 1_500, 4e5, |_| queue_us);
                insists(&mut kind, second * 1_000 + 1_500..second * 1_000 + 3_000, 6e5, |_| 50_000);
            }
            assert_eq!(seen, expected, "{queue_us}");
        }
    }

    #[test]
    fn one_that_misled_is_told_by_its_pauses_only() {
        let mut kind = Kind::new(50_000, false);
        kind.doubt();
        for time_ms in [0, 500, 1_000, 1_500, 2_000] {
            assert!(!kind.on_yield(&heard(time_ms, 50_000, 1), 6e5));
            assert!(!insists(&mut kind, time_ms..time_ms + 500, 4e5, |_| 50_000));
        }
        assert!(insists(&mut kind, 2_500..6_000, 6e5, paused(60_000)));
    }
}
