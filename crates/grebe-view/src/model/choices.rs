//! Lists of a setting's values. A key that steps through the values shows them too.

use grebe_flow::monotonic_ns;
use grebe_scope::{Quantity, Window as Weighting};

use crate::data::lane::{LaneId, LaneMask, Part};
use crate::data::math::MathOperation;
use crate::data::picture::Picture;
use crate::data::spectrum::{SIZE_MAX, SIZE_MIN};
use crate::data::trigger::{TriggerKind, TriggerMode};
use crate::model::action::{Action, Step, ToPeak};
use crate::model::controls::Controls;
use crate::model::find_form::{FindKind, KINDS};
use crate::model::generator::GeneratorWish;
use crate::model::open::{Entry, OpenList};
use crate::model::setting::Setting;
use crate::model::view_model::ViewModel;

impl ViewModel {
    /// Opens, closes and moves the list. Actions that do not concern a list close it.
    pub(super) fn act_on_list(&mut self, action: Action) {
        let marked = self.open.list.map_or(0, |list| list.marked);
        match action {
            Action::Choices(setting) => self.open_list(setting, None),
            Action::Mark(steps) => self.mark(steps),
            Action::Take => self.choose(marked),
            Action::Choose(place) => self.choose(place),
            _ => match setting_of(action) {
                Some(setting) => self.open_list(setting, Some(monotonic_ns() + SEEN_NS)),
                None => self.open.list = None,
            },
        }
    }

    /// The next value of a setting outside the controls.
    pub(super) fn next_wave(&mut self) {
        let told = self.generator.next_wave();
        self.say_refusal(told);
    }

    /// Title of the open list.
    pub(crate) fn list_title(&self) -> String {
        let Some(list) = self.open.list else { return String::new() };
        match list.setting {
            Setting::Quantities => {
                let selected = self.selected();
                let of = match self.controls.measured.has_own(selected) {
                    true => self.setup(selected).label(selected),
                    false => "all channels".into(),
                };
                format!("measurements of {of}")
            }
            setting => setting.title().into(),
        }
    }

    pub(crate) fn list(&self) -> Option<OpenList> {
        self.open.list
    }

    pub(crate) fn close_list(&mut self) {
        self.open.list = None;
    }

    /// Lines of the open list.
    pub(crate) fn list_entries(&self) -> Vec<Entry> {
        self.open.list.map_or(Vec::new(), |list| self.entries(list.setting))
    }

    /// Closes a list that only showed a key's effect; returns whether it did.
    pub(super) fn close_seen_list(&mut self, now_ns: u64) -> bool {
        let is_over =
            self.open.list.and_then(|list| list.closes_ns).is_some_and(|closes_ns| now_ns >= closes_ns);
        if is_over {
            self.open.list = None;
        }
        is_over
    }

    /// Nanoseconds until the open list closes by itself.
    pub(crate) fn list_closes_in_ns(&self) -> Option<u64> {
        let closes_ns = self.open.list?.closes_ns?;
        Some(closes_ns.saturating_sub(monotonic_ns()))
    }

    fn open_list(&mut self, setting: Setting, closes_ns: Option<u64>) {
        let entries = self.entries(setting);
        // A setting without values has no list.
        self.open.list = (!entries.is_empty()).then(|| OpenList {
            setting,
            marked: if setting.is_many() { 0 } else { entries.iter().position(|it| it.is_on).unwrap_or(0) },
            closes_ns,
        });
    }

    fn mark(&mut self, steps: i32) {
        let Some(list) = self.open.list else { return };
        let count = self.entries(list.setting).len().max(1) as i32;
        let marked = (list.marked as i32 + steps).rem_euclid(count) as usize;
        let closes_ns = list.closes_ns.map(|_| monotonic_ns() + SEEN_NS);
        self.open.list = Some(OpenList { marked, closes_ns, ..list });
        // Moving over a line of a single choice sets it, so that its effect is visible; another source takes longer.
        if !list.setting.is_many()
            && !list.setting.is_deed()
            && !matches!(list.setting, Setting::All | Setting::Source)
        {
            self.set(list.setting, marked);
        }
    }

