//! What window and terminal have in common: the newest picture, the settings, the words around it.

use crate::controls::Controls;
use crate::cpu::CpuMeter;
use crate::gaps::GapPlaces;
use crate::generator::{GeneratorState, GeneratorWish};
use crate::hud::{DC, DIVISIONS, Hud, RunState, TriggerWords};
use crate::keys::{Action, SaveWhat};
use crate::link::ScopeLink;
use crate::math::{LANES, MATH_CHANNEL, MathInput, MathOperation, MathSettings};
use crate::options::{ChannelSetup, ViewOptions};
use crate::persistence::PersistenceSettings;
use crate::picture::{ChannelColumns, Picture};
use crate::session::Session;
use crate::trigger::{TriggerKind, TriggerView};
use crate::vertical::Range;
use grebe_flow::monotonic_ns;
use grebe_scope::{Engineering, MeasurementStatistics, Scale, Slope, Ticks};

pub(crate) struct Face {
    pub(crate) link: ScopeLink,
    pub(crate) options: ViewOptions,
    pub(crate) controls: Controls,
    pub(crate) picture: Picture,
    pub(crate) hud: Hud,
    hud_made_ns: u64,
    /// Pictures taken, and since when: the rate a person sees.
    taken: (u32, u64),
    pictures_per_s: f64,
    /// What is to be saved once the history has answered.
    pub(crate) saving: Option<SaveWhat>,
    /// Something to be said for a while, and since when.
    said: Option<(String, u64)>,
    /// Where the gaps were lost.
    pub(crate) places: GapPlaces,
    pub(crate) generator: GeneratorState,
    cpu: CpuMeter,
    cpu_part: Option<f64>,
    /// By channel, since the view changed.
    pub(crate) statistics: [MeasurementStatistics; LANES],
    /// The last measurement that is in the statistics, and of which span.
    counted: (u64, f64),
}

impl Face {
    pub(crate) fn new(link: ScopeLink, options: ViewOptions) -> Face {
        link.begin_face();
        let controls = Controls::new(&options);
        let picture = Picture::waiting();
        let hud = Hud::new(&picture, &(options.status)(), false, 0.0, monotonic_ns());
        Face {
            link,
            options,
            controls,
            picture,
            hud,
            hud_made_ns: 0,
            taken: (0, 0),
            pictures_per_s: 0.0,
            saving: None,
            said: None,
            places: GapPlaces::default(),
            generator: GeneratorState::default(),
            cpu: CpuMeter::default(),
            cpu_part: None,
            statistics: Default::default(),
            counted: (0, 0.0),
        }
    }

    /// Takes the newest picture; whether anything to be seen has changed.
    pub(crate) fn refresh(&mut self) -> bool {
        let taken = self.link.take();
        let is_new = taken.is_some();
        if let Some(picture) = taken {
            // Another span, or anything new while the words rest, is to be read at once.
            if picture.span_samples != self.picture.span_samples || self.hud.state != RunState::Live {
                self.hud_made_ns = 0;
            }
            let is_other = self.picture.streams > 0 && picture.streams > self.picture.streams;
            self.picture = picture;
            if is_other {
                self.say(format!("another stream began: {}", crate::hud::stream_text(&self.picture)));
            }
            self.taken.0 += 1;
            self.count_measurements();
        }
        let has_saved = self.end_save();
        self.refresh_hud() || is_new || has_saved
    }

    pub(crate) fn act(&mut self, action: Action) {
        match (action, self.picture.trigger) {
            (Action::Level(steps), Some(trigger)) => self.step_level(steps, trigger),
            (Action::Segment(steps), _) => self.step_segment(steps),
            (Action::Pin, _) => self.pin_segment(),
            (Action::Save(what), _) => self.begin_save(what),
            (Action::GeneratorPause, _) => self.tell_generator(GeneratorWish::TogglePause),
            (Action::GeneratorRate(step), _) => self.step_rate(step),
            (Action::GeneratorWave, _) => self.next_wave(),
            _ => {}
        }
        self.controls.apply(action, &self.picture);
        self.hud_made_ns = 0;
    }

