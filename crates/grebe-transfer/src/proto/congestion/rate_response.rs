//! Whether losses answer to this flow's rate: those of a short queue or of a policer do, those of the path itself do not.
//!
//! Each packet is of a class by the pace that it left at, and losses are counted by class. What is lost together counts once, so that
//! the count of events is what chance would spread evenly over all packets, however long the path's runs of losses are.

use super::constants::*;

/// How fast a packet left, relative to the rate that the path is thought to carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum PaceClass {
    Below,
    At,
    Above,
    /// The path is not known yet, or others fill it.
    #[default]
    Unknown,
}

/// What became of packets: how many are decided, and in how many events some were lost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct PaceCount {
    packets: f64,
    lost: f64,
    events: f64,
}

/// The same by class.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct PaceCounts([PaceCount; 4]);

impl PaceCounts {
    /// A packet arrived; `was_lost`: it had been declared lost, which was a mistake.
    pub(crate) fn on_ack(&mut self, pace: PaceClass, was_lost: bool) {
        let count = &mut self.0[pace as usize];
        if was_lost {
            count.lost -= 1.0;
            count.events -= 1.0;
        } else {
            count.packets += 1.0;
        }
    }

    /// A packet was lost; `is_event`: the one sent before it was not.
    pub(crate) fn on_lost(&mut self, pace: PaceClass, is_event: bool) {
        let count = &mut self.0[pace as usize];
        count.packets += 1.0;
        count.lost += 1.0;
        count.events += f64::from(u8::from(is_event));
    }

    /// Loss events of all classes.
    pub(super) fn events(&self) -> f64 {
        self.0.iter().map(|count| count.events).sum()
    }

    fn class(&self, pace: PaceClass) -> PaceCount {
        self.0[pace as usize]
    }
}

/// The losses of late, by the pace of their packets.
#[derive(Debug, Default)]
pub(super) struct RateResponse {
    counts: PaceCounts,
}

impl RateResponse {
    pub(super) fn on_report(&mut self, report: &PaceCounts) {
        for (count, new) in self.counts.0.iter_mut().zip(&report.0) {
            count.packets += new.packets;
            count.lost = (count.lost + new.lost).max(0.0);
            count.events = (count.events + new.events).max(0.0);
        }
        if self.counts.events() > LOSS_EVENTS_MAX {
            self.halve();
        }
    }

    pub(super) fn forget(&mut self) {
        self.counts = PaceCounts::default();
    }

    /// Whether faster packets are lost so much more often than slower ones that chance does not do it. `doubts`: how often that
    /// was a mistake.
    pub(super) fn losses_rise(&self, doubts: f64) -> bool {
        let deviations = DEVIATIONS + doubts;
        let below = self.counts.class(PaceClass::Below);
        let above = self.counts.class(PaceClass::Above);
        above.exceeds(&below, deviations) || self.faster().exceeds(&below, deviations)
    }

    /// What was long ago counts for less.
    fn halve(&mut self) {
        for count in &mut self.counts.0 {
            count.packets /= 2.0;
            count.lost /= 2.0;
            count.events /= 2.0;
        }
    }

    /// Events of loss per packet that was not slower than the path is thought to carry, rather too few than too many: what has just
    /// been seen to be much may have been chance.
    pub(super) fn faster_events(&self) -> f64 {
        let faster = self.faster();
        (faster.events - DEVIATIONS * faster.events.sqrt()).max(0.0) / faster.packets.max(1.0)
    }

    /// Events of loss per packet of all classes.
    pub(super) fn all_events(&self) -> f64 {
        let all = self.all();
        all.events / all.packets.max(1.0)
    }

    /// The share of packets that was lost, and of how many.
    pub(super) fn loss(&self) -> (f64, f64) {
        let all = self.all();
        (all.lost / all.packets.max(1.0), all.packets.max(1.0))
    }

    /// Whether there were enough losses to tell how frequent they are.
    pub(super) fn has_events(&self, events_min: f64) -> bool {
        self.all().events >= events_min
    }

    fn faster(&self) -> PaceCount {
        self.counts.class(PaceClass::At).plus(&self.counts.class(PaceClass::Above))
    }

    fn all(&self) -> PaceCount {
        self.faster().plus(&self.counts.class(PaceClass::Below))
    }
}

impl PaceCount {
    fn plus(&self, other: &Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            lost: self.lost + other.lost,
            events: self.events + other.events,
        }
    }

    /// Events fall on either class as often as it has packets, if they do so by chance: a binomial distribution.
    fn exceeds(&self, slower: &Self, deviations: f64) -> bool {
        let events = self.events + slower.events;
        let share = self.packets / (self.packets + slower.packets).max(1.0);
        let excess = self.events - share * events;
        excess > deviations * (events * share * (1.0 - share)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets, and in how many events some of them were lost, below, at and above the path's rate.
    fn response(counts: [(u32, u32); 3]) -> RateResponse {
        let mut report = PaceCounts::default();
        for (pace, (packets, events)) in
            [PaceClass::Below, PaceClass::At, PaceClass::Above].into_iter().zip(counts)
        {
            (0..packets - events).for_each(|_| report.on_ack(pace, false));
            (0..events).for_each(|_| report.on_lost(pace, true));
        }
        let mut response = RateResponse::default();
        response.on_report(&report);
        response
    }

    #[test]
    fn losses_that_come_with_the_rate_are_told_from_the_paths_own() {
        assert!(response([(3_000, 0), (20_000, 2), (5_000, 30)]).losses_rise(0.0), "up loses, down does not");
        assert!(response([(3_000, 3), (20_000, 300), (5_000, 80)]).losses_rise(0.0), "a policer");
        assert!(!response([(3_000, 30), (20_000, 200), (5_000, 50)]).losses_rise(0.0), "1 % at any rate");
        assert!(!response([(3_000, 0), (20_000, 9), (5_000, 3)]).losses_rise(0.0), "too few to tell");
    }

    #[test]
    fn what_is_lost_together_is_one_event_and_what_comes_late_is_none() {
        let mut report = PaceCounts::default();
        (0..500).for_each(|number| report.on_lost(PaceClass::Above, number == 0));
        assert_eq!(report.events(), 1.0, "an outage");
        report.on_ack(PaceClass::Above, true);
        assert_eq!(report.events(), 0.0);
    }
}
