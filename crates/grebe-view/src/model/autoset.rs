//! Sets time base, scales and trigger from the newest samples.

use grebe_scope::{Engineering, Quantity, Slope, step_125_up};

use crate::data::extract::Extract;
use crate::data::lane::LaneId;
use crate::data::trigger::{TriggerCoupling, TriggerKind, TriggerMode};
use crate::model::open::ExtractReason;
use crate::model::view_model::ViewModel;

/// Measurements of a lane.
struct Found {
    lane: LaneId,
    /// In samples.
    period: f64,
    /// Halfway between base and top, in raw counts.
    middle: f64,
}

impl ViewModel {
    /// Requests the newest samples; the settings follow when they arrive.
    pub(super) fn begin_autoset(&mut self, samples: u64) {
        let next = self.seen.picture.next_index;
        self.open.asked = Some(ExtractReason::Autoset { samples });
        self.link.request_extract(next.saturating_sub(samples)..next);
    }

    /// Shows between two and a half and six periods of the slowest periodic channel, triggers on it, and lets all
    /// scales follow their signals.
    pub(super) fn end_autoset(&mut self, extract: &Extract, samples: u64) {
        let found = self.slowest(extract);
        let has_older = self.seen.picture.next_index - self.seen.picture.oldest_index > samples;
        if found.is_none() && has_older && samples < SAMPLES_MAX {
            return self.begin_autoset(samples * 16);
        }
        self.controls.lanes.refit_all();
        self.controls.time.release();
        let settings = &mut self.controls.trigger.settings;
        (settings.mode, settings.kind, settings.slope) =
            (TriggerMode::Auto, TriggerKind::Edge, Slope::Rising);
        (settings.coupling, settings.holdoff_s, settings.level) = (TriggerCoupling::Dc, 0.0, None);
        // Slow signals roll, as at the start.
        self.controls.trigger.is_mode_chosen = false;
        let Some(Found { lane, period, middle }) = found else {
            return self.say("autoset: nothing repeats, scales and trigger level follow the signal".into());
        };
        let settings = &mut self.controls.trigger.settings;
        (settings.lane, settings.level) = (lane, Some(middle));
        let seconds = period / self.seen.picture.rate_or_one();
        // Without a rate, the unit is samples.
        let span = step_125_up(seconds * PERIODS_MIN);
        self.controls.time.span = Some(span);
        let label = self.setup(lane).label(lane);
        let period = Engineering::new(seconds, self.seen.picture.axis_unit());
        self.say(format!("autoset: {label} repeats every {period}"));
    }

    fn slowest(&self, extract: &Extract) -> Option<Found> {
        let shown = extract.lanes.iter().enumerate();
        let shown = shown.filter(|(_, lane)| self.seen.picture.lanes.iter().any(|data| data.lane == **lane));
        let of = |(place, &lane): (usize, &LaneId)| {
            // At a rate of 1, periods are in samples.
            let set = extract.measured(place);
            let period = set.get(Quantity::Period).filter(|&period| period >= PERIOD_MIN)?;
            let (base, top) = (set.get(Quantity::Base)?, set.get(Quantity::Top)?);
            Some(Found { lane, period, middle: (base + top) / 2.0 })
        };
        shown.filter_map(of).max_by(|a, b| a.period.total_cmp(&b.period))
    }
}

/// Samples of the first attempt: as many as a measurement of the picture uses.
pub(super) const SAMPLES_FIRST: u64 = 1 << 18;
/// Samples of the second attempt, if the first finds no period. They are copied once, on the data thread.
const SAMPLES_MAX: u64 = 1 << 22;
const PERIODS_MIN: f64 = 2.5;
/// Two samples a period are the most that a rate can hold.
const PERIOD_MIN: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::feed::ScopeFeed;
    use crate::data::status::SourceStatus;
    use crate::model::action::Action;
    use crate::model::options::ViewOptions;
    use crate::testing::batch;

    fn set(samples: u64, rate_hz: f64, value: impl Fn(usize, u64) -> i16) -> ViewModel {
        let (mut feed, link) = ScopeFeed::new(64 << 20);
        for first in (0..samples).step_by(10_000) {
            feed.ingest(&batch(first, 2, 10_000, rate_hz, &value)).unwrap();
        }
        feed.finish();
        let mut options = ViewOptions::new(SourceStatus::default);
        options.initial.span = Some(5.0);
        let mut model = ViewModel::new(link, options, crate::png::encode);
        let look = |model: &mut ViewModel| {
            model.request(800);
            model.refresh();
        };
        look(&mut model);
        // Start from wrong settings.
        for action in [
            Action::Earlier,
            Action::Vertical(crate::model::action::Step::Up),
            Action::Next(crate::model::setting::Setting::TriggerKind),
        ] {
            model.act(action);
        }
        model.controls.trigger.settings.level = Some(32_000.0);
        model.act(Action::Autoset);
        for _ in 0..4 {
            look(&mut model);
        }
        model
    }

    #[test]
    fn the_slowest_signal_fills_the_screen_with_a_few_periods_and_stands_still() {
        let wave = |channel: usize, index: u64| {
            let hertz = if channel == 0 { 2300.0 } else { 440.0 };
            ((index as f64 / 1e6 * hertz * std::f64::consts::TAU).sin() * 3000.0 + 5000.0) as i16
        };
        let model = set(500_000, 1e6, wave);
        let periods = model.seen.picture.span() * 440.0;
        assert!((2.5..=6.25).contains(&periods), "{periods}");
        let settings = model.controls.trigger.settings;
        assert_eq!((settings.lane, settings.kind), (LaneId::real(1), TriggerKind::Edge));
        assert!((settings.level.unwrap() - 5000.0).abs() < 150.0, "{:?}", settings.level);
        assert!(model.seen.picture.trigger.is_some_and(|trigger| trigger.at.is_some()), "it triggers");
        assert!((0..2).all(|channel| model.controls.lanes.vertical(LaneId::real(channel)).is_none()));
        assert!(!model.controls.time.is_held());
        assert!(
            model.seen.hud.notice.as_ref().is_some_and(|it| it.contains("2.27 ms")),
            "{:?}",
            model.seen.hud.notice
        );
    }

    #[test]
    fn a_slow_signal_is_found_further_back_and_what_does_not_repeat_is_said() {
        // Half a period of 0.8 s is longer than the first attempt.
        let slow = |_: usize, index: u64| if (index / 400_000).is_multiple_of(2) { 100 } else { -100 };
        let model = set(3_000_000, 1e6, slow);
        assert_eq!(model.controls.time.span, Some(2.0), "0.8 s a period");
        let flat = set(50_000, 1e6, |_, _| 7);
        assert!(
            flat.seen.hud.notice.as_ref().is_some_and(|it| it.contains("nothing repeats")),
            "{:?}",
            flat.seen.hud.notice
        );
        assert_eq!((flat.controls.trigger.settings.level, flat.controls.time.is_held()), (None, false));
    }
}
