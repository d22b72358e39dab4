//! Searches for triggers: first in the history, then in every new block.

use std::collections::VecDeque;

use grebe_scope::{Condition, Error as ScopeError, Passage, Polarity, Slope, Trigger, TriggerFilter};

use super::levels::{self, Levels, Seen, Swing};
use super::{
    Found, TriggerCoupling, TriggerKind, TriggerMode, TriggerRate, TriggerSettings, TriggerState, TriggerView,
};
use crate::data::lane::LaneId;
use crate::data::samples::Kind;
use crate::data::tracks::Track;
use crate::data::viewport::DIVISIONS;

/// Searches one lane, and chooses the visible window.
#[derive(Debug)]
pub(crate) struct TriggerSearch<K: Kind> {
    settings: TriggerSettings,
    levels: Levels,
    /// The corner of the filter, in cycles per sample.
    corner: Option<f64>,
    /// Part of the noise that passes the filter.
    noise_gain: f64,
    swing: Swing<K>,
    condition: Condition<K>,
    trigger: Trigger<K>,
    /// Recent triggers, visible or not.
    recent: VecDeque<Found>,
    /// Whether samples are missing since the last trigger.
    is_behind_gap: bool,
    /// Samples from a trigger to the right edge.
    post_samples: f64,
    /// Samples per second; 1 where unknown.
    rate: f64,
    /// A trigger whose window is not filled yet.
    filling: Option<f64>,
    /// The newest trigger whose window is filled.
    complete: Option<f64>,
    /// Triggers of earlier searches for the same event.
    found_before: u64,
    /// Index of the first searched sample, and of the next.
    first_index: u64,
    next_index: u64,
    /// The right edge until the first trigger.
    asked_index: u64,
    is_stopped: bool,
}

impl<K: Kind> TriggerSearch<K> {
    /// Searches the newest part of the lane's history, or all of it after the end of the stream. Later samples come through
    /// [`append`](TriggerSearch::append).
    ///
    /// # Errors
    /// None in practice: levels are apart and the corner is within the band by construction.
    pub(crate) fn new(
        settings: TriggerSettings,
        span_samples: f64,
        rate: f64,
        track: Track<'_, K>,
        is_whole: bool,
    ) -> Result<TriggerSearch<K>, ScopeError> {
        let pyramid = track.pyramid;
        let look_back = look_back(span_samples, rate);
        let corner = corner(&settings, span_samples, rate);
        let filter = filter(&settings, corner)?;
        let noise_gain = filter.as_ref().map_or(1.0, TriggerFilter::noise_gain);
        let seen = match filter {
            None => levels::seen(track, look_back),
            Some(filter) => levels::passed(track, look_back.min(LOOK_BACK_SAMPLES), filter),
        };
        let levels =
            Levels::of(&settings, &Seen { extremes: seen, noise: levels::noise(track) * noise_gain });
        let condition = condition(&settings, levels, span_samples, rate);
        let swing = Swing::new(seen, pyramid.next_index());
        let mut run = TriggerSearch {
            settings,
            levels,
            trigger: build(&settings, &condition, corner, rate)?,
            condition,
            corner,
            noise_gain,
            swing,
            recent: VecDeque::with_capacity(RECENT_MAX),
            is_behind_gap: true,
            post_samples: (1.0 - settings.position) * span_samples,
            rate,
            filling: None,
            complete: None,
            first_index: pyramid.next_index(),
            asked_index: pyramid.next_index(),
            found_before: 0,
            next_index: 0,
            is_stopped: false,
        };
        // A single shot is the next trigger; the other modes may show an existing one.
        if is_whole || settings.mode != TriggerMode::Single {
            let end = pyramid.next_index();
            let look_back = look_back.clamp(LOOK_BACK_SAMPLES / 4, LOOK_BACK_SAMPLES);
            let start = if is_whole { 0 } else { end.saturating_sub(look_back) };
            track.samples(start..end, |first, samples| {
                run.first_index = run.first_index.min(first);
                run.scan(first, samples);
            });
        }
        run.next_index = pyramid.next_index();
        Ok(run)
    }

    /// Takes over settings that need no new search; returns whether it could.
    pub(crate) fn adopt(
        &mut self,
        settings: TriggerSettings,
        span_samples: f64,
        track: Track<'_, K>,
    ) -> bool {
        if !self.settings.is_same_trigger(&settings) {
            return false;
        }
        // A division is another time at another span.
        let is_other = || condition(&settings, self.levels, span_samples, self.rate) != self.condition;
        if settings.kind.is_timed() && is_other() {
            return false;
        }
        if corner(&settings, span_samples, self.rate) != self.corner {
            return false;
        }
        self.settings = settings;
        self.post_samples = (1.0 - settings.position) * span_samples;
        if self.is_stopped || (settings.mode == TriggerMode::Single && self.filling.is_some()) {
            return true;
        }
        // If the middle of the signal moved, or its noise grew, the levels are wrong.
        let look_back = look_back(span_samples, self.rate);
        let seen = match self.corner {
            None => levels::seen(track, look_back),
            Some(_) => {
                let passed = self.trigger.take_passed_extremes();
                self.swing.look(passed, track.pyramid.next_index(), look_back)
            }
        };
        let noise = levels::noise(track) * self.noise_gain;
        self.levels.is_near(&Levels::of(&settings, &Seen { extremes: seen, noise }))
    }

