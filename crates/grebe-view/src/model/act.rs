//! Applies a person's actions, or passes them to the part that they concern.

use super::action::{Action, Question, Step};
use super::autoset;
use super::generator::GeneratorWish;
use super::segments::Segment;
use super::setting::Setting;
use super::view_model::ViewModel;
use super::widget::Press;
use crate::data::lane::LaneId;
use crate::data::trigger::TriggerView;

impl ViewModel {
    pub(crate) fn act(&mut self, action: Action) {
        if let (Action::Mark(lines), true) = (action, self.controls.is_help_open) {
            self.open.help_from = self.open.help_from.saturating_add_signed(lines as isize);
            return;
        }
        match (action, self.seen.picture.trigger) {
            (Action::Level(steps), Some(trigger)) => self.step_level(steps, trigger),
            (Action::Segment(steps), _) if self.step_found(steps) => {}
            (Action::Segment(steps), _) => self.step_segment(steps),
            (Action::Pin, _) => self.pin_segment(),
            (Action::FitAll, _) => self.fit_all(),
            (Action::Autoset, _) => self.begin_autoset(autoset::SAMPLES_FIRST),
            (Action::Zoom(to), _) => self.zoom_to(to),
            (Action::ZoomToCursors, _) => self.zoom_to_cursors(),
            (Action::Save(what), _) => self.begin_save(what),
            (Action::Keep, _) => self.begin_keep(self.kept_by_key()),
            (Action::GeneratorPause, _) => self.tell_generator(GeneratorWish::TogglePause),
            (Action::GeneratorRate(step), _) => {
                if let Some(stream) = self.seen.picture.stream.filter(|stream| stream.rate_hz > 0.0) {
                    let told = self.generator.step_rate(step, stream.rate_hz);
                    self.say_refusal(told);
                }
            }
            (Action::Next(Setting::Wave), _) => self.next_wave(),
            (Action::LevelsAuto, _) => {
                let seen = self.waterfall_range();
                self.controls.levels = self.controls.levels.is_none().then_some(seen);
            }
            (Action::Find, _) => self.toggle_find_form(),
            (Action::Markers, _) => self.toggle_markers(),
            (Action::ZoomFrequencies(step), _) => {
                self.zoom_spectrum(if step == Step::Up { 0.5 } else { 2.0 }, 0.5);
            }
            (Action::PanFrequencies(part), _) => self.pan_spectrum(part),
            (Action::MoveMarker(which, to), _) => self.move_marker(which, to),
            (Action::Ask(question), _) => self.ask(question),
            (Action::Annotate, _) => self.annotate_between_cursors(),
            (Action::AnnotatePart(part), _) => self.annotate_part(part),
            (Action::DrawBox(part), _) => self.draw_box(part),
            (Action::Box(deed), _) => self.act_on_box(deed),
            (Action::EditAnnotation, _) => self.ask(Question::AnnotationWords),
            (Action::MoveAnnotation, _) => self.move_annotation(),
            (Action::DeleteAnnotation, _) => self.delete_annotation(),
            (Action::UndoAnnotation, _) => self.undo_annotation(),
            (Action::Annotations, _) => self.open.annotations.is_open ^= true,
            _ => {}
        }
        if action == Action::Back && self.close_topmost() {
            return;
        }
        self.controls.apply(action, &self.seen.picture);
        self.act_on_list(action);
        self.seen.hud_made_ns = 0;
    }

    /// Applies a press on a widget.
    pub(crate) fn press(&mut self, press: Press) {
        match press {
            Press::Act(action) => self.act(action),
            Press::Settings(lane) => self.open_settings(lane),
            Press::Trigger(at) => self.show_segment(at),
            Press::Pin(at) => {
                self.show_segment(at);
                self.act(Action::Pin);
            }
            Press::Found(place) => {
                let event = self.open.found.as_ref().and_then(|found| found.events.get(place).copied());
                event.into_iter().for_each(|event| self.show_found(event));
            }
            Press::Annotation(place) => self.show_annotation(place),
            Press::Coupling(coupling) => {
                self.controls.trigger.set_coupling(coupling);
                self.seen.hud_made_ns = 0;
            }
            Press::EndFind => {
                self.end_find();
                self.open.find_form = None;
            }
            Press::Find => self.find_by_form(),
            Press::FindSlope(slope) => {
                if let Some(form) = &mut self.open.find_form {
                    form.slope = Some(slope);
                }
            }
            Press::Wave(wave) => self.tell_generator(GeneratorWish::Wave(wave)),
            Press::Source => self.open.is_source_open = !self.open.is_source_open,
        }
    }

