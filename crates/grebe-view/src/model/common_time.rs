//! Several scopes on one time axis: all show the same moment.
//!
//! The scope whose time base or trigger a person set last leads. If it shows the newest samples, the common moment is
//! the newest that all scopes have. Otherwise it is the leader's: a trigger, or a held picture. The others follow by
//! the clock of a host that both know, or by UTC. A picture appears when all scopes have theirs of the same moment.

use std::time::{Duration, Instant};

use grebe_flow::monotonic_ns;

use super::controls::CommonEdge;
use super::standing::Place;
use super::view_model::ViewModel;
use crate::data::picture::Picture;
use crate::data::time_line::{TimeLine, common_lines};
use crate::data::trigger::{TriggerMode, TriggerSettings};
use crate::data::viewport::Window;

/// Keeps the scopes of one front end in step, in the given order.
#[derive(Debug, Default)]
pub(crate) struct CommonTime {
    leader: usize,
    /// The time settings of each, as of the last call.
    seen: Vec<TimeSetting>,
    /// Since when pictures of the same moment are awaited.
    since: Option<Instant>,
}

/// Settings whose change makes a scope the leader.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TimeSetting {
    times_set: u64,
    span: Option<f64>,
    trigger: TriggerSettings,
}

impl CommonTime {
    /// Takes new pictures, shows those of one moment, and sets the next request of each model. Returns whether
    /// anything visible changed.
    pub(crate) fn refresh(&mut self, models: &mut [&mut ViewModel]) -> bool {
        if models.len() < 2 {
            return each(models, |model| model.refresh());
        }
        self.find_leader(models);
        let shows_own = !models[self.leader].shows_newest();
        for (number, model) in models.iter_mut().enumerate() {
            // The others take over a change only after they have it.
            if !(shows_own && number == self.leader && model.seen.next.is_some()) {
                model.take_next();
            }
        }
        let lines = self.lines(models);
        let mut is_changed = self.stand(models, &lines);
        is_changed |= match shows_own || lines.iter().all(Option::is_none) {
            true => self.follow(models, &lines),
            false => self.roll(models, &lines),
        };
        self.seen = models.iter().map(|model| TimeSetting::of(model)).collect();
        models.iter_mut().fold(is_changed, |is_changed, model| model.refresh_words() || is_changed)
    }

    /// Keeps all of them at the visible moment, for pictures to be saved.
    pub(crate) fn stay(&mut self, models: &mut [&mut ViewModel]) {
        if models.len() < 2 {
            return;
        }
        for model in models.iter_mut() {
            model.show_next();
        }
        let lines = self.lines(models);
        let leader = &mut *models[self.leader];
        let is_rolling = leader.shows_newest();
        let (picture, time) = (&leader.seen.picture, &leader.controls.time);
        let reference = (!is_rolling).then(|| time.reference(picture));
        let edge = CommonEdge { at: picture.right_index(), reference };
        if !time.is_held() {
            leader.controls.time.set_common(Some(edge));
        }
        self.place(models, &lines, edge);
    }

    fn find_leader(&mut self, models: &[&mut ViewModel]) {
        let is_set = |(number, model): &(usize, &&mut ViewModel)| {
            self.seen.get(*number).is_some_and(|seen| *seen != TimeSetting::of(model))
        };
        let set = models.iter().enumerate().find(is_set).map(|(number, _)| number);
        self.leader = set.unwrap_or(self.leader).min(models.len() - 1);
    }

    /// Time lines of the leader and of each other scope, if both know a common time base and have samples of the same time.
    fn lines(&self, models: &[&mut ViewModel]) -> Vec<Option<[TimeLine; 2]>> {
        let leader = models[self.leader].newest();
        let of = |(number, model): (usize, &&mut ViewModel)| {
            let own = model.newest();
            let lines = common_lines(leader, own).filter(|_| number != self.leader)?;
            let held = |picture: &Picture, line: &TimeLine| {
                [picture.oldest_index, picture.next_index].map(|index| line.ns_at(index as f64))
            };
            let ([first, last], [own_first, own_last]) = (held(leader, &lines[0]), held(own, &lines[1]));
            let meet = first.max(own_first).saturating_sub(last.min(own_last)) <= APART_NS;
            meet.then_some(lines)
        };
        models.iter().enumerate().map(of).collect()
    }

    /// Notes the standing of each. Scopes without a common time show their own range. Returns whether any of these changed.
    fn stand(&self, models: &mut [&mut ViewModel], lines: &[Option<[TimeLine; 2]>]) -> bool {
        let mut is_changed = false;
        for (number, (model, lines)) in models.iter_mut().zip(lines).enumerate() {
            model.standing.place = match (number == self.leader, lines) {
                (true, _) => Place::Leads,
                (false, Some(_)) => Place::Follows,
                (false, None) => Place::Apart,
            };
            if model.standing.place == Place::Apart {
                model.controls.time.set_common(None);
                // Unknown before the first picture.
                if model.seen.picture.stream.is_none() {
                    model.standing.place = Place::Alone;
                }
                is_changed |= model.show_next();
            }
        }
        is_changed
    }

