//! The search for the highest rate without loss: bracketing, with confirmation.

#[cfg(test)]
mod tests;

use crate::proto::estimate::Estimate;
use crate::proto::judge::{SLOPE_MARGIN, Trial};
use crate::proto::report::LimitedBy;

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    /// A short train at this rate.
    Try(f64),
    /// A long train at this rate.
    Confirm(f64),
    /// Another quiet train, after which the last train is judged again: it may have shown the path's own loss, of which too little
    /// was known.
    Quiet,
    /// The search is over.
    Done,
}

/// What came of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    /// The knee, in bits of IP packets per second.
    pub(crate) rate: Estimate,
    /// What limits it.
    pub(crate) limit: LimitedBy,
    /// Whether a long train at the lower end of the interval passed.
    pub(crate) confirmed: bool,
}

/// A search that is under way. It knows no socket and no clock: it is told what was seen and says what to try.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    /// Rates that passed, and did not fail since.
    passes: Vec<f64>,
    fail: Option<(f64, LimitedBy)>,
    /// The rate at which trains arrived that the path did not keep up with.
    knee: Option<f64>,
    /// A rate whose train is repeated, since what it showed may be chance.
    doubt: Option<f64>,
    /// A train that is to be judged again after a quiet one.
    unsure: Option<(Step, Trial)>,
    /// Quiet trains so far.
    quiets: u32,
    floor: f64,
    ceiling: f64,
    first: f64,
    trials: u32,
    trials_max: u32,
    confirmed: bool,
    sender_limited: bool,
}

impl Search {
    /// A search between two rates that begins at a first guess.
    pub(crate) fn new(guess_bps: f64, floor_bps: f64, ceiling_bps: f64, trials_max: u32) -> Self {
        let ceiling = ceiling_bps.max(floor_bps);
        Self {
            passes: Vec::with_capacity(trials_max.min(64) as usize),
            fail: None,
            knee: None,
            doubt: None,
            unsure: None,
            quiets: 0,
            floor: floor_bps,
            ceiling,
            first: (guess_bps * 1.1).clamp(floor_bps, ceiling),
            trials: 0,
            trials_max,
            confirmed: false,
            sender_limited: false,
        }
    }

    /// What to do next.
    pub(crate) fn step(&self) -> Step {
        if self.unsure.is_some() {
            return Step::Quiet;
        }
        if self.trials >= self.trials_max || self.confirmed {
            return Step::Done;
        }
        if let Some(rate) = self.doubt {
            return Step::Try(rate);
        }
        match (self.pass(), self.fail) {
            (None, None) => Step::Try(self.first),
            (Some(pass), None) if pass >= self.ceiling * 0.98 => Step::Confirm(pass.min(self.ceiling)),
            (Some(pass), None) => Step::Try((pass * 1.5).min(self.ceiling)),
            (None, Some((fail, _))) if fail <= self.floor * 1.01 => Step::Done,
            (None, Some((fail, _))) => {
                let below = self.knee.map_or(fail * 0.7, |knee| (knee * 0.97).min(fail * 0.97));
                Step::Try(below.max(self.floor))
            }
            (Some(pass), Some((fail, _))) if fail <= pass * NARROW => Step::Confirm(pass),
            (Some(pass), Some((fail, _))) => {
                // Just beside the knee, on the side that is not settled; in the middle where the knee is not known.
                let beside = self.knee.into_iter().flat_map(|knee| [knee * 0.97, knee * 1.03]);
                let inside = |rate: &f64| *rate > pass * 1.01 && *rate < fail * 0.99;
                Step::Try(beside.into_iter().find(inside).unwrap_or((pass * fail).sqrt()))
            }
        }
    }