    /// Keeps the results of an earlier search for the same trigger, in samples that this one did not search: only its
    /// levels followed the signal or the span.
    pub(crate) fn carry_on(&mut self, before: &TriggerSearch<K>) {
        if !self.settings.is_same_trigger(&before.settings) {
            return;
        }
        self.asked_index = before.asked_index;
        let looked_at = |found: &&Found| found.at >= self.first_index as f64;
        let again = before.recent.iter().filter(looked_at).count() as u64;
        self.found_before = before.found().saturating_sub(again);
        let older: Vec<Found> = before.recent.iter().filter(|found| !looked_at(found)).copied().collect();
        let room = RECENT_MAX - self.recent.len();
        older.into_iter().rev().take(room).for_each(|found| self.recent.push_front(found));
        self.first_index = self.first_index.min(before.first_index);
        if before.is_stopped {
            (self.complete, self.filling, self.is_stopped) = (before.complete, None, true);
        }
        self.complete = self.complete.or(before.complete);
    }

    /// Triggers outside hold-off.
    fn found(&self) -> u64 {
        self.found_before + self.trigger.found() - self.trigger.held_off()
    }

    /// A new trigger for the same condition.
    ///
    /// # Errors
    /// None in practice, as for [`new`](TriggerSearch::new).
    pub(crate) fn another(&self) -> Result<Trigger<K>, ScopeError> {
        build(&self.settings, &self.condition, self.corner, self.rate)
    }

    /// The lane that triggers.
    pub(crate) fn lane(&self) -> LaneId {
        self.settings.lane
    }

    /// Absolute sample indices of recent triggers, the newest last, and of the visible one even if it is older.
    pub(crate) fn recent(&self) -> Vec<f64> {
        let newest = self.listed().map(|found| found.at);
        let shown = self.complete.filter(|complete| newest.clone().all(|at| at > *complete));
        shown.into_iter().chain(newest).collect()
    }

    /// The triggers around a place, up to the limit of the list, the newest last.
    pub(crate) fn recent_around(&self, place: f64) -> Vec<f64> {
        let before = self.recent.partition_point(|found| found.at < place);
        let last_first = self.recent.len().saturating_sub(LISTED_MAX);
        let first = before.saturating_sub(LISTED_MAX / 2).min(last_first);
        self.recent.iter().skip(first).take(LISTED_MAX).map(|found| found.at).collect()
    }

    fn listed(&self) -> impl Iterator<Item = Found> + Clone + '_ {
        self.recent.iter().skip(self.recent.len().saturating_sub(LISTED_MAX)).copied()
    }

    /// The triggers within a range.
    pub(crate) fn recent_in(&self, range: std::ops::Range<f64>) -> Vec<f64> {
        self.recent.iter().map(|found| found.at).filter(|at| range.contains(at)).collect()
    }

    /// The right edge to show (`None`: the newest samples), and the trigger's state.
    pub(crate) fn window(&mut self, span_samples: f64, oldest_index: u64) -> (Option<f64>, TriggerView) {
        self.settle();
        let held = self.listed().filter(|found| found.at >= oldest_index as f64);
        let rate = TriggerRate::of(held, self.rate);
        let wait = (self.rate * AUTO_WAIT_S).max(span_samples * 2.0);
        let is_old = self.complete.is_none_or(|at| self.next_index as f64 - at > wait);
        let (shown, state) = match self.settings.mode {
            TriggerMode::Roll => (None, TriggerState::Free),
            TriggerMode::Auto if is_old => (None, TriggerState::Free),
            TriggerMode::Single if self.is_stopped => (self.complete, TriggerState::Stopped),
            _ => match self.complete {
                Some(at) => (Some(at), TriggerState::Triggered),
                None => (None, TriggerState::Ready),
            },
        };
        // Until the first trigger, the picture stands still.
        let waits = matches!(self.settings.mode, TriggerMode::Normal | TriggerMode::Single);
        let edge = shown.map(|at| at + self.post_samples).or(waits.then_some(self.asked_index as f64));
        let view = TriggerView {
            settings: self.settings,
            level: self.levels.low,
            upper: self.levels.high,
            hysteresis: self.levels.hysteresis,
            state,
            at: shown,
            found: self.found(),
            searched_samples: self.next_index - self.first_index.min(self.next_index),
            rate,
        };
        (edge, view)
    }

    /// Takes the next samples of the lane.
    pub(crate) fn scan(&mut self, first_sample_index: u64, samples: &[K]) {
        self.is_behind_gap |= self.next_index != first_sample_index;
        let TriggerSearch { trigger, filling, complete, post_samples, is_stopped, settings, recent, .. } =
            self;
        let is_behind_gap = &mut self.is_behind_gap;
        trigger.scan(first_sample_index, samples, |event| {
            let at = event.position();
            if recent.len() == RECENT_MAX {
                recent.pop_front();
            }
            recent.push_back(Found { at, is_behind_gap: std::mem::take(is_behind_gap) });
            if let Some(earlier) = *filling
                && at >= earlier + *post_samples
            {
                take(complete, filling, is_stopped, settings.mode);
            }
            if filling.is_none() && !*is_stopped {
                *filling = Some(at);
            }
        });
        self.next_index = first_sample_index + samples.len() as u64;
        self.settle();
    }

    /// Shows the trigger whose window is now filled.
    fn settle(&mut self) {
        if self.filling.is_some_and(|at| self.next_index as f64 >= at + self.post_samples) {
            take(&mut self.complete, &mut self.filling, &mut self.is_stopped, self.settings.mode);
        }
    }
}