    /// Takes a line of the open list; a list with a single choice closes then.
    fn choose(&mut self, place: usize) {
        let Some(list) = self.open.list else { return };
        match list.setting {
            Setting::All => {
                let setting = self.there().nth(place);
                if let Some(setting) = setting {
                    self.open_list(setting, None);
                }
            }
            setting => {
                self.set(setting, place);
                let stays = setting.is_many() || setting.is_deed();
                // A deed may have closed it, or opened another.
                if self.open.list.is_some_and(|now| now.setting == setting) {
                    self.open.list = stays.then_some(OpenList { marked: place, ..list });
                }
            }
        }
    }

    fn set(&mut self, setting: Setting, place: usize) {
        if setting == Setting::Annotations {
            self.choose_annotation(place);
        } else if setting == Setting::Box {
            self.choose_box(place);
        } else if setting == Setting::Modulation {
            self.choose_modulation(place);
        } else if setting == Setting::Source {
            self.show_source(place);
        } else if setting == Setting::Wave {
            if let Some(wave) = self.generator.waves().get(place).cloned() {
                self.tell_generator(GeneratorWish::Wave(wave));
            }
        } else if let (Setting::FindKind, Some(form)) = (setting, &mut self.open.find_form) {
            form.kind = place;
        } else if let (Setting::FindLane, Some(form)) = (setting, &mut self.open.find_form) {
            form.lane =
                place.checked_sub(1).and_then(|place| lanes_of(&self.seen.picture).get(place).copied());
        } else if setting == Setting::Marker {
            let (which, to) = (place / ToPeak::ALL.len(), ToPeak::ALL[place % ToPeak::ALL.len()].0);
            self.move_marker(which, to);
        } else {
            self.controls.set(setting, place, &self.seen.picture);
        }
        self.seen.hud_made_ns = 0;
    }

    fn entries(&self, setting: Setting) -> Vec<Entry> {
        match setting {
            Setting::All => self
                .there()
                .map(|setting| {
                    let on = self.entries(setting).into_iter().filter(|entry| entry.is_on);
                    let on: Vec<String> = on.map(|entry| entry.text).collect();
                    let on = if setting.is_many() { format!("{} of them", on.len()) } else { on.join(", ") };
                    Entry { text: format!("{:<16} {on}", setting.title()), is_on: false }
                })
                .collect(),
            Setting::Wave => {
                let is_on = |wave| self.generator.wave.as_ref() == Some(wave);
                let waves = self.generator.waves().iter();
                waves.map(|wave| Entry { text: wave.clone(), is_on: is_on(wave) }).collect()
            }
            Setting::Source => self.source_entries(),
            Setting::FindKind => {
                let now = self.open.find_form.as_ref().map(|form| form.kind());
                let entry = |kind: FindKind| Entry { text: kind.name.into(), is_on: now == Some(kind) };
                KINDS.map(entry).to_vec()
            }
            Setting::FindLane => {
                let now = self.open.find_form.as_ref().and_then(|form| form.lane);
                let all = Entry { text: "all channels".into(), is_on: now.is_none() };
                let lane = |lane| Entry { text: self.setup(lane).label(lane), is_on: now == Some(lane) };
                [all].into_iter().chain(lanes_of(&self.seen.picture).into_iter().map(lane)).collect()
            }
            Setting::Marker => {
                let of = |name| {
                    ToPeak::ALL.map(|(_, words)| Entry { text: format!("{name} {words}"), is_on: false })
                };
                [of("A"), of("B")].concat()
            }
            Setting::Annotations => self.annotation_entries(),
            Setting::Box => self.box_entries(),
            Setting::Modulation => self.modulation_entries(),
            setting => self.controls.entries(setting, &self.seen.picture),
        }
    }

