//! Search for the highest rate without loss: bracketing, with confirmation.

#[cfg(test)]
mod tests;

use crate::proto::estimate::Estimate;
use crate::proto::judge::{SLOPE_MARGIN, Trial};
use crate::proto::report::LimitedBy;

/// Next step of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    /// A short train at this rate.
    Try(f64),
    /// A long train at this rate.
    Confirm(f64),
    /// Another quiet train, after which the last train is assessed again. It may have shown the path's own
    /// loss, of which too little was known.
    Quiet,
    /// The search is over.
    Done,
}

/// Result of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    /// Knee, in bits of IP packets per second.
    pub(crate) rate: Estimate,
    /// Bottleneck.
    pub(crate) limit: LimitedBy,
    /// Whether a long train at the lower end of the interval passed.
    pub(crate) confirmed: bool,
}

/// Search in progress, without a socket or clock. It takes results and returns the next step.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    /// Rates that passed and have not failed since.
    passes: Vec<f64>,
    fail: Option<(f64, LimitedBy)>,
    /// Rate of arrival of trains that the path did not keep up with.
    knee: Option<f64>,
    /// Rate to be repeated, because its result may be chance.
    doubt: Option<f64>,
    /// Train to be assessed again after a quiet one.
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
    /// Starts a search between two rates at an initial guess.
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

    /// Returns the next step.
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
                // Just beside the knee, on the unsettled side; in the middle if the knee is unknown.
                let beside = self.knee.into_iter().flat_map(|knee| [knee * 0.97, knee * 1.03]);
                let inside = |rate: &f64| *rate > pass * 1.01 && *rate < fail * 0.99;
                Step::Try(beside.into_iter().find(inside).unwrap_or((pass * fail).sqrt()))
            }
        }
    }

    /// Takes the result of the last [`step`](Self::step). After [`Step::Quiet`], takes the new assessment of
    /// the train before it. `base_loss` is the share lost at any rate.
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
        // Three kinds of failure that a briefly busy machine or path can cause.
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
                // A rate that failed by chance must not block one that passed.
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
                // A long train failed at a rate that a short one passed. A rate far above a policer's passed
                // only because of its bucket.
                let bucket =
                    if limit == LimitedBy::Policer && knee > 0.0 { knee * BUCKET } else { f64::INFINITY };
                self.passes.retain(|&pass| pass < rate.min(bucket));
            }
        }
    }

    /// Present result; `None` before the first train.
    pub(crate) fn found(&self) -> Option<Found> {
        // Without time for another assessment, the last one counts.
        let unsure = self.unsure.and_then(|(_, trial)| Some((trial.sent_bps, trial.failed?)));
        let fail = self.fail.into_iter().chain(unsure).min_by(|(a, _), (b, _)| a.total_cmp(b));
        let limit = match fail {
            Some((_, limit)) => limit,
            None if self.sender_limited => LimitedBy::Sender,
            None if self.pass().is_some_and(|pass| pass >= self.ceiling * 0.95) => LimitedBy::Allowed,
            None => LimitedBy::Unfinished,
        };
        // Assessments have a margin, so the knee may lie beyond either bound by as much.
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

/// A rate this far below an earlier arrival rate should have passed.
const BELOW: f64 = 0.985;
/// A rate this far above a policer's did not pass by itself.
const BUCKET: f64 = 1.25;
/// Maximum quiet trains beyond the first.
const QUIETS_MAX: u32 = 2;
/// Ratio of failed to passed rate that settles the bracket.
const NARROW: f64 = 1.07;