fn take(complete: &mut Option<f64>, filling: &mut Option<f64>, is_stopped: &mut bool, mode: TriggerMode) {
    if !*is_stopped {
        *complete = filling.take();
        *is_stopped = mode == TriggerMode::Single;
    }
}

/// Samples to search for the signal's extremes: more than a screen, which may show less than a period.
fn look_back(span_samples: f64, rate: f64) -> u64 {
    (span_samples * LOOK_BACK_SPANS).max(rate * LOOK_BACK_S).max(1.0) as u64
}

/// The corner of the filter in cycles per sample.
fn corner(settings: &TriggerSettings, span_samples: f64, rate: f64) -> Option<f64> {
    let corner_hz = settings.coupling.corner_hz(span_samples / rate)?;
    Some((corner_hz / rate).clamp(CORNER_MIN, CORNER_MAX))
}

fn build<K: Kind>(
    settings: &TriggerSettings,
    condition: &Condition<K>,
    corner: Option<f64>,
    rate: f64,
) -> Result<Trigger<K>, ScopeError> {
    let trigger = Trigger::new(condition.clone(), (settings.holdoff_s * rate).round() as u64)?;
    Ok(match filter(settings, corner)? {
        None => trigger,
        Some(filter) => trigger.with_filter(filter),
    })
}

fn filter<K: Kind>(
    settings: &TriggerSettings,
    corner: Option<f64>,
) -> Result<Option<TriggerFilter<K>>, ScopeError> {
    let Some(corner) = corner else { return Ok(None) };
    Ok(Some(match settings.coupling {
        TriggerCoupling::HfReject { .. } => TriggerFilter::low_pass(corner)?,
        _ => TriggerFilter::high_pass(corner)?,
    }))
}

/// The condition of the trigger.
fn condition<K: Kind>(
    settings: &TriggerSettings,
    levels: Levels,
    span_samples: f64,
    rate: f64,
) -> Condition<K> {
    let (low, high) = (K::from_f64(levels.low), K::from_f64(levels.high));
    let hysteresis = K::hysteresis(levels.hysteresis);
    let polarity = match settings.slope {
        Slope::Falling => Polarity::Negative,
        _ => Polarity::Positive,
    };
    let division = ((span_samples / DIVISIONS) as u64).max(1);
    let samples = |time: f64| ((time * rate).round() as u64).max(1);
    match settings.kind {
        TriggerKind::Edge => Condition::Edge { slope: settings.slope, level: low, hysteresis },
        TriggerKind::Pulse => {
            let min = settings.pulse_min_s.map_or(1, samples);
            let open = if settings.pulse_min_s.is_some() { u64::MAX } else { division };
            let max = settings.pulse_max_s.map_or(open, samples).max(min);
            Condition::PulseWidth { polarity, level: low, hysteresis, samples: min..=max }
        }
        TriggerKind::Runt => Condition::Runt { polarity, low, high },
        TriggerKind::Window => {
            let passage = if polarity == Polarity::Positive { Passage::Leaves } else { Passage::Enters };
            Condition::Window { passage, low, high, hysteresis }
        }
        TriggerKind::Dropout => Condition::Dropout {
            level: low,
            hysteresis,
            samples: settings.dropout_s.map_or(division, samples),
        },
    }
}

/// Spans to look back for extremes and triggers.
const LOOK_BACK_SPANS: f64 = 4.0;
const LOOK_BACK_S: f64 = 0.25;
const LOOK_BACK_SAMPLES: u64 = 1 << 22;
/// Seconds of stream without a trigger until an automatic picture runs free; at least two spans.
const AUTO_WAIT_S: f64 = 0.2;
/// Maximum remembered and listed triggers.
const RECENT_MAX: usize = 4096;
const LISTED_MAX: usize = 64;
/// Limits of the filter's corner, in cycles per sample.
const CORNER_MIN: f64 = 1e-12;
const CORNER_MAX: f64 = 0.45;