    /// Lets all show the leader's range.
    fn follow(&mut self, models: &mut [&mut ViewModel], lines: &[Option<[TimeLine; 2]>]) -> bool {
        let leader = &mut *models[self.leader];
        leader.controls.time.set_common(None);
        let edge = CommonEdge {
            at: leader.newest().right_index(),
            reference: Some(leader.controls.time.reference(leader.newest())),
        };
        self.place(models, lines, edge);
        let mut is_answered = true;
        for (model, _) in followers(models, lines) {
            let has_come = model.newest().next_index as f64 + 1.0 >= model.edge_asked();
            let is_late = !has_come && model.is_live();
            model.standing.wants_news |= is_late && model.has_answered();
            is_answered &= model.has_answered() && !is_late;
        }
        (is_answered || self.is_out_of_patience()) && self.show_all(models)
    }

    /// Lets all show the newest moment of which each live scope has samples.
    fn roll(&mut self, models: &mut [&mut ViewModel], lines: &[Option<[TimeLine; 2]>]) -> bool {
        let is_answered = models[self.leader].has_answered()
            && followers(models, lines).all(|(model, _)| model.has_answered());
        if !is_answered && !self.is_out_of_patience() {
            return false;
        }
        let is_changed = self.show_all(models);
        let newest = models[self.leader].seen.picture.next_index as f64;
        let late_samples = LATE_S * models[self.leader].seen.picture.rate_or_one();
        let ends = followers(models, lines).filter(|(model, _)| model.is_live());
        let ends =
            ends.map(|(model, [line, own])| line.index_at(own.ns_at(model.seen.picture.next_index as f64)));
        let at = ends.filter(|end| *end > newest - late_samples).fold(newest, f64::min);
        let edge = CommonEdge { at, reference: None };
        models[self.leader].controls.time.set_common(Some(edge));
        self.place(models, lines, edge);
        // Only new pictures tell how far each has come.
        let is_live = models.iter().any(|model| model.is_live());
        let on_axis = models.iter_mut().filter(|model| model.standing.place != Place::Apart);
        on_axis.for_each(|model| model.standing.wants_news |= is_live);
        is_changed
    }

    /// Lets the others follow an edge of the leader's.
    fn place(&self, models: &mut [&mut ViewModel], lines: &[Option<[TimeLine; 2]>], edge: CommonEdge) {
        let leader = &models[self.leader];
        let span = leader.controls.time.span_or(leader.newest());
        let is_held = leader.controls.time.is_held();
        for (model, [line, own]) in followers(models, lines) {
            let there = |index: f64| own.index_at(line.ns_at(index));
            let edge = CommonEdge { at: there(edge.at), reference: edge.reference.map(there) };
            model.controls.time.follow(edge, span, is_held);
        }
    }

    fn show_all(&mut self, models: &mut [&mut ViewModel]) -> bool {
        self.since = None;
        each(models, |model| model.show_next())
    }

    fn is_out_of_patience(&mut self) -> bool {
        self.since.get_or_insert_with(Instant::now).elapsed() > PATIENCE
    }
}

/// Applies a change to each; returns whether any of them changed.
fn each(models: &mut [&mut ViewModel], mut change: impl FnMut(&mut ViewModel) -> bool) -> bool {
    let mut is_changed = false;
    models.iter_mut().for_each(|model| is_changed |= change(model));
    is_changed
}

/// The scopes on the leader's axis, with its time line and their own.
fn followers<'a>(
    models: &'a mut [&mut ViewModel],
    lines: &'a [Option<[TimeLine; 2]>],
) -> impl Iterator<Item = (&'a mut ViewModel, [TimeLine; 2])> {
    models.iter_mut().zip(lines).filter_map(|(model, lines)| Some((&mut **model, (*lines)?)))
}

impl ViewModel {
    /// The newest picture, visible or not.
    fn newest(&self) -> &Picture {
        self.seen.next.as_ref().unwrap_or(&self.seen.picture)
    }

    /// Whether it follows the newest samples of its stream without a trigger.
    fn shows_newest(&self) -> bool {
        let is_rolling = self.controls.mode(&self.seen.picture) == TriggerMode::Roll;
        is_rolling && !self.controls.time.is_held() && !self.seen.picture.is_ended
    }

    /// Whether samples arrive.
    fn is_live(&self) -> bool {
        let picture = self.newest();
        let since_ns = monotonic_ns().saturating_sub(picture.newest_arrival_ns);
        picture.stream.is_some() && !picture.is_ended && since_ns < LIVE_NS
    }

    /// The requested right edge. Without a request it is minus infinity, because no sample is missing there.
    fn edge_asked(&self) -> f64 {
        match self.controls.time.window() {
            Window::Ending { at } => at,
            Window::Latest => f64::NEG_INFINITY,
        }
    }

    /// Whether its newest picture answers the present request.
    fn has_answered(&self) -> bool {
        let time = &self.controls.time;
        let answered = self.newest().answers.as_ref();
        answered.is_some_and(|viewport| viewport.window == time.window() && viewport.span == time.span)
    }
}

impl TimeSetting {
    fn of(model: &ViewModel) -> Self {
        let time = &model.controls.time;
        // A level depends on the units in the description.
        let trigger = TriggerSettings { level: None, ..model.controls.trigger.settings };
        Self { times_set: time.times_set(), span: time.span, trigger }
    }
}

/// Time that a picture waits for the other scopes.
const PATIENCE: Duration = Duration::from_millis(300);
/// A stream without data for this long is not awaited.
const LIVE_NS: u64 = 1_000_000_000;
/// A stream this late is not awaited either.
const LATE_S: f64 = 2.0;
/// Samples farther apart do not count as simultaneous.
const APART_NS: i64 = 1_000_000_000;

#[cfg(test)]
mod tests;
