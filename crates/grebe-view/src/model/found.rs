//! A search of the whole history, and its results, which can be shown.

use std::fmt::Write;

use grebe_scope::Scale;

use super::find_form::{FindForm, KINDS};
use super::levels::LEVEL_UNIT;
use super::open::{Found, NO_FINDER};
use super::view_model::{ViewModel, extremes};
use crate::data::finding::{FoundEvent, Sought};
use crate::data::lane::{LaneId, Part};
use crate::data::trigger::TriggerKind;
use crate::data::viewport::DIVISIONS;

impl ViewModel {
    /// Whether the history can be searched.
    pub(crate) fn has_finder(&self) -> bool {
        self.options.finder.is_some()
    }

    /// Starts a search in place of the previous one; an empty text cancels it.
    pub(super) fn begin_find(&mut self, text: &str) -> Result<(), String> {
        let Some(finder) = &self.options.finder else { return Err(NO_FINDER.into()) };
        let words = text.trim();
        if words.is_empty() {
            self.open.found = None;
            return Ok(());
        }
        let channels = self.seen.picture.stream.map_or(0, |stream| stream.channels);
        let scale = |channel: usize| {
            let setup = self.unresolved_setup(LaneId::real(channel));
            Scale { factor: setup.scale, offset: setup.offset }
        };
        let sought = Sought { words: words.into(), scales: (0..channels).map(scale).collect() };
        let finding = finder.find(sought);
        let link = self.link.clone();
        finding.on_news(move || link.wake());
        self.open.found = Some(Found {
            words: words.into(),
            finding,
            events: Vec::new(),
            count: 0,
            searched: (0, 0),
            ended: None,
        });
        Ok(())
    }

    /// Takes new results; returns whether there were any.
    pub(super) fn look_at_found(&mut self) -> bool {
        let Some(found) = &mut self.open.found else { return false };
        let Some(news) = found.finding.take_news() else { return false };
        found.events.extend_from_slice(&news.events);
        // Long events are found at their end.
        found.events.sort_by_key(|event| event.index);
        (found.count, found.searched) = (news.found, (news.searched_samples, news.all_samples));
        if let Some(why) = news.ended {
            found.ended = Some(why);
            let words = found.state_words();
            let how = if found.events.is_empty() { "" } else { "; { and } go from one to the next" };
            self.say(format!("{words}{how}"));
        }
        true
    }

    /// Ends a search and its list; returns whether there was one.
    pub(crate) fn end_find(&mut self) -> bool {
        self.seen.hud_made_ns = 0;
        self.open.found.take().is_some()
    }

    /// Shows an event at the trigger's place.
    pub(crate) fn show_found(&mut self, event: FoundEvent) {
        self.show_segment(event.index as f64);
        self.seen.hud_made_ns = 0;
    }

    /// Whether the picture is held at that event.
    pub(crate) fn is_found_shown(&self, event: FoundEvent) -> bool {
        self.controls.time.held_trigger() == Some(event.index as f64)
    }

    /// Shows the event `steps` after the visible one. In a live picture: the first or the last. Returns whether there
    /// is a list.
    pub(super) fn step_found(&mut self, steps: i32) -> bool {
        let Some(events) = self.open.found.as_ref().map(|found| &found.events) else { return false };
        let Some(last) = events.len().checked_sub(1) else { return false };
        let place = match self.controls.time.held_trigger() {
            None if steps > 0 => 0,
            None => last,
            // Events that start at one sample in several channels count as one.
            Some(here) if steps > 0 => events.partition_point(|event| event.index as f64 <= here).min(last),
            Some(here) => events.partition_point(|event| (event.index as f64) < here).saturating_sub(1),
        };
        let event = events[place];
        self.show_found(event);
        true
    }

    /// One line about the search, for screens without room for its list.
    pub(crate) fn found_line(&self) -> Option<String> {
        let found = self.open.found.as_ref()?;
        let shown = found.events.iter().position(|event| self.is_found_shown(*event));
        let shown = shown.map_or(String::new(), |place| {
            format!(
                "  \u{b7} shown {} of {}: {}",
                place + 1,
                found.events.len(),
                self.event_words(found.events[place])
            )
        });
        Some(format!("{}  \u{b7} {}{shown}", found.words, found.state_words()))
    }

    /// Time of an event from the start of the stream, its duration, and its lane.
    pub(crate) fn event_words(&self, event: FoundEvent) -> String {
        let (rate, unit) = (self.seen.picture.rate_or_one(), self.seen.picture.axis_unit());
        let time = |samples: u64| grebe_scope::Engineering::new(samples as f64 / rate, unit);
        let mut words = time(event.index).digits(9).to_string();
        if event.length_samples > 0 {
            let _ = write!(words, " for {}", time(event.length_samples).digits(4));
        }
        if let Some(lane) = event.lane.filter(|_| self.seen.picture.lanes.len() > 1) {
            let _ = write!(words, "  {}", self.setup(lane).label(lane));
        }
        words
    }

