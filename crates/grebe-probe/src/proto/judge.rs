//! Assessment of whether a path kept up with a train.
//!
//! A rate *passes* if delays do not rise during the train, and loss stays within the path's base loss. Rising
//! delays reveal a full link long before a deep queue overflows. Rising loss reveals a policer or a shallow
//! queue, where delays say nothing.

use crate::proto::estimate::{Estimate, share};
use crate::proto::report::LimitedBy;
use crate::proto::tracker::Summary;
use crate::proto::train::{Train, packet_bits};

/// Result of a train at some rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Trial {
    /// Rate by the sender's stamps, in bits of IP packets per second.
    pub(crate) sent_bps: f64,
    /// Rate of arrival.
    pub(crate) delivered_bps: f64,
    /// `None`: it passed.
    pub(crate) failed: Option<LimitedBy>,
}

/// Loss of a path at any rate.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct BaseLoss {
    lost: f64,
    sent: f64,
    squares: f64,
    /// Variation of the shortest delays on an idle path.
    delay_ns: Option<i64>,
}

impl BaseLoss {
    /// Adds a train that the path kept up with.
    pub(crate) fn add(&mut self, train: &Train, summary: &Summary) {
        self.lost += f64::from(summary.lost_on_the_way());
        self.sent += f64::from(train.count);
        self.squares += summary.run_squares as f64;
        let delay = summary.late_low_ns;
        self.delay_ns = Some(self.delay_ns.map_or(delay, |least| least.min(delay)));
    }

    /// Adds a train that passed, unless it lost more than the base: just above the knee, loss is slight.
    pub(crate) fn add_passed(&mut self, train: &Train, summary: &Summary) {
        if summary.lost_share(train, 1.0).low <= self.estimate().high {
            self.add(train, summary);
        }
    }

    /// Share of lost datagrams.
    pub(crate) fn estimate(&self) -> Estimate {
        share(self.lost, self.sent, self.design_effect())
    }

    /// Datagrams that a train needs for a comparison of its loss with this one.
    pub(crate) fn trial_count(&self) -> f64 {
        TRIAL_COUNT.max(2e4 * self.estimate().value * self.design_effect())
    }

    fn design_effect(&self) -> f64 {
        if self.lost > 0.0 { (self.squares / self.lost).max(1.0) } else { 1.0 }
    }
}

/// Assesses a train.
pub(crate) fn judge(train: &Train, summary: &Summary, base: &BaseLoss) -> Trial {
    let bits = packet_bits(train.size);
    let interval_ns =
        if summary.sent_interval_ns > 0.0 { summary.sent_interval_ns } else { train.interval_ns as f64 };
    let sent_bps = bits * 1e9 / interval_ns.max(1.0);
    let base_loss = base.estimate();
    let lost = f64::from(summary.lost) / f64::from(train.count);
    let error = {
        let of = |p: f64, n: f64| (p * (1.0 - p)).max(1e-4) / n.max(1.0);
        let here = of(lost, f64::from(train.count) / summary.design_effect().min(64.0));
        (here + of(base_loss.value, base.sent / base.design_effect())).sqrt()
    };
    // Without a base, only a very high loss of the first train is conclusive.
    let excess = lost - base_loss.value;
    let margin = if base.lost == 0.0 { LOSS_MARGIN_CLEAN } else { LOSS_MARGIN };
    let is_lossy = if base.sent > 0.0 { excess > (3.0 * error).max(margin) } else { lost > 0.3 };
    let span_ns = 0.75 * interval_ns * f64::from(train.count);
    let rise = summary.rise_ns as f64;
    let is_filling =
        rise > RISE_MIN_NS && rise > 4.0 * summary.rise_error_ns as f64 && rise > SLOPE_MARGIN * span_ns;
    // A queue that fills early stops growing, but it never runs empty either.
    let is_standing = base.delay_ns.is_some_and(|quiet| summary.late_low_ns - quiet > STANDING_NS);
    let failed = if summary.kernel_drops.is_some_and(|drops| drops > 0) && is_lossy {
        Some(LimitedBy::ReceiveBuffer)
    } else if is_filling || is_standing {
        Some(LimitedBy::Link)
    } else if is_lossy {
        Some(LimitedBy::Policer)
    } else {
        None
    };
    Trial { sent_bps, delivered_bps: summary.delivered_pps * bits, failed }
}

/// Loss above the base that counts as risen.
const LOSS_MARGIN: f64 = 0.005;
/// The same on a path without loss so far.
const LOSS_MARGIN_CLEAN: f64 = 0.002;
/// Growth of the delay, in seconds per second, that shows a filling queue.
pub(crate) const SLOPE_MARGIN: f64 = 0.015;
/// A briefly busy machine can cause growth below this.
const RISE_MIN_NS: f64 = 700_000.0;
/// A queue whose delay never falls below this is standing: the path does not keep up.
const STANDING_NS: i64 = 700_000;
/// Minimum datagrams of a trial to estimate loss.
const TRIAL_COUNT: f64 = 400.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::tests::SimulatedLink;

    #[test]
    fn loss_intervals_hold_the_truth_nineteen_times_in_twenty() {
        for run in [1, 4] {
            let hits = (0..400_u64)
                .filter(|seed| {
                    let mut link = SimulatedLink::new(1e9, 10, seed * 7_919 + 1);
                    (link.loss, link.run) = (0.02, run);
                    let train = Train::at_rate(1, 1_472, 50e6, 1.0);
                    let mut base = BaseLoss::default();
                    base.add(&train, &link.carry(train));
                    base.estimate().contains(0.02)
                })
                .count();
            assert!((360..=400).contains(&hits), "{hits} of 400 with runs of {run}");
        }
    }
}