    /// The settings with more than one value here.
    fn there(&self) -> impl Iterator<Item = Setting> + '_ {
        let is_complex = self.seen.picture.stream.is_some_and(|stream| stream.format.is_complex());
        Setting::EACH.into_iter().filter(move |&setting| match setting {
            Setting::Wave => self.generator.is_there(),
            Setting::Source => self.has_sources(),
            Setting::Modulation => self.has_sound(),
            Setting::Parts => is_complex,
            _ => true,
        })
    }
}

impl Controls {
    /// The values of a setting, with the present one marked.
    pub(crate) fn entries(&self, setting: Setting, picture: &Picture) -> Vec<Entry> {
        let entry = |text: &str, is_on| Entry { text: text.into(), is_on };
        let trigger = &self.trigger.settings;
        let lane = |now: LaneId| {
            let lanes = lanes_of(picture).into_iter();
            lanes.map(|lane| entry(&self.lanes.setup(lane).label(lane), lane == now)).collect()
        };
        match setting {
            Setting::TriggerMode => {
                MODES.map(|(mode, name)| entry(name, mode == self.mode(picture))).to_vec()
            }
            Setting::TriggerKind => {
                TriggerKind::ALL.map(|kind| entry(kind.name(), kind == trigger.kind)).to_vec()
            }
            Setting::TriggerLane => {
                lane(picture.trigger.map_or(trigger.lane, |trigger| trigger.settings.lane))
            }
            Setting::TriggerPlace => {
                let near = |place: f64| (trigger.position - place).abs() < 0.2;
                PLACES.map(|(place, name)| entry(name, near(place))).to_vec()
            }
            Setting::Quantities => {
                let selected = self.selected(picture);
                let chosen = self.measured.of(selected);
                let own = format!("for {} alone", self.lanes.setup(selected).label(selected));
                let own = entry(&own, self.measured.has_own(selected));
                let all = Quantity::ALL.map(|quantity| entry(quantity.name(), chosen.has(quantity)));
                all.into_iter().chain([own]).collect()
            }
            Setting::Against => {
                lane(self.against.or(picture.lanes.first().map(|data| data.lane)).unwrap_or(LaneId::real(0)))
            }
            Setting::TransformSize => {
                sizes().map(|size| entry(&size.to_string(), size == self.spectrum.size)).collect()
            }
            Setting::Weighting => {
                Weighting::ALL.map(|it| entry(it.name(), it == self.spectrum.window)).to_vec()
            }
            Setting::Averages => {
                AVERAGES.map(|(count, name)| entry(name, count == self.spectrum.averages)).to_vec()
            }
            Setting::Math => {
                let none = entry("none", self.math.is_none());
                let each = MathOperation::ALL.map(|it| entry(it.name(), self.math == Some(it)));
                [none].into_iter().chain(each).collect()
            }
            Setting::XyInput(which) => lane(self.xy_lanes(picture)[which % 2]),
            Setting::MathInput(which) => lane(self.math_inputs[which % 2]),
            Setting::Parts if picture.stream.is_some_and(|stream| stream.format.is_complex()) => {
                Part::COMPLEX.map(|part| entry(part_words(part), self.shown.has_part(part))).to_vec()
            }
            Setting::Parts => Vec::new(),
            Setting::All | Setting::Wave | Setting::Source | Setting::Marker | Setting::Modulation => {
                Vec::new()
            }
            Setting::FindKind | Setting::FindLane | Setting::Annotations | Setting::Box => Vec::new(),
        }
    }