    /// Moves by a part of the screen.
    #[cfg(feature = "window")]
    pub(crate) fn pan(&mut self, part: f64) {
        self.controls.pan(&self.picture, part);
        self.hud_made_ns = 0;
    }

    /// One step of the time span around a place on the screen.
    #[cfg(feature = "window")]
    pub(crate) fn zoom(&mut self, is_shorter: bool, at: f64) {
        self.controls.zoom(&self.picture, is_shorter, at);
        self.hud_made_ns = 0;
    }

    fn step_level(&mut self, steps: f64, trigger: TriggerView) {
        let channel = trigger.settings.channel;
        let setup = self.setup(channel);
        let Some(range) = self.controls.lane_range(channel) else { return };
        let step = (range.height() / setup.scale.abs() / 40.0).max(1.0);
        self.controls.set_level((f64::from(trigger.level) + steps * step * setup.scale.signum()) as i16);
    }

    /// The channels' marks and the level of the trigger, as far as they are to be drawn.
    pub(crate) fn trigger_marks(&self) -> TriggerMarks {
        let Some(trigger) = self.picture.trigger else { return TriggerMarks::default() };
        let part = trigger.at.map(|at| (at - self.picture.left_index) / self.picture.span_samples);
        TriggerMarks {
            part: part.filter(|part| (0.0..=1.0).contains(part)),
            levels: match trigger.settings.kind.has_two_levels() {
                true => vec![trigger.level, trigger.upper],
                false => vec![trigger.level],
            }
            .into_iter()
            .map(|level| (trigger.settings.channel, f64::from(level) + self.level_zero(&trigger)))
            .collect(),
        }
    }

    /// The raw count that the trigger's level counts from: with LF reject, the mean of what is visible stands for the
    /// baseline that wanders.
    pub(crate) fn level_zero(&self, trigger: &TriggerView) -> f64 {
        let channel = trigger.settings.channel;
        let shown = self.picture.channels.iter().find(|data| data.channel == channel);
        let mean = shown.map_or(0.0, |data| data.mean);
        if trigger.settings.coupling.is_lf_reject() { mean } else { 0.0 }
    }

    /// The time axis: values at the left and the right edge, and its ticks, ten a screen.
    pub(crate) fn axis(&self) -> (f64, f64, Ticks) {
        let (start, span) = (self.controls.axis_start(&self.picture), self.picture.span());
        (start, start + span, Ticks::with_step(start, start + span, span / DIVISIONS))
    }

    /// Asks for what the settings say, `columns` wide; whether that is something else than before.
    pub(crate) fn request(&self, columns: usize) -> bool {
        let mut viewport = self.controls.viewport(&self.picture, columns);
        viewport.math = self.math_settings();
        if self.controls.is_measuring() {
            viewport.measure = Some(std::array::from_fn(|channel| {
                // Without the mean that AC coupling takes off: it is another one in each picture.
                let setup =
                    ChannelSetup { is_ac: false, ..self.controls.setups[channel].clone() }.resolved(0.0);
                Scale { factor: setup.scale, offset: setup.offset }
            }));
        }
        if self.controls.show.persistence {
            let ranges = std::array::from_fn(|channel| {
                let setup = self.setup(channel);
                let range = self.controls.lane_range(channel).unwrap_or(Range { bottom: -1.0, top: 1.0 });
                let count = |value: f64| ((value - setup.offset) / setup.scale).round() as i16;
                let (a, b) = (count(range.bottom), count(range.top));
                (a.min(b), a.max(b))
            });
            viewport.persistence = Some(PersistenceSettings { ranges });
        }
        self.link.request(viewport)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.controls.is_done() || self.link.is_closed()
    }

