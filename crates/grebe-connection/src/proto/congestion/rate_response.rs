//! Whether losses depend on this flow's rate: a short queue or a policer loses more at a higher rate, a lossy
//! path does not.
//!
//! Each packet has a class by its pace, and losses count by class. Losses in a row count as one event. Chance
//! would spread such events evenly over all packets, however long the path's runs of losses are.

use super::constants::*;

/// Pace of a packet relative to the assumed capacity of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum PaceClass {
    Below,
    At,
    Above,
    /// The capacity is unknown, or other flows fill the path.
    #[default]
    Unknown,
}

/// Number of decided packets, and of loss events among them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct PaceCount {
    packets: f64,
    lost: f64,
    events: f64,
}

/// Counts by class.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct PaceCounts([PaceCount; 4]);

impl PaceCounts {
    /// Counts an arrived packet. `was_lost`: it had been declared lost by mistake.
    pub(crate) fn on_ack(&mut self, pace: PaceClass, was_lost: bool) {
        let count = &mut self.0[pace as usize];
        if was_lost {
            count.lost -= 1.0;
            count.events -= 1.0;
        } else {
            count.packets += 1.0;
        }
    }

    /// Counts a lost packet. `is_event`: the packet sent before it was not lost.
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

/// Recent losses by pace.
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

    /// Whether faster packets are lost more often than slower ones, beyond chance.
    pub(super) fn losses_rise(&self) -> bool {
        let below = self.counts.class(PaceClass::Below);
        let above = self.counts.class(PaceClass::Above);
        above.exceeds(&below) || self.faster().exceeds(&below)
    }

    /// Halves the counts, so that old events count for less.
    fn halve(&mut self) {
        for count in &mut self.counts.0 {
            count.packets /= 2.0;
            count.lost /= 2.0;
            count.events /= 2.0;
        }
    }

    /// Loss events per packet that was at least as fast as the assumed capacity. Estimated low, because a
    /// recent excess may have been chance.
    pub(super) fn faster_events(&self) -> f64 {
        let faster = self.faster();
        (faster.events - DEVIATIONS * faster.events.sqrt()).max(0.0) / faster.packets.max(1.0)
    }

    /// Loss events per packet of all classes.
    pub(super) fn all_events(&self) -> f64 {
        let all = self.all();
        all.events / all.packets.max(1.0)
    }

    /// Share of lost packets, and the number of packets.
    pub(super) fn loss(&self) -> (f64, f64) {
        let all = self.all();
        (all.lost / all.packets.max(1.0), all.packets.max(1.0))
    }

    /// Whether there were enough loss events to know their frequency.
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

    /// By chance, events fall on each class in proportion to its packets: a binomial distribution.
    ///
    /// At heavy loss, independent losses follow one another. Events then fall while the loss rises, so lost
    /// packets count instead, with the scatter of their mean run.
    fn exceeds(&self, slower: &Self) -> bool {
        let all = self.plus(slower);
        let share = self.packets / all.packets.max(1.0);
        let loss = all.lost / all.packets.max(1.0);
        let run = all.lost / all.events.max(1.0);
        let (faster, slower, scatter) = if loss > UNTESTED_BASE_LOSS_MAX {
            (self.lost, slower.lost, all.lost * run * (1.0 - loss).powi(2))
        } else {
            (self.events, slower.events, all.events)
        };
        let excess = (1.0 - share) * faster - share * slower;
        excess > DEVIATIONS * (scatter * share * (1.0 - share)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets and loss events below, at and above the path's rate.
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
        assert!(response([(3_000, 0), (20_000, 2), (5_000, 30)]).losses_rise(), "up loses, down does not");
        assert!(response([(3_000, 3), (20_000, 300), (5_000, 80)]).losses_rise(), "a policer");
        assert!(!response([(3_000, 30), (20_000, 200), (5_000, 50)]).losses_rise(), "1 % at any rate");
        assert!(!response([(3_000, 0), (20_000, 9), (5_000, 3)]).losses_rise(), "too few to tell");
    }

    /// Independent losses of this share, spread evenly, at the rates below and above.
    fn heavy(losses: [f64; 2], packets: u32) -> RateResponse {
        let mut report = PaceCounts::default();
        for (pace, loss) in [PaceClass::Below, PaceClass::Above].into_iter().zip(losses) {
            let is_lost = |number: u32| {
                let random = number.wrapping_mul(0x9e37_79b9).wrapping_add(7).rotate_left(11);
                f64::from(random.wrapping_mul(0x85eb_ca6b) >> 8) < loss * f64::from(1 << 24)
            };
            (1..=packets).for_each(|number| match is_lost(number) {
                true => report.on_lost(pace, !is_lost(number - 1)),
                false => report.on_ack(pace, false),
            });
        }
        let mut response = RateResponse::default();
        response.on_report(&report);
        response
    }

    #[test]
    fn an_overload_that_loses_most_packets_is_told_from_a_path_that_does() {
        assert!(heavy([0.8, 0.88], 1_500).losses_rise(), "fewer runs, but more losses");
        assert!(!heavy([0.85, 0.85], 1_500).losses_rise());
        assert!(!heavy([0.4, 0.4], 1_500).losses_rise());
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