    /// Takes the line at `place` of the setting's list.
    pub(crate) fn set(&mut self, setting: Setting, place: usize, picture: &Picture) {
        if place >= self.entries(setting, picture).len() {
            return;
        }
        match setting {
            Setting::TriggerMode => self.apply(Action::Trigger(MODES[place].0), picture),
            Setting::TriggerKind => self.trigger.set_kind(TriggerKind::ALL[place]),
            Setting::TriggerLane => {
                if let Some(&lane) = lanes_of(picture).get(place) {
                    self.trigger.set_lane(lane);
                }
            }
            Setting::Parts => self.shown = self.shown.part_toggled(Part::COMPLEX[place]),
            Setting::TriggerPlace => self.trigger.settings.position = PLACES[place].0,
            Setting::Quantities => match Quantity::ALL.get(place) {
                Some(&quantity) => self.measured.toggle(self.selected(picture), quantity),
                None => self.measured.toggle_own(self.selected(picture)),
            },
            Setting::Against => self.against = lanes_of(picture).get(place).copied(),
            Setting::TransformSize => self.spectrum.size = sizes().nth(place).unwrap_or(SIZE_MIN),
            Setting::Weighting => self.spectrum.window = Weighting::ALL[place],
            Setting::Averages => self.spectrum.averages = AVERAGES[place].0,
            Setting::Math => {
                self.set_math(place.checked_sub(1).and_then(|place| MathOperation::ALL.get(place)).copied());
            }
            Setting::XyInput(which) => self.xy[which % 2] = lanes_of(picture).get(place).copied(),
            Setting::MathInput(which) => {
                if let Some(&lane) = lanes_of(picture).get(place) {
                    self.math_inputs[which % 2] = lane;
                    self.lanes.refit(LaneId::MATH);
                }
            }
            Setting::All | Setting::Wave | Setting::Source | Setting::Marker | Setting::Modulation => {}
            Setting::FindKind | Setting::FindLane | Setting::Annotations | Setting::Box => {}
        }
    }

    /// Takes the next value; after the last comes the first.
    pub(super) fn set_next(&mut self, setting: Setting, picture: &Picture) {
        let entries = self.entries(setting, picture);
        let now = entries.iter().position(|entry| entry.is_on);
        self.set(setting, now.map_or(0, |now| (now + 1) % entries.len().max(1)), picture);
    }

    pub(super) fn step_transform(&mut self, step: Step) {
        let size = self.spectrum.size;
        self.spectrum.size = match step {
            Step::Down => (size / 2).max(SIZE_MIN),
            Step::Up => (size * 2).min(SIZE_MAX),
        };
    }
}

/// The setting that an action steps through, if any.
fn setting_of(action: Action) -> Option<Setting> {
    match action {
        Action::Next(setting) => Some(setting),
        Action::TransformSize(_) => Some(Setting::TransformSize),
        _ => None,
    }
}

/// All possible lanes of the stream, visible or not.
fn lanes_of(picture: &Picture) -> Vec<LaneId> {
    let Some(stream) = picture.stream else { return vec![LaneId::real(0)] };
    let all = Part::COMPLEX.into_iter().filter(|&part| !LaneMask::ALL.has_part(part));
    let all = all.fold(LaneMask::ALL, LaneMask::part_toggled);
    stream.lanes(all).collect()
}

fn part_words(part: Part) -> &'static str {
    match part {
        Part::I => "I",
        Part::Q => "Q",
        Part::Magnitude => "magnitude",
        Part::MagnitudeDb => "magnitude in dB",
        Part::Phase => "phase",
        Part::Frequency => "frequency",
        Part::Real | Part::Math => "",
    }
}

fn sizes() -> impl Iterator<Item = usize> {
    (SIZE_MIN.trailing_zeros()..=SIZE_MAX.trailing_zeros()).map(|power| 1 << power)
}

const MODES: [(TriggerMode, &str); 4] = [
    (TriggerMode::Roll, "roll"),
    (TriggerMode::Auto, "auto"),
    (TriggerMode::Normal, "normal"),
    (TriggerMode::Single, "single"),
];
const PLACES: [(f64, &str); 3] = [(0.1, "at the left"), (0.5, "in the middle"), (0.9, "at the right")];
const AVERAGES: [(u32, &str); 4] = [(1, "none"), (4, "4 spectra"), (16, "16 spectra"), (64, "64 spectra")];
/// How long a list stays after a key stepped through it.
const SEEN_NS: u64 = 4_000_000_000;

#[cfg(test)]
mod tests;