    /// Opens the settings of the lane whose name was pressed; a second press closes them.
    pub(crate) fn open_settings(&mut self, lane: LaneId) {
        let is_open = self.controls.show.channel_panel;
        let is_again = is_open && self.selected() == lane;
        self.act(Action::Select(lane));
        if is_again || !is_open {
            self.act(Action::Channels);
        }
    }

    pub(crate) fn tell_generator(&mut self, wish: GeneratorWish) {
        let told = self.generator.tell(wish);
        self.say_refusal(told);
    }

    pub(crate) fn pan(&mut self, part: f64) {
        self.controls.time.pan(&self.seen.picture, part);
        self.seen.hud_made_ns = 0;
    }

    /// One step of the time span around a place on the screen.
    pub(crate) fn zoom(&mut self, is_shorter: bool, at: f64) {
        self.controls.time.zoom(&self.seen.picture, is_shorter, at);
        self.seen.hud_made_ns = 0;
    }

    /// The last triggers and the pinned ones, the newest first.
    pub(crate) fn segments(&self) -> Vec<Segment> {
        self.controls.pins.segments(&self.seen.picture, self.shown_trigger())
    }

    pub(crate) fn show_segment(&mut self, at: f64) {
        let position = self.controls.trigger.settings.position;
        self.controls.time.hold_trigger(&self.seen.picture, at, position);
    }

    /// Shows the segment that is `steps` later than the one shown now.
    fn step_segment(&mut self, steps: i32) {
        let mut all: Vec<f64> = self.segments().iter().map(|segment| segment.at).collect();
        all.reverse();
        let Some(last) = all.len().checked_sub(1) else { return };
        let here = self.shown_trigger().unwrap_or(f64::INFINITY);
        let place = all.partition_point(|&at| at < here) as i64;
        self.show_segment(all[(place + i64::from(steps)).clamp(0, last as i64) as usize]);
    }

    fn pin_segment(&mut self) {
        if let Some(at) = self.shown_trigger() {
            self.controls.pins.toggle(at);
        }
    }

    fn shown_trigger(&self) -> Option<f64> {
        self.controls.time.held_trigger().or(self.seen.picture.trigger.and_then(|trigger| trigger.at))
    }

    fn step_level(&mut self, steps: f64, trigger: TriggerView) {
        let lane = trigger.settings.lane;
        let setup = self.setup(lane);
        let Some(range) = self.controls.lanes.range(lane) else { return };
        let least = self.resolution(lane, &setup, Some(range)) / setup.scale.abs();
        let step = (range.height() / setup.scale.abs() / 40.0).max(least);
        let level = trigger.level + steps * step * setup.scale.signum();
        self.controls.trigger.settings.level = Some(level);
    }

    /// Sets the trigger's level by its height in its lane: 0.0 lower edge, 1.0 upper edge. With two levels, sets
    /// their middle.
    pub(crate) fn drag_level(&mut self, height: f64) {
        let Some(trigger) = self.seen.picture.trigger else { return };
        let lane = trigger.settings.lane;
        let Some(range) = self.controls.lanes.range(lane) else { return };
        let setup = self.setup(lane);
        let level = (range.at(height) - setup.offset) / setup.scale - self.level_zero(&trigger);
        self.controls.trigger.settings.level = Some(level);
    }

    /// Closes the prompt, else the list, else the box or the search unless the help is open. Returns whether it closed any.
    fn close_topmost(&mut self) -> bool {
        self.open.prompt.take().is_some()
            || self.open.list.take().is_some()
            || !self.controls.is_help_open && self.controls.boxed.take().is_some()
            || !self.controls.is_help_open && self.end_find()
    }

    pub(super) fn say_refusal(&mut self, told: Result<(), String>) {
        if let Err(why) = told {
            self.say(why);
        }
    }
}