    /// The last search, or one for the present trigger's event, as typed.
    pub(super) fn find_words(&self) -> String {
        self.open.found.as_ref().map_or_else(|| self.form_of_trigger().words(), |found| found.words.clone())
    }

    /// Opens the form with a search for the present trigger's event, or closes it.
    pub(super) fn toggle_find_form(&mut self) {
        if !self.has_finder() {
            return self.say(NO_FINDER.into());
        }
        self.open.find_form = match self.open.find_form.take() {
            Some(_) => None,
            None => Some(self.form_of_trigger()),
        };
    }

    /// A search for the present trigger's event.
    pub(super) fn form_of_trigger(&self) -> FindForm {
        let settings = self.controls.trigger.settings;
        let trigger = self.seen.picture.trigger;
        let lane = trigger.map_or(self.selected(), |trigger| trigger.settings.lane);
        let setup = self.unresolved_setup(lane);
        let seen = self.seen.picture.lanes.iter().find(|data| data.lane == lane);
        let seen = seen.and_then(|data| extremes(&data.columns, &setup));
        let (middle, height) =
            seen.map_or((0.0, 0.0), |seen| ((seen.bottom + seen.top) / 2.0, seen.height()));
        let value = |count: f64| setup.value(count);
        let levels = trigger.map_or([middle, middle], |trigger| {
            let zero = self.level_zero(&trigger);
            [value(trigger.level + zero), value(trigger.upper + zero)]
        });
        let division = self.seen.picture.span() / DIVISIONS;
        let is_timed = self.seen.picture.axis_unit() == "s";
        let (longer_s, shorter_s) = match settings.kind {
            TriggerKind::Pulse if is_timed => {
                let max = settings.pulse_max_s.or(settings.pulse_min_s.is_none().then_some(division));
                (settings.pulse_min_s, max)
            }
            TriggerKind::Dropout if is_timed => (Some(settings.dropout_s.unwrap_or(division)), None),
            _ => (None, None),
        };
        FindForm {
            kind: KINDS.iter().position(|kind| kind.name == settings.kind.name()).unwrap_or(0),
            // A single real channel need not be named.
            lane: (self.seen.picture.lanes.len() > 1 || lane.part != Part::Real).then_some(lane),
            slope: Some(settings.slope),
            level: levels[0],
            low: levels[0].min(levels[1]),
            high: levels[0].max(levels[1]),
            hysteresis: height / HYSTERESIS_PART,
            longer_s,
            shorter_s,
            holdoff_s: if is_timed { settings.holdoff_s } else { 0.0 },
            from_s: None,
            to_s: None,
        }
    }

    /// Searches with the form's values.
    pub(super) fn find_by_form(&mut self) {
        let words = self.open.find_form.as_ref().map(FindForm::words);
        let told = words.map_or(Ok(()), |words| self.begin_find(&words));
        self.say_refusal(told);
    }

    /// The unit of the levels in the form.
    pub(super) fn find_unit(&self) -> String {
        let form = self.open.find_form.as_ref();
        match form.is_some_and(|form| matches!(form.kind().name, "power" | "silence")) {
            true => LEVEL_UNIT.into(),
            false => self.setup(form.and_then(|form| form.lane).unwrap_or(self.selected())).unit,
        }
    }

    /// A time of the form as typed; empty if not set.
    pub(super) fn find_time_text(&self, time: Option<f64>) -> String {
        let unit = self.seen.picture.axis_unit();
        time.map_or(String::new(), |time| grebe_scope::Engineering::new(time, unit).digits(12).to_string())
    }
}