    /// Takes in what the train of the last [`step`](Self::step) showed; after [`Step::Quiet`], the train before it as it is judged
    /// now. `base_loss` is the share that is lost at any rate.
    pub(crate) fn record(&mut self, step: Step, trial: &Trial, base_loss: f64) {
        self.trials += u32::from(step != Step::Quiet);
        let step = self.unsure.take().map_or(step, |(step, _)| step);
        let (Step::Try(asked) | Step::Confirm(asked)) = step else { return };
        let rate = trial.sent_bps.min(asked);
        let is_short = trial.sent_bps < asked * 0.95;
        let is_slight = trial.delivered_bps > 0.9 * (1.0 - base_loss) * trial.sent_bps;
        if trial.failed == Some(LimitedBy::Policer) && is_slight && self.quiets < QUIETS_MAX {
            self.quiets += 1;
            self.unsure = Some((step, *trial));
            return;
        }
        // Three kinds of failure that may be due to a machine or a path that was busy for a moment.
        let by_loss_alone = trial.failed == Some(LimitedBy::Policer) && base_loss > 0.0 && is_slight;
        let below_the_knee = trial.failed.is_some() && self.knee.is_some_and(|knee| rate < knee * BELOW);
        if (is_short || by_loss_alone || below_the_knee) && self.doubt.is_none() {
            self.doubt = Some(asked);
            return;
        }
        if is_short && trial.failed.is_none() {
            self.sender_limited = true;
            self.ceiling = self.ceiling.min(trial.sent_bps.max(self.floor));
        }
        self.doubt = None;
        match trial.failed {
            None => {
                self.passes.push(rate);
                self.confirmed |= matches!(step, Step::Confirm(_));
                // A rate that failed by chance does not stand in the way of one that passed.
                self.fail = self.fail.filter(|&(fail, _)| fail > rate);
            }
            Some(limit) => {
                let knee = trial.delivered_bps / (1.0 - base_loss.clamp(0.0, 0.9));
                if knee > 0.0 && knee < rate * 1.1 {
                    self.knee = Some(knee.min(rate));
                }
                if self.fail.is_none_or(|(fail, _)| rate < fail) {
                    self.fail = Some((rate, limit));
                }
                // What passed in a short train did not in a long one; and what passed a policer far above its rate was let through by its
                // bucket.
                let bucket =
                    if limit == LimitedBy::Policer && knee > 0.0 { knee * BUCKET } else { f64::INFINITY };
                self.passes.retain(|&pass| pass < rate.min(bucket));
            }
        }
    }

    /// What is known now; `None` before the first train.
    pub(crate) fn found(&self) -> Option<Found> {
        // A train that was to be judged again counts as it was judged, where no time is left for that.
        let unsure = self.unsure.and_then(|(_, trial)| Some((trial.sent_bps, trial.failed?)));
        let fail = self.fail.into_iter().chain(unsure).min_by(|(a, _), (b, _)| a.total_cmp(b));
        let limit = match fail {
            Some((_, limit)) => limit,
            None if self.sender_limited => LimitedBy::Sender,
            None if self.pass().is_some_and(|pass| pass >= self.ceiling * 0.95) => LimitedBy::Allowed,
            None => LimitedBy::Unfinished,
        };
        // Rates are judged with a margin: the knee may lie beyond either by as much.
        let low = self.pass().map(|pass| pass * (1.0 - 2.0 * SLOPE_MARGIN));
        let high = fail.map(|(fail, _)| fail * (1.0 + SLOPE_MARGIN));
        let rate = match (low, high) {
            (None, None) => return None,
            (Some(low), None) => {
                let reached = self.pass().unwrap_or(low);
                let high = if limit == LimitedBy::Unfinished { self.ceiling } else { reached };
                Estimate::new(reached, low, high)
            }
            (low, Some(high)) => {
                let low = low.unwrap_or(0.0);
                let middle = if low > 0.0 { (low * high).sqrt() } else { high * 0.5 };
                Estimate::new(self.knee.unwrap_or(middle).clamp(low, high), low, high)
            }
        };
        Some(Found { rate, limit, confirmed: self.confirmed })
    }

    fn pass(&self) -> Option<f64> {
        self.passes.iter().copied().reduce(f64::max)
    }
}

/// A rate this far below what once arrived should have passed.
const BELOW: f64 = 0.985;
/// A rate this far above what a policer lets through did not pass by itself.
const BUCKET: f64 = 1.25;
/// Quiet trains beyond the first.
const QUIETS_MAX: u32 = 2;
/// A failed rate within this factor of a passed one settles the bracket.
const NARROW: f64 = 1.07;