    /// The vertical range to show a channel in.
    pub(crate) fn range(&mut self, place: usize) -> Range {
        let data = &self.picture.channels[place];
        let setup = self.setup(data.channel);
        let seen = extremes(data, &setup);
        self.controls.range(data.channel, seen, setup.scale.abs())
    }

    /// What a channel's numbers mean, as it is shown now.
    pub(crate) fn setup(&self, channel: usize) -> ChannelSetup {
        let shown = self.picture.channels.iter().find(|data| data.channel == channel);
        let mean = shown.map_or(0.0, |data| data.mean);
        let own = &self.controls.setups[channel % LANES];
        match self.controls.math.filter(|_| channel == MATH_CHANNEL) {
            Some(operation) => self.math_setup(operation, own).resolved(mean),
            None => own.resolved(mean),
        }
    }

    /// What the math channel's numbers mean follows from its inputs, and from picture to picture.
    fn math_setup(&self, operation: MathOperation, own: &ChannelSetup) -> ChannelSetup {
        let [a, b] = self.controls.math_inputs.map(|channel| &self.controls.setups[channel % LANES]);
        let [name_a, name_b] =
            self.controls.math_inputs.map(|channel| self.controls.setups[channel % LANES].label(channel));
        let scale = self.picture.math.unwrap_or(Scale::COUNTS);
        ChannelSetup {
            name: if own.name.is_empty() { operation.words(&name_a, &name_b) } else { own.name.clone() },
            unit: operation.unit(&a.unit, &b.unit, self.picture.axis_unit()),
            scale: scale.factor,
            offset: scale.offset,
            ..own.clone()
        }
    }

    /// What the math channel is computed of.
    fn math_settings(&self) -> Option<MathSettings> {
        let input = |channel: usize| {
            // Its mean, where AC coupling takes it off, is another one in each picture.
            let setup = &self.controls.setups[channel % LANES];
            let plain = ChannelSetup { is_ac: false, ..setup.clone() }.resolved(0.0);
            let scale = Scale { factor: plain.scale, offset: plain.offset };
            MathInput { channel, scale, is_ac: setup.is_ac }
        };
        let [a, b] = self.controls.math_inputs.map(input);
        self.controls.math.map(|operation| MathSettings { operation, a, b })
    }

    /// What this scope costs: processor and history.
    fn costs(&self) -> String {
        let history = Engineering::new(self.picture.memory_bytes as f64, "B");
        match self.cpu_part {
            _ if self.picture.memory_bytes == 0 => String::new(),
            Some(part) => format!("cpu {:.0} %  history {history}", part * 100.0),
            None => format!("history {history}"),
        }
    }

    /// Says something for a few seconds.
    pub(crate) fn say(&mut self, text: String) {
        self.said = Some((text, monotonic_ns()));
        self.hud_made_ns = 0;
    }

    /// Begins the statistics anew.
    pub(crate) fn clear_statistics(&mut self) {
        self.statistics = Default::default();
    }

    fn count_measurements(&mut self) {
        let (count, span) = (self.picture.measured_count, self.picture.span_samples);
        if self.counted.1 != span {
            self.clear_statistics();
        }
        if self.counted != (count, span) {
            for measured in &self.picture.measured {
                self.statistics[measured.channel % LANES].add(&measured.set);
            }
        }
        self.counted = (count, span);
    }

    /// New words a few times a second: digits that change at every frame cannot be read.
    fn refresh_hud(&mut self) -> bool {
        let now_ns = monotonic_ns();
        let state = RunState::of(&self.picture, self.controls.is_paused(), now_ns);
        let is_moving = state == RunState::Live || self.hud_made_ns == 0;
        if state == self.hud.state && !(is_moving && now_ns.saturating_sub(self.hud_made_ns) >= HUD_NS) {
            return false;
        }
        self.renew_hud(now_ns);
        true
    }

