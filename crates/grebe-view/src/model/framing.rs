//! Zooms to the whole history, to a drawn box, or to the range between cursors.

use super::action::ScreenBox;
use super::view_model::ViewModel;
use crate::data::trigger::TriggerMode;

impl ViewModel {
    /// Shows the whole history. A rolling picture keeps rolling; a held or triggered one is held.
    pub(super) fn fit_all(&mut self) {
        let is_rolling =
            !self.seen.picture.is_ended && self.controls.mode(&self.seen.picture) == TriggerMode::Roll;
        self.controls.time.fit(&self.seen.picture, is_rolling);
    }

    /// Shows the content of a box, a little wider if that gives rounder divisions; holds the picture.
    pub(super) fn zoom_to(&mut self, to: ScreenBox) {
        if let Some(times) = to.times {
            self.controls.time.show_part(&self.seen.picture, times);
        }
        if let Some((lane, parts)) = to.values {
            let Some(range) = self.controls.lanes.range(lane) else { return };
            let [bottom, top] = parts.map(|part| range.at(part));
            self.controls.lanes.show_values(lane, bottom.min(top), bottom.max(top));
        }
    }

    /// Shows the range between the cursors.
    pub(super) fn zoom_to_cursors(&mut self) {
        let cursors = &self.controls.cursors;
        let (start, end, _) = self.axis();
        let times = cursors.times.map(|times| times.map(|at| (at - start) / (end - start)));
        let selected = self.selected();
        let lane = self.controls.lanes.range(selected);
        let values = cursors.values.zip(lane);
        let values = values.map(|(values, lane)| (selected, values.map(|value| lane.part_of(value))));
        if times.is_none() && values.is_none() {
            self.say("no cursors to zoom between: switch them on first (c, C)".into());
        }
        self.zoom_to(ScreenBox { times, values });
    }
}

#[cfg(test)]
mod tests {
    use crate::data::feed::ScopeFeed;
    use crate::data::lane::LaneId;
    use crate::data::status::SourceStatus;
    use crate::model::action::{Action, ScreenBox};
    use crate::model::options::ViewOptions;
    use crate::model::view_model::ViewModel;
    use crate::testing::sine_batch;

    /// An ended stream of 20 s at 1 kS/s, with 0.1 s visible.
    fn model() -> ViewModel {
        let (mut feed, link) = ScopeFeed::new(4 << 20);
        for block in 0..40 {
            feed.ingest(&sine_batch(block * 500, 2, 500, 1e3)).unwrap();
        }
        feed.finish();
        let mut options = ViewOptions::new(SourceStatus::default);
        options.initial.span = Some(0.1);
        let mut model = ViewModel::new(link, options, crate::png::encode);
        look(&mut model);
        model
    }

    fn look(model: &mut ViewModel) {
        for _ in 0..2 {
            model.request(1000);
            model.refresh();
            for place in 0..model.seen.picture.lanes.len() {
                model.range(place);
            }
        }
    }

    #[test]
    fn one_key_shows_all_of_a_recording_however_it_was_held() {
        for before in [
            None,
            Some(Action::Pause),
            Some(Action::Earlier),
            Some(Action::Next(crate::model::setting::Setting::TriggerMode)),
        ] {
            let mut model = model();
            if let Some(action) = before {
                model.act(action);
            }
            model.act(Action::FitAll);
            look(&mut model);
            let picture = &model.seen.picture;
            assert!(picture.left_index <= 0.0 && picture.right_index() >= 20_000.0, "{before:?}");
            assert!(picture.span_samples < 20_000.0 * 1.11, "{before:?}: {}", picture.span_samples);
        }
    }

    #[test]
    fn a_box_fills_the_screen_and_its_lane() {
        let mut model = model();
        let (left, span) = (model.seen.picture.left_index, model.seen.picture.span_samples);
        let lane = model.controls.lanes.range(LaneId::real(1)).unwrap();
        let other = model.controls.lanes.range(LaneId::real(0)).unwrap();
        let asked = ScreenBox { times: Some([0.8, 0.3]), values: Some((LaneId::real(1), [0.5, 0.75])) };
        model.act(Action::Zoom(asked));
        look(&mut model);
        let picture = &model.seen.picture;
        let (from, to) = (left + 0.3 * span, left + 0.8 * span);
        assert!(
            picture.left_index <= from + 0.2 && picture.right_index() >= to - 0.2,
            "{}",
            picture.left_index
        );
        assert!(picture.span_samples <= (to - from) * 1.11, "{}", picture.span_samples);
        assert!(model.controls.time.is_held());
        let shown = model.controls.lanes.range(LaneId::real(1)).unwrap();
        assert!(
            shown.bottom <= lane.at(0.5) + 1e-9 && shown.top >= lane.at(0.75) - 1e-9,
            "{shown:?} {lane:?}"
        );
        assert!(shown.height() <= lane.height() / 4.0 * 1.11, "{shown:?} {lane:?}");
        assert_eq!(model.controls.lanes.range(LaneId::real(0)), Some(other), "the other lane stays");
    }

    #[test]
    fn a_box_of_one_direction_changes_the_other_not_and_one_without_samples_stays_readable() {
        let mut model = model();
        model.act(Action::Zoom(ScreenBox { times: None, values: Some((LaneId::real(0), [0.4, 0.6])) }));
        assert!(!model.controls.time.is_held() && model.controls.lanes.vertical(LaneId::real(0)).is_some());
        model.act(Action::Zoom(ScreenBox { times: Some([0.5, 0.500_001]), values: None }));
        look(&mut model);
        assert!(
            (10.0..=20.0).contains(&model.seen.picture.span_samples),
            "{}",
            model.seen.picture.span_samples
        );
    }

    #[test]
    fn cursors_are_zoomed_to_and_said_to_be_missing() {
        let mut model = model();
        model.act(Action::ZoomToCursors);
        model.refresh();
        assert!(
            model.seen.hud.notice.as_ref().is_some_and(|it| it.contains("no cursors")),
            "{:?}",
            model.seen.hud.notice
        );
        model.act(Action::Cursors);
        let (start, end, _) = model.axis();
        model.act(Action::ZoomToCursors);
        look(&mut model);
        // They are at 35 % and 65 % of the screen.
        let (now, _, _) = model.axis();
        assert!((now - (start + 0.35 * (end - start))).abs() < 0.001, "{now} {start}");
        assert!((model.seen.picture.span() - 0.03).abs() < 1e-9, "{}", model.seen.picture.span());
    }

    #[test]
    fn a_place_of_the_history_is_shown_in_the_middle() {
        let mut model = model();
        model.act(Action::ShowAt(5000.0));
        look(&mut model);
        let middle = model.seen.picture.left_index + model.seen.picture.span_samples / 2.0;
        assert!((middle - 5000.0).abs() < 1.0, "{middle}");
        model.act(Action::ShowAt(-1e9));
        look(&mut model);
        assert!(model.seen.picture.right_index() > 0.0, "it stays near the stream");
    }
}
