//! What is searched as a form: which event, where, at which level, between which times. It becomes the words of a search.

use std::fmt::Write;

use grebe_scope::{Engineering, Slope};

use super::view_model::{ViewModel, extremes};
use crate::data::lane::{LaneId, Part};
use crate::data::trigger::TriggerKind;
use crate::data::viewport::DIVISIONS;

/// The fields of a search. Levels are in the unit of the lane (of power in decibels), times in seconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct FindForm {
    /// The place of its kind in [`KINDS`].
    pub(super) kind: usize,
    /// `None`: all of them.
    pub(super) lane: Option<LaneId>,
    pub(super) slope: Option<Slope>,
    pub(crate) level: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    hysteresis: f64,
    pub(crate) longer_s: Option<f64>,
    pub(crate) shorter_s: Option<f64>,
    holdoff_s: f64,
    /// From the beginning of the stream; `None`: its ends.
    pub(crate) from_s: Option<f64>,
    pub(crate) to_s: Option<f64>,
}

/// Which numbers an event has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FindKind {
    pub(crate) name: &'static str,
    pub(crate) has_level: bool,
    pub(crate) has_range: bool,
    has_hysteresis: bool,
    pub(crate) is_timed: bool,
    pub(crate) has_slope: bool,
}

pub(crate) const KINDS: [FindKind; 9] = {
    let none = FindKind {
        name: "",
        has_level: false,
        has_range: false,
        has_hysteresis: false,
        is_timed: false,
        has_slope: false,
    };
    let level = FindKind { has_level: true, has_slope: true, has_hysteresis: true, ..none };
    let range = FindKind { has_range: true, has_slope: true, ..none };
    [
        FindKind { name: "edge", ..level },
        FindKind { name: "pulse", is_timed: true, ..level },
        FindKind { name: "runt", ..range },
        FindKind { name: "window", has_hysteresis: true, ..range },
        FindKind { name: "dropout", is_timed: true, has_slope: false, ..level },
        FindKind { name: "level", is_timed: true, ..level },
        FindKind { name: "power", has_level: true, is_timed: true, ..none },
        FindKind { name: "silence", has_level: true, is_timed: true, ..none },
        FindKind { name: "gap", ..none },
    ]
};

impl FindForm {
    pub(crate) fn kind(&self) -> FindKind {
        KINDS[self.kind.min(KINDS.len() - 1)]
    }

    /// As `grebe find` has it behind `--trigger`.
    pub(super) fn words(&self) -> String {
        let kind = self.kind();
        let mut words = kind.name.to_owned();
        let mut add = |name: &str, value: String| {
            let _ = write!(words, " --{name} {value}");
        };
        let time = |seconds: f64| format!("{}us", rounded(seconds * 1e6));
        self.lane.into_iter().for_each(|lane| add("channels", lane.to_string()));
        match self.slope.filter(|_| kind.has_slope) {
            Some(Slope::Falling) => add("slope", "falling".into()),
            Some(Slope::Either) => add("slope", "either".into()),
            Some(Slope::Rising) | None => {}
        }
        if kind.has_range {
            add("low", rounded(self.low));
            add("high", rounded(self.high));
        }
        if kind.has_level {
            add("level", rounded(self.level));
        }
        if kind.has_hysteresis && self.hysteresis > 0.0 {
            add("hysteresis", rounded(self.hysteresis));
        }
        if kind.is_timed {
            self.longer_s.into_iter().for_each(|longer| add("longer", time(longer)));
            self.shorter_s.into_iter().for_each(|shorter| add("shorter", time(shorter)));
        }
        if self.holdoff_s > 0.0 {
            add("holdoff", time(self.holdoff_s));
        }
        // To a nanosecond, however far back.
        let place = |seconds: f64| format!("{:.9}s", seconds.max(0.0));
        self.from_s.into_iter().for_each(|from| add("from", place(from)));
        self.to_s.into_iter().for_each(|to| add("to", place(to)));
        words
    }
}

impl ViewModel {
    /// Opens the form with what would find what triggers now, or closes it.
    pub(super) fn toggle_find_form(&mut self) {
        if !self.has_finder() {
            return self.say(super::open::NO_FINDER.into());
        }
        self.open.find_form = match self.open.find_form.take() {
            Some(_) => None,
            None => Some(self.form_of_trigger()),
        };
    }

    /// What would find what triggers now.
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
            // Of I and Q alone, what is looked for in an edge: parts have units of their own.
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

    /// Searches for what the form says.
    pub(super) fn find_by_form(&mut self) {
        let words = self.open.find_form.as_ref().map(FindForm::words);
        let told = words.map_or(Ok(()), |words| self.begin_find(&words));
        self.say_refusal(told);
    }

    /// The unit of the levels in the form.
    pub(super) fn find_unit(&self) -> String {
        let form = self.open.find_form.as_ref();
        match form.is_some_and(|form| matches!(form.kind().name, "power" | "silence")) {
            true => "dB".into(),
            false => self.setup(form.and_then(|form| form.lane).unwrap_or(self.selected())).unit,
        }
    }

    /// A time of the form as it is typed; empty where there is none.
    pub(super) fn find_time_text(&self, time: Option<f64>) -> String {
        let unit = self.seen.picture.axis_unit();
        time.map_or(String::new(), |time| Engineering::new(time, unit).digits(12).to_string())
    }
}

/// Five digits, as a person types a number.
pub(super) fn rounded(value: f64) -> String {
    let short: f64 = format!("{value:.4e}").parse().unwrap_or(value);
    format!("{short}")
}

/// The trigger's own.
const HYSTERESIS_PART: f64 = 16.0;
