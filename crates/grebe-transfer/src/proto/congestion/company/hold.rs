//! The window beside a neighbour that no loss slows down: half of what the path and the queue hold, and no yielding.
//!
//! Such a neighbour takes what is left to it and keeps what it has for ten round trips; each time that something is left to it
//! and taken back, as much is lost. So the window goes where it is to be in small steps, and stays there.

use super::kind::Kind;
use super::{Heard, PACKET_BYTES, WINDOW_MIN};

#[derive(Debug)]
pub struct Hold {
    since_us: u64,
    rounds: u32,
    /// The share of packets that is lost of late.
    loss: f64,
    /// The path took more than this, in packets, without a queue.
    taken: f64,
    /// It makes a queue of more.
    is_full: bool,
}

impl Hold {
    pub fn new(now_us: u64) -> Self {
        Self { since_us: now_us, rounds: 0, loss: 0.0, taken: 0.0, is_full: false }
    }

    /// Whether nothing showed for long that the neighbour is still of this kind.
    pub fn is_old(&self, now_us: u64, kind: &Kind) -> bool {
        match kind.dipped() {
            Some(dipped) => now_us > dipped.at_us + DIPS_US,
            None => now_us > self.since_us + DIP_EVERY_US,
        }
    }

    /// The neighbour paused while this was our window.
    pub fn on_dip(&mut self, kind: &Kind, window: f64) {
        self.is_full |= !kind.dipped().is_some_and(|dipped| dipped.emptied);
        self.taken = if self.is_full { 0.0 } else { window };
    }

    /// Half of what the path and the queue hold, and what makes no queue alone, in packets.
    pub fn wanted(&self, heard: &Heard, kind: &Kind, window: f64) -> f64 {
        let queue_us = kind.level_us().min(heard.min_rtt_us as f64);
        let half_us = (heard.min_rtt_us as f64 + queue_us) / 2.0;
        let wanted = KEEP * heard.capacity * half_us / 1e6 / PACKET_BYTES;
        if heard.capacity_known || self.is_full {
            wanted
        } else {
            wanted.max(window).max(GROWTH_TAKEN * self.taken)
        }
    }

    /// The window after a round trip, in packets, from the one before.
    pub fn on_round(&mut self, heard: &Heard, kind: &Kind, window: f64, [acked, lost]: [u64; 2]) -> f64 {
        let packets = acked + lost;
        if heard.now_us > kind.dipped().map_or(0, |dipped| dipped.at_us) + DIP_EVERY_US {
            self.taken = 0.0; // Perhaps it paused, and our queue hid it.
            self.is_full |= kind.dipped().is_some();
        }
        if packets == 0 {
            return window;
        }
        self.rounds = self.rounds.saturating_add(1);
        // What was taken back is lost until the neighbour has forgotten what it had.
        if self.rounds > DEAF_ROUNDS {
            self.loss += (lost as f64 / packets as f64 - self.loss) / LOSS_ROUNDS;
        }
        let loss = (self.loss - heard.base_loss).max(0.0);
        let excess = (loss - LOSS_BORNE).max(0.0);
        let wanted = self.wanted(heard, kind, window);
        let path = (heard.capacity * heard.min_rtt_us as f64 / 1e6 / PACKET_BYTES).max(window);
        let step_max = STEP * path * (1.0 - loss / LOSS_BORNE).max(0.0);
        let step = (wanted - window).clamp(-STEP * path, step_max);
        (window + step - excess * window).max(WINDOW_MIN)
    }
}

/// BBR pauses every ten seconds; once it may be missed.
const DIP_EVERY_US: u64 = 12_000_000;
const DIPS_US: u64 = 25_000_000;

/// Where the path's rate never showed: what the path took without a queue may be less than half of it.
const GROWTH_TAKEN: f64 = 1.2;

/// A little less than half, so that a neighbour that looks for the path's round trip sees it without our queue.
const KEEP: f64 = 0.95;

/// Of what the path holds, in a round trip: from nothing to all in a hundred, which is slow against the ten that BBR remembers.
const STEP: f64 = 0.01;

/// BBR beside a constant window makes both lose 2 % in a queue of one round trip, 4 % in one of half, and more while the window
/// grows.
const LOSS_BORNE: f64 = 0.07;

/// Losses come where BBR asks for more, every eight round trips: a mean over two of these.
const LOSS_ROUNDS: f64 = 16.0;

/// BBR remembers ten round trips, and knows of a change one later.
const DEAF_ROUNDS: u32 = 12;

#[cfg(test)]
mod tests {
    use super::super::tests::heard;
    use super::*;

    const PACKETS: [u64; 2] = [98, 2];

    fn after_rounds(hold: &mut Hold, heard: &Heard, mut window: f64, lost: [u64; 2], rounds: u32) -> f64 {
        for _ in 0..rounds {
            window = hold.on_round(heard, &Kind::new(50_000, false), window, lost);
        }
        window
    }

    #[test]
    fn the_window_goes_to_half_and_stays_there() {
        let heard = heard(1_000, 50_000, 0);
        let mut hold = Hold::new(0);
        let half = 12e6 * 0.05 / PACKET_BYTES;
        let early = after_rounds(&mut hold, &heard, 40.0, PACKETS, 20);
        assert!((60.0..0.5 * half).contains(&early), "in small steps: {early}");
        let late = after_rounds(&mut hold, &heard, early, PACKETS, 300);
        assert!((0.9 * half..half).contains(&late), "{late} of {half}");
        let above = after_rounds(&mut hold, &heard, 2.0 * half, PACKETS, 300);
        assert!((above - late).abs() < 1.0, "{above}");
    }

    #[test]
    fn many_that_lose_much_share_it() {
        let heard = heard(1_000, 50_000, 0);
        let [great, small] =
            [400.0, 20.0].map(|window| after_rounds(&mut Hold::new(0), &heard, window, [85, 15], 200));
        assert!(great < 100.0, "{great}");
        assert!((great - small).abs() < 20.0, "{great} and {small}");
    }

    #[test]
    fn a_path_that_showed_little_is_asked_for_more() {
        let heard = Heard { capacity_known: false, ..heard(1_000, 50_000, 0) };
        let mut hold = Hold::new(0);
        let kind = Kind::new(50_000, false);
        let wanted = hold.wanted(&heard, &kind, 40.0);
        hold.on_dip(&Kind::dipped_at(1_000_000, true), wanted);
        assert!(hold.wanted(&heard, &kind, 40.0) > 1.1 * wanted);
        hold.on_dip(&Kind::dipped_at(2_000_000, false), 1.2 * wanted);
        assert_eq!(hold.wanted(&heard, &kind, 40.0), wanted, "it made a queue of that");
    }
}
