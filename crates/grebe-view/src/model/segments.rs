//! The last triggers, to be looked at again: each is a place in the history, pinned or not.

use crate::data::picture::Picture;

/// The triggers that a person pinned.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    pub(crate) list: Vec<Pin>,
    /// Number of pins so far, for their labels.
    made: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pin {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// One line of the list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Segment {
    pub(crate) at: f64,
    /// `None` for a trigger that newer ones will push out of the list.
    pub(crate) label: Option<String>,
    pub(crate) is_shown: bool,
    /// Whether the history still covers it.
    pub(crate) is_there: bool,
}

impl Pins {
    /// The last triggers and the pinned ones, the newest first; the picture shows the one at `shown`.
    pub(crate) fn segments(&self, picture: &Picture, shown: Option<f64>) -> Vec<Segment> {
        let segment = |at: f64, label: Option<String>| Segment {
            at,
            label,
            is_shown: shown == Some(at),
            is_there: at >= picture.oldest_index as f64,
        };
        let recent = picture.triggers.iter().filter(|at| self.list.iter().all(|pin| pin.at != **at));
        let mut all: Vec<Segment> = recent.map(|&at| segment(at, None)).collect();
        all.extend(self.list.iter().map(|pin| segment(pin.at, Some(pin.label.clone()))));
        all.sort_by(|a, b| b.at.total_cmp(&a.at));
        all
    }

    /// Pins the trigger at a sample index, or lets it go.
    pub(crate) fn toggle(&mut self, at: f64) {
        match self.list.iter().position(|pin| pin.at == at) {
            Some(place) => {
                self.list.remove(place);
            }
            None if self.list.len() < PINS_MAX => {
                self.made += 1;
                self.list.push(Pin { at, label: format!("pin {}", self.made) });
            }
            None => {}
        }
    }
}

const PINS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use crate::data::core::ScopeCore;
    use crate::data::feed::ScopeFeed;
    use crate::data::status::SourceStatus;
    use crate::data::trigger::TriggerMode;
    use crate::model::options::ViewOptions;
    use crate::model::view_model::ViewModel;
    use crate::testing::batch;

    #[test]
    fn a_held_picture_has_the_mark_of_the_trigger_that_it_is_held_at() {
        // Rising through its middle every 700 samples of 0.1 ms; four are on the screen.
        let saw = |_: usize, index: u64| ((index % 700) as i32 * 20 - 7000) as i16;
        let (_, link) = ScopeFeed::new(1 << 20);
        let mut model = ViewModel::new(link, ViewOptions::new(SourceStatus::default), crate::png::encode);
        model.controls.time.span = Some(0.28);
        model.controls.trigger.settings.mode = TriggerMode::Normal;
        model.controls.trigger.is_mode_chosen = true;
        let mut core = ScopeCore::new(1 << 20);
        let mut number = 0;
        let mut show = |model: &mut ViewModel| {
            (0..40)
                .for_each(|block| core.ingest(&batch((number + block) * 100, 1, 100, 1e4, saw), 1).unwrap());
            number += 40;
            model.seen.picture = core.answer(&model.viewport(400), number);
        };
        show(&mut model);
        show(&mut model);
        assert_eq!(model.trigger_marks().part.map(|part| (part * 100.0).round()), Some(50.0));
        let picture = model.seen.picture.clone();
        let second = picture.triggers[picture.triggers.len() - 2];
        model.controls.time.hold_trigger(&picture, second, 0.5);
        show(&mut model);
        // The stream continued: the newest trigger is another, which may also be visible.
        assert_ne!(model.seen.picture.trigger.unwrap().at, Some(second));
        let part = model.trigger_marks().part.unwrap();
        let at = model.seen.picture.left_index + part * model.seen.picture.span_samples;
        assert!((at - second).abs() < 1e-6, "{at}, not {second}");
    }
}