/// As for the trigger.
const HYSTERESIS_PART: f64 = 16.0;

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use grebe_scope::Slope;

    use super::*;
    use crate::data::feed::ScopeFeed;
    use crate::data::finding::{Finder, Finding, FindingSide};
    use crate::data::status::SourceStatus;
    use crate::model::action::Action;
    use crate::model::action::Question;
    use crate::model::fields::Field;
    use crate::model::find_form::rounded;
    use crate::model::options::ViewOptions;
    use crate::model::setting::Setting;
    use crate::model::widget::Press;
    use crate::testing::sine_batch;

    type Asked = Arc<Mutex<Vec<(Sought, FindingSide)>>>;

    fn model() -> (ScopeFeed, ViewModel, Asked) {
        let (mut feed, link) = ScopeFeed::new(1 << 20);
        let mut options = ViewOptions::new(SourceStatus::default);
        let asked = Asked::default();
        let asks = Arc::clone(&asked);
        options.finder = Some(Finder::new(move |sought| {
            let (side, finding) = Finding::begin();
            asks.lock().unwrap().push((sought, side));
            finding
        }));
        let mut model = ViewModel::new(link, options, crate::png::encode);
        model.request(100);
        feed.ingest(&sine_batch(0, 1, 500, 1e3)).unwrap();
        model.refresh();
        (feed, model, asked)
    }

    fn event(index: u64) -> FoundEvent {
        FoundEvent { index, length_samples: 0, lane: Some(LaneId::real(0)) }
    }

    #[test]
    fn what_is_typed_is_searched_and_the_keys_go_from_one_to_the_next() {
        let (_feed, mut model, asked) = model();
        model.act(Action::Ask(Question::Find));
        let typed = model.open.prompt.as_ref().unwrap().text.clone();
        assert!(typed.starts_with("edge --level "), "{typed}");
        model.type_text(|text| *text = " edge --level 5 ".into());
        model.answer();
        let (sought, side) = asked.lock().unwrap().remove(0);
        assert_eq!((sought.words.as_str(), sought.scales.len()), ("edge --level 5", 1));
        side.tell(&[event(400), event(100)], 250, 500);
        assert!(model.refresh(), "something is new");
        let found = model.open.found.as_ref().unwrap();
        assert_eq!(found.state_words(), "2 found, 50 % searched \u{2026}");
        side.tell(&[event(200)], 500, 500);
        side.end("searched everything");
        model.refresh();
        assert!(model.open.found.as_ref().unwrap().is_over());
        assert!(
            model.seen.hud.notice.as_ref().is_some_and(|it| it.contains("{ and }")),
            "{:?}",
            model.seen.hud.notice
        );
        let mut seen = Vec::new();
        for steps in [1, 1, 1, 1, -1, -1, -1] {
            model.act(Action::Segment(steps));
            seen.push(model.controls.time.held_trigger().unwrap());
        }
        assert_eq!(seen, [100.0, 200.0, 400.0, 400.0, 200.0, 100.0, 100.0]);
        assert!(model.found_line().unwrap().contains("shown 1 of 3: 100 ms"), "{:?}", model.found_line());
        // The last search appears again, and nothing ends it.
        model.act(Action::Ask(Question::Find));
        assert_eq!(model.open.prompt.as_ref().unwrap().text, "edge --level 5");
        model.type_text(String::clear);
        model.answer();
        assert!(model.open.found.is_none() && model.open.prompt.is_none());
    }

    #[test]
    fn escape_ends_a_search_and_who_looks_knows() {
        let (_feed, mut model, asked) = model();
        model.begin_find("gap").unwrap();
        let (_, side) = asked.lock().unwrap().remove(0);
        model.act(Action::Help);
        model.act(Action::Back);
        assert!(side.is_wanted(), "that closed the help");
        model.act(Action::Back);
        assert!(model.open.found.is_none() && !side.is_wanted());
        model.options.finder = None;
        model.act(Action::Ask(Question::Find));
        assert!(model.open.prompt.is_none() && model.open.message.is_some());
    }

    #[test]
    fn the_line_that_is_offered_finds_what_triggers() {
        let (_feed, mut model, _) = model();
        let settings = &mut model.controls.trigger.settings;
        (settings.kind, settings.slope) = (TriggerKind::Pulse, Slope::Falling);
        (settings.pulse_min_s, settings.holdoff_s) = (Some(2e-3), 0.5);
        let words = model.find_words();
        assert!(words.starts_with("pulse --slope falling --level "), "{words}");
        assert!(words.ends_with(" --longer 2000us --holdoff 500000us"), "{words}");
        model.controls.trigger.settings.kind = TriggerKind::Window;
        let words = model.find_words();
        assert!(words.contains(" --low ") && words.contains(" --high "), "{words}");
        assert_eq!(rounded(1.0 / 3.0), "0.33333");
    }

    #[test]
    fn the_form_is_searched_as_its_fields_say() {
        let (_feed, mut model, asked) = model();
        model.act(Action::Find);
        let set = |model: &mut ViewModel, field, text: &str| model.set_field(field, text);
        set(&mut model, Field::FindLevel, "3 k").unwrap();
        set(&mut model, Field::FindFrom, "1.5").unwrap();
        set(&mut model, Field::FindTo, "2 s").unwrap();
        assert!(set(&mut model, Field::FindTo, "1 s").is_err(), "before it begins");
        assert_eq!(model.field_text(Field::FindTo), "2 s");
        model.press(Press::Find);
        let (sought, side) = asked.lock().unwrap().remove(0);
        assert!(sought.words.starts_with("edge --level 3000 --hysteresis "), "{}", sought.words);
        assert!(sought.words.ends_with(" --from 1.500000000s --to 2.000000000s"), "{}", sought.words);
        set(&mut model, Field::FindFrom, "").unwrap();
        model.act(Action::Choices(Setting::FindKind));
        model.act(Action::Choose(3));
        set(&mut model, Field::FindLow, "-1").unwrap();
        set(&mut model, Field::FindHigh, "1").unwrap();
        model.press(Press::Find);
        assert!(!side.is_wanted(), "the newest counts");
        let (sought, _) = asked.lock().unwrap().remove(0);
        assert!(sought.words.starts_with("window --low -1 --high 1 --hysteresis "), "{}", sought.words);
        assert!(sought.words.ends_with(" --to 2.000000000s"), "{}", sought.words);
        model.act(Action::Find);
        assert!(model.open.find_form.is_none());
    }
}