    fn trigger_words(&self, trigger: &TriggerView) -> TriggerWords {
        let setup = self.setup(trigger.settings.channel);
        let is_down = trigger.settings.slope == Slope::Falling;
        let pick = |up, down| if is_down { down } else { up };
        let is_relative = trigger.settings.coupling.is_lf_reject();
        let zero = if is_relative { setup.offset } else { 0.0 };
        let show =
            |count: i16| Engineering::new(setup.value(f64::from(count)) - zero, &setup.unit).to_string();
        let unit = self.picture.axis_unit();
        let corner = trigger.settings.coupling.corner_hz(self.picture.span());
        let hertz = if unit == "s" { "Hz" } else { "/S" };
        let holdoff_s = trigger.settings.holdoff_s;
        TriggerWords {
            source: setup.label(trigger.settings.channel),
            kind: trigger.settings.kind,
            slope: match trigger.settings.kind {
                TriggerKind::Edge => pick("rising", "falling"),
                TriggerKind::Pulse | TriggerKind::Runt => pick("positive", "negative"),
                TriggerKind::Window => pick("leaves", "enters"),
                TriggerKind::Dropout => "either",
            },
            level: match trigger.settings.kind.has_two_levels() {
                true => format!("{} \u{2026} {}", show(trigger.level), show(trigger.upper)),
                false => show(trigger.level),
            },
            coupling: corner
                .map_or(DC.into(), |corner| format!("LF reject {}", Engineering::new(corner, hertz))),
            holdoff: if holdoff_s > 0.0 {
                Engineering::new(holdoff_s, unit).to_string()
            } else {
                String::new()
            },
            state: trigger.state,
        }
    }

    fn count_pictures(&mut self, now_ns: u64) {
        let (taken, since_ns) = self.taken;
        let seconds = now_ns.saturating_sub(since_ns) as f64 * 1e-9;
        if seconds >= 1.0 {
            self.cpu_part = self.cpu.look(now_ns);
            self.pictures_per_s = if since_ns == 0 { 0.0 } else { f64::from(taken) / seconds };
            self.taken = (0, now_ns);
        }
    }

    /// New words now.
    pub(crate) fn renew_hud(&mut self, now_ns: u64) {
        self.count_pictures(now_ns);
        let status = (self.options.status)();
        self.places.look(&self.picture.gaps, &status);
        let is_paused = self.controls.is_paused();
        self.hud = Hud::new(&self.picture, &status, is_paused, self.pictures_per_s, now_ns);
        self.hud.costs = self.costs();
        self.hud.trigger = self.picture.trigger.map(|trigger| self.trigger_words(&trigger));
        self.said = self.said.take().filter(|(_, since_ns)| now_ns.saturating_sub(*since_ns) < SAID_NS);
        if let Some((said, _)) = &self.said {
            self.hud.notice = Some(said.clone());
        }
        if self.generator.is_paused {
            self.hud.notice = Some("the generator is paused (G)".into());
        }
        self.hud_made_ns = now_ns;
    }
}

impl Drop for Face {
    fn drop(&mut self) {
        if let Some(keep) = self.options.keep_session.take() {
            keep(&Session::of(&self.controls));
        }
    }
}

/// Where a trigger shows on the screen.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct TriggerMarks {
    /// Place of the trigger, 0.0 left edge to 1.0 right edge.
    pub(crate) part: Option<f64>,
    /// The channel and its level in raw counts, or both levels.
    pub(crate) levels: Vec<(usize, f64)>,
}

/// The smallest and the largest value of what is visible.
pub(crate) fn extremes(data: &ChannelColumns, setup: &ChannelSetup) -> Option<Range> {
    let visible = data.columns.iter().filter(|column| !column.is_empty());
    let (min, max) = visible.fold((i16::MAX, i16::MIN), |(min, max), c| (min.min(c.min), max.max(c.max)));
    let (a, b) = (setup.value(f64::from(min)), setup.value(f64::from(max)));
    (min <= max).then(|| Range { bottom: a.min(b), top: a.max(b) })
}

const HUD_NS: u64 = 150_000_000;
/// How long something that was said can be read.
const SAID_NS: u64 = 6_000_000_000;
