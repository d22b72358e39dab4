//! What window and terminal have in common: the newest picture, the settings, the words around it.

use crate::controls::{Action, Controls};
use crate::hud::{DIVISIONS, Hud, RunState, TriggerWords};
use crate::link::ScopeLink;
use crate::options::{ChannelSetup, ViewOptions};
use crate::picture::{ChannelColumns, Picture};
use crate::trigger::TriggerView;
use crate::vertical::Range;
use grebe_flow::monotonic_ns;
use grebe_scope::{Engineering, Scale, Slope, Ticks};

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
}

impl Face {
    pub(crate) fn new(link: ScopeLink, options: ViewOptions) -> Face {
        link.begin_face();
        let controls = Controls::new(&options);
        let picture = Picture::waiting();
        let hud = Hud::new(&picture, &(options.status)(), false, 0.0, monotonic_ns());
        Face { link, options, controls, picture, hud, hud_made_ns: 0, taken: (0, 0), pictures_per_s: 0.0 }
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
            self.picture = picture;
            self.taken.0 += 1;
        }
        self.refresh_hud() || is_new
    }

    pub(crate) fn act(&mut self, action: Action) {
        if let (Action::Level(steps), Some(trigger)) = (action, self.picture.trigger) {
            self.step_level(steps, trigger);
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
        let setup = self.options.channel(channel);
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
            level: Some((trigger.settings.channel, trigger.level)),
        }
    }

    /// The time axis: values at the left and the right edge, and its ticks, ten a screen.
    pub(crate) fn axis(&self) -> (f64, f64, Ticks) {
        let (start, span) = (self.controls.axis_start(&self.picture), self.picture.span());
        (start, start + span, Ticks::with_step(start, start + span, span / DIVISIONS))
    }

    /// Asks for what the settings say, `columns` wide; whether that is something else than before.
    pub(crate) fn request(&self, columns: usize) -> bool {
        let mut viewport = self.controls.viewport(&self.picture, columns);
        if self.controls.is_measuring() {
            viewport.measure = Some(std::array::from_fn(|channel| {
                let setup = self.options.channel(channel);
                Scale { factor: setup.scale, offset: setup.offset }
            }));
        }
        self.link.request(viewport)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.controls.is_done() || self.link.is_closed()
    }

    /// The vertical range to show a channel in.
    pub(crate) fn range(&mut self, place: usize) -> Range {
        let data = &self.picture.channels[place];
        let setup = self.options.channel(data.channel);
        let seen = extremes(data, &setup);
        self.controls.range(data.channel, seen, setup.scale.abs())
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
        let setup = self.options.channel(trigger.settings.channel);
        TriggerWords {
            source: setup.label(trigger.settings.channel),
            slope: if trigger.settings.slope == Slope::Falling { "falling" } else { "rising" },
            level: Engineering::new(setup.value(f64::from(trigger.level)), &setup.unit).to_string(),
            state: trigger.state,
        }
    }

    fn count_pictures(&mut self, now_ns: u64) {
        let (taken, since_ns) = self.taken;
        let seconds = now_ns.saturating_sub(since_ns) as f64 * 1e-9;
        if seconds >= 1.0 {
            self.pictures_per_s = if since_ns == 0 { 0.0 } else { f64::from(taken) / seconds };
            self.taken = (0, now_ns);
        }
    }

    /// New words now.
    pub(crate) fn renew_hud(&mut self, now_ns: u64) {
        self.count_pictures(now_ns);
        let status = (self.options.status)();
        let is_paused = self.controls.is_paused();
        self.hud = Hud::new(&self.picture, &status, is_paused, self.pictures_per_s, now_ns);
        self.hud.trigger = self.picture.trigger.map(|trigger| self.trigger_words(&trigger));
        self.hud_made_ns = now_ns;
    }
}

/// Where a trigger shows on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct TriggerMarks {
    /// Place of the trigger, 0.0 left edge to 1.0 right edge.
    pub(crate) part: Option<f64>,
    /// The channel and its level in raw counts.
    pub(crate) level: Option<(usize, i16)>,
}

/// The smallest and the largest value of what is visible.
pub(crate) fn extremes(data: &ChannelColumns, setup: &ChannelSetup) -> Option<Range> {
    let visible = data.columns.iter().filter(|column| !column.is_empty());
    let (min, max) = visible.fold((i16::MAX, i16::MIN), |(min, max), c| (min.min(c.min), max.max(c.max)));
    let (a, b) = (setup.value(f64::from(min)), setup.value(f64::from(max)));
    (min <= max).then(|| Range { bottom: a.min(b), top: a.max(b) })
}

const HUD_NS: u64 = 150_000_000;
