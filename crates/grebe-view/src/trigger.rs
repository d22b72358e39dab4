//! A picture that stands still: each trigger waits until the window behind it is filled, then is shown.

use std::collections::VecDeque;

use grebe_scope::{Condition, Passage, Polarity, Pyramid, ScopeError, Slope, Trigger};

use crate::hud::DIVISIONS;
use crate::picture::StreamInfo;

/// What holds a live picture in place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TriggerSettings {
    /// When pictures are taken.
    pub mode: TriggerMode,
    /// What kind of event triggers.
    pub kind: TriggerKind,
    /// The channel that triggers, from 0.
    pub channel: usize,
    /// Direction of the crossing; `Rising` also means pulses above the level, and leaving a window.
    pub slope: Slope,
    /// The level to cross, in raw counts; `None` follows the middle of the signal. For two levels, the middle between
    /// them: they lie a quarter of the signal's height above and below.
    pub level: Option<i16>,
    /// Where the trigger stands on the screen: 0.0 left edge, 1.0 right edge.
    pub position: f64,
    /// Grows to make ready for the next single shot.
    pub shot: u32,
}

/// What kind of event triggers. Times are a division of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TriggerKind {
    /// The level is crossed.
    #[default]
    Edge,
    /// A pulse shorter than a division.
    Pulse,
    /// A pulse that passes one of two levels and not the other.
    Runt,
    /// The range between two levels is left or entered.
    Window,
    /// The level is not crossed for a division.
    Dropout,
}

impl TriggerKind {
    /// The next one, for a key that goes through all.
    pub(crate) fn next(self) -> TriggerKind {
        let at = TriggerKind::ALL.iter().position(|&kind| kind == self).unwrap_or(0);
        TriggerKind::ALL[(at + 1) % TriggerKind::ALL.len()]
    }

    /// All, in the order of a menu.
    pub const ALL: [TriggerKind; 5] =
        [TriggerKind::Edge, TriggerKind::Pulse, TriggerKind::Runt, TriggerKind::Window, TriggerKind::Dropout];

    /// Its name in a menu.
    pub fn name(self) -> &'static str {
        match self {
            TriggerKind::Edge => "edge",
            TriggerKind::Pulse => "pulse",
            TriggerKind::Runt => "runt",
            TriggerKind::Window => "window",
            TriggerKind::Dropout => "dropout",
        }
    }

    /// Whether it has two levels.
    pub(crate) fn has_two_levels(self) -> bool {
        matches!(self, TriggerKind::Runt | TriggerKind::Window)
    }

    fn is_timed(self) -> bool {
        matches!(self, TriggerKind::Pulse | TriggerKind::Dropout)
    }
}

/// When triggered pictures are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerMode {
    /// No trigger: the newest samples at the right edge.
    Roll,
    /// At each trigger; the newest samples where none comes for a while.
    Auto,
    /// At each trigger, and only then.
    Normal,
    /// At one trigger, which stays.
    Single,
}

/// What the trigger does: to be shown, since a scope that stands still must say why.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TriggerView {
    /// The settings, with the level that is used.
    pub settings: TriggerSettings,
    /// The level in raw counts; the lower one of two.
    pub level: i16,
    /// The upper one of two levels, else the same.
    pub upper: i16,
    /// Whether a picture is being taken.
    pub state: TriggerState,
    /// Absolute sample index of the trigger that is shown.
    pub at: Option<f64>,
    /// Triggers found since the settings changed, shown or not.
    pub found: u64,
}

/// Whether a triggered picture is being taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerState {
    /// No trigger yet.
    Ready,
    /// The picture shows a trigger, and the next is waited for.
    Triggered,
    /// None came for a while: the picture runs free.
    Free,
    /// The single shot was taken.
    Stopped,
}

impl TriggerSettings {
    /// A rising edge of the first channel through the middle of the signal, in the middle of the screen.
    pub fn new(mode: TriggerMode) -> TriggerSettings {
        let (kind, slope) = (TriggerKind::Edge, Slope::Rising);
        TriggerSettings { mode, kind, channel: 0, slope, level: None, position: 0.5, shot: 0 }
    }

    /// Whether another trigger is needed for `other`: where it stands on the screen does not matter.
    fn is_same_trigger(&self, other: &TriggerSettings) -> bool {
        TriggerSettings { position: other.position, ..*self } == *other
    }
}

/// Follows one channel and says which window to show.
#[derive(Debug)]
pub(crate) struct TriggerRun {
    settings: TriggerSettings,
    levels: Levels,
    condition: Condition,
    trigger: Trigger,
    /// The last triggers, shown or not.
    recent: VecDeque<f64>,
    /// Samples from a trigger to the right edge.
    post_samples: f64,
    rate_hz: f64,
    /// A trigger whose window is not filled yet.
    filling: Option<f64>,
    /// The newest trigger whose window is filled.
    complete: Option<f64>,
    next_index: u64,
    is_stopped: bool,
}

impl TriggerRun {
    /// A trigger over what `pyramid` holds and what will come.
    ///
    /// # Errors
    /// None in practice: the levels are made so that they lie apart.
    pub(crate) fn new(
        settings: TriggerSettings,
        span_samples: f64,
        rate_hz: f64,
        pyramid: &Pyramid,
    ) -> Result<TriggerRun, ScopeError> {
        let settings = TriggerSettings { channel: settings.channel.min(pyramid.channels() - 1), ..settings };
        let look_back = look_back(span_samples, rate_hz);
        let levels = Levels::of(&settings, look_back, pyramid);
        let condition = condition(&settings, levels, span_samples);
        let mut run = TriggerRun {
            settings,
            levels,
            trigger: Trigger::new(condition.clone(), 0)?,
            condition,
            recent: VecDeque::with_capacity(RECENT_MAX),
            post_samples: (1.0 - settings.position) * span_samples,
            rate_hz,
            filling: None,
            complete: None,
            next_index: 0,
            is_stopped: false,
        };
        // A single shot is the next trigger; the others may show one that is already there.
        if settings.mode != TriggerMode::Single {
            let end = pyramid.next_index();
            let start = end.saturating_sub(look_back.min(LOOK_BACK_SAMPLES));
            pyramid.samples(settings.channel, start..end, |first, samples| {
                run.scan(first, samples);
            });
        }
        run.next_index = pyramid.next_index();
        Ok(run)
    }

    /// Whether it does what `settings` ask for over `span_samples`; a change that needs no new trigger is taken over.
    pub(crate) fn adopt(&mut self, settings: &TriggerSettings, span_samples: f64, pyramid: &Pyramid) -> bool {
        let settings = TriggerSettings { channel: settings.channel.min(pyramid.channels() - 1), ..*settings };
        if !self.settings.is_same_trigger(&settings) {
            return false;
        }
        // A division is another time at another span.
        if settings.kind.is_timed() && condition(&settings, self.levels, span_samples) != self.condition {
            return false;
        }
        self.settings = settings;
        self.post_samples = (1.0 - settings.position) * span_samples;
        if (settings.level.is_some() && !settings.kind.has_two_levels()) || self.is_stopped {
            return true;
        }
        // The middle of the signal moved away, or its noise grew: look for it anew.
        let now = Levels::of(&settings, look_back(span_samples, self.rate_hz), pyramid);
        self.levels.is_near(&now)
    }

    /// What is looked for, as set up.
    pub(crate) fn condition(&self) -> &Condition {
        &self.condition
    }

    /// The channel that triggers.
    pub(crate) fn channel(&self) -> usize {
        self.settings.channel
    }

    /// Absolute sample indices of the last triggers, shown or not, the newest last, and of the one that is shown.
    pub(crate) fn recent(&self) -> Vec<f64> {
        let newest = self.recent.iter().skip(self.recent.len().saturating_sub(LISTED_MAX));
        let shown = self.complete.filter(|complete| newest.clone().all(|at| at > complete));
        shown.into_iter().chain(newest.copied()).collect()
    }

    /// Those that lie within a stretch.
    pub(crate) fn recent_in(&self, range: std::ops::Range<f64>) -> Vec<f64> {
        self.recent.iter().copied().filter(|at| range.contains(at)).collect()
    }

    /// Takes the next block of the trigger's channel.
    pub(crate) fn append(&mut self, first_sample_index: u64, block: &[&[i16]]) {
        if let Some(samples) = block.get(self.settings.channel) {
            self.scan(first_sample_index, samples);
        }
    }

    /// The right edge to show now, `None` for the newest samples; and what to say of it.
    pub(crate) fn window(&mut self, stream: StreamInfo, span_samples: f64) -> (Option<f64>, TriggerView) {
        self.settle();
        let wait = (stream.rate_or_one() * AUTO_WAIT_S).max(span_samples * 2.0);
        let is_old = self.complete.is_none_or(|at| self.next_index as f64 - at > wait);
        let (shown, state) = match self.settings.mode {
            TriggerMode::Roll => (None, TriggerState::Free),
            TriggerMode::Auto if is_old => (None, TriggerState::Free),
            TriggerMode::Single if self.is_stopped => (self.complete, TriggerState::Stopped),
            _ => match self.complete {
                Some(at) => (Some(at), TriggerState::Triggered),
                None => (None, TriggerState::Ready),
            },
        };
        let view = TriggerView {
            settings: self.settings,
            level: self.levels.low,
            upper: self.levels.high,
            state,
            at: shown,
            found: self.trigger.found(),
        };
        (shown.map(|at| at + self.post_samples), view)
    }

    fn scan(&mut self, first_sample_index: u64, samples: &[i16]) {
        let TriggerRun { trigger, filling, complete, post_samples, is_stopped, settings, recent, .. } = self;
        trigger.scan(first_sample_index, samples, |event| {
            let at = event.position();
            if recent.len() == RECENT_MAX {
                recent.pop_front();
            }
            recent.push_back(at);
            if let Some(earlier) = *filling
                && at >= earlier + *post_samples
            {
                take(complete, filling, is_stopped, settings.mode);
            }
            if filling.is_none() && !*is_stopped {
                *filling = Some(at);
            }
        });
        self.next_index = first_sample_index + samples.len() as u64;
        self.settle();
    }

    /// Shows the trigger whose window is filled by now.
    fn settle(&mut self) {
        if self.filling.is_some_and(|at| self.next_index as f64 >= at + self.post_samples) {
            take(&mut self.complete, &mut self.filling, &mut self.is_stopped, self.settings.mode);
        }
    }
}

fn take(complete: &mut Option<f64>, filling: &mut Option<f64>, is_stopped: &mut bool, mode: TriggerMode) {
    if !*is_stopped {
        *complete = filling.take();
        *is_stopped = mode == TriggerMode::Single;
    }
}

/// Samples in which the signal shows what it does: longer than the screen, where that shows less than a period.
fn look_back(span_samples: f64, rate_hz: f64) -> u64 {
    (span_samples * LOOK_BACK_SPANS).max(rate_hz * LOOK_BACK_S).max(1.0) as u64
}

/// The condition that a trigger looks for.
fn condition(settings: &TriggerSettings, levels: Levels, span_samples: f64) -> Condition {
    let Levels { low, high, hysteresis } = levels;
    let polarity = match settings.slope {
        Slope::Falling => Polarity::Negative,
        _ => Polarity::Positive,
    };
    let division = ((span_samples / DIVISIONS) as u64).max(1);
    match settings.kind {
        TriggerKind::Edge => Condition::Edge { slope: settings.slope, level: low, hysteresis },
        TriggerKind::Pulse => {
            Condition::PulseWidth { polarity, level: low, hysteresis, samples: 1..=division }
        }
        TriggerKind::Runt => Condition::Runt { polarity, low, high },
        TriggerKind::Window => {
            let passage = if polarity == Polarity::Positive { Passage::Leaves } else { Passage::Enters };
            Condition::Window { passage, low, high, hysteresis }
        }
        TriggerKind::Dropout => Condition::Dropout { level: low, hysteresis, samples: division },
    }
}

/// One level, or two that differ, and a hysteresis of a sixteenth of the signal's height.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Levels {
    low: i16,
    high: i16,
    hysteresis: u16,
}

impl Levels {
    /// As set, or by what the channel did lately.
    fn of(settings: &TriggerSettings, look_back: u64, pyramid: &Pyramid) -> Levels {
        let end = pyramid.next_index();
        let stats = pyramid.range_stats(settings.channel, end.saturating_sub(look_back)..end).stats;
        let (min, max) = (i32::from(stats.min), i32::from(stats.max));
        let height = (max - min).max(0);
        let middle = settings.level.map_or(if min > max { 0 } else { (min + max) / 2 }, i32::from);
        let within = |level: i32| level.clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        let apart = if settings.kind.has_two_levels() { (height / 4).max(1) } else { 0 };
        let (low, high) = (within(middle - apart), within(middle + apart));
        Levels { low, high, hysteresis: (height / 16) as u16 }
    }

    /// Whether `now` is as good as this.
    fn is_near(&self, now: &Levels) -> bool {
        let reach = u32::from(now.hysteresis) * 2;
        let near = |a: i16, b: i16| i32::from(a).abs_diff(i32::from(b)) <= reach;
        near(self.low, now.low)
            && near(self.high, now.high)
            && now.hysteresis <= self.hysteresis.saturating_mul(3)
    }
}

/// How far back signal heights and triggers are looked for.
const LOOK_BACK_SPANS: f64 = 4.0;
const LOOK_BACK_S: f64 = 0.25;
const LOOK_BACK_SAMPLES: u64 = 1 << 22;
/// Seconds of stream without a trigger before an automatic picture runs free, and two spans at least.
const AUTO_WAIT_S: f64 = 0.2;
/// Triggers that are remembered, and listed.
const RECENT_MAX: usize = 4096;
const LISTED_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::batch;
    use crate::viewport::Viewport;
    use crate::{Picture, ScopeCore};

    const RATE_HZ: f64 = 1e4;

    /// A sawtooth of 700 samples: one rising crossing of its middle each period, at 350 + n * 700.
    fn saw(_: usize, index: u64) -> i16 {
        ((index % 700) as i32 * 20 - 7000) as i16
    }

    fn settings(mode: TriggerMode) -> TriggerSettings {
        TriggerSettings::new(mode)
    }

    fn viewport(settings: TriggerSettings) -> Viewport {
        Viewport { span: Some(0.1), trigger: Some(settings), ..Viewport::latest(100) }
    }

    fn feed(core: &mut ScopeCore, blocks: std::ops::Range<u64>, value: impl Fn(usize, u64) -> i16 + Copy) {
        for block in blocks {
            core.ingest(&batch(block * 100, 1, 100, RATE_HZ, value), 1).unwrap();
        }
    }

    fn shown(picture: &Picture) -> (TriggerState, Option<f64>) {
        let trigger = picture.trigger.unwrap();
        (trigger.state, trigger.at)
    }

    #[test]
    fn the_picture_stands_still_on_a_periodic_signal() {
        let mut core = ScopeCore::new(1 << 20);
        feed(&mut core, 0..50, saw);
        let first = core.answer(&viewport(settings(TriggerMode::Auto)), 1);
        assert_eq!(shown(&first).0, TriggerState::Triggered);
        for block in 50..90 {
            feed(&mut core, block..block + 1, saw);
            let picture = core.answer(&viewport(settings(TriggerMode::Auto)), 1);
            let (state, at) = shown(&picture);
            assert_eq!(state, TriggerState::Triggered);
            // The middle of -7000 to 6980 is -10, half a sample before zero.
            assert_eq!(at.unwrap() % 700.0, 349.5);
            // Columns lie on a grid of 10 samples; the trigger is in the middle to within one.
            let middle = picture.left_index + 0.5 * picture.span_samples;
            assert!((middle - at.unwrap()).abs() <= 10.0, "{middle} {at:?}");
            assert!(picture.channels[0].columns.iter().all(|column| !column.is_empty()), "filled");
        }
    }

    #[test]
    fn without_a_trigger_auto_runs_free_and_normal_waits() {
        let mut core = ScopeCore::new(1 << 20);
        feed(&mut core, 0..100, |_, _| 5);
        let auto = core.answer(&viewport(settings(TriggerMode::Auto)), 1);
        assert_eq!(shown(&auto), (TriggerState::Free, None));
        assert_eq!(auto.right_index(), 10_000.0);
        let normal = core.answer(&viewport(settings(TriggerMode::Normal)), 1);
        assert_eq!(shown(&normal), (TriggerState::Ready, None));
    }

    #[test]
    fn a_single_shot_is_the_next_trigger_and_stays() {
        let mut core = ScopeCore::new(1 << 20);
        feed(&mut core, 0..50, saw);
        let mut single = settings(TriggerMode::Single);
        single.level = Some(0);
        assert_eq!(shown(&core.answer(&viewport(single), 1)), (TriggerState::Ready, None));
        feed(&mut core, 50..80, saw);
        let first = shown(&core.answer(&viewport(single), 1));
        assert_eq!(first, (TriggerState::Stopped, Some(350.0 + 7.0 * 700.0)));
        feed(&mut core, 80..120, saw);
        assert_eq!(shown(&core.answer(&viewport(single), 1)), first);
        single.shot += 1;
        core.answer(&viewport(single), 1);
        feed(&mut core, 120..150, saw);
        assert!(shown(&core.answer(&viewport(single), 1)).1 > first.1);
    }

    #[test]
    fn the_level_follows_the_middle_of_the_signal_unless_it_is_set() {
        let mut core = ScopeCore::new(1 << 20);
        feed(&mut core, 0..50, |c, i| saw(c, i) / 4 + 20_000);
        let level = core.answer(&viewport(settings(TriggerMode::Auto)), 1).trigger.unwrap().level;
        assert!((19_900..20_100).contains(&level), "{level}");
        feed(&mut core, 50..100, saw);
        let level = core.answer(&viewport(settings(TriggerMode::Auto)), 1).trigger.unwrap().level;
        assert!((-100..100).contains(&level), "{level}");
        let set = TriggerSettings { level: Some(-123), ..settings(TriggerMode::Auto) };
        assert_eq!(core.answer(&viewport(set), 1).trigger.unwrap().level, -123);
    }

    #[test]
    fn the_trigger_stands_where_it_was_put_and_every_one_is_counted() {
        let mut core = ScopeCore::new(1 << 20);
        let left = TriggerSettings { position: 0.1, ..settings(TriggerMode::Normal) };
        core.answer(&viewport(left), 1);
        feed(&mut core, 0..140, saw);
        let picture = core.answer(&viewport(left), 1);
        let place = (picture.trigger.unwrap().at.unwrap() - picture.left_index) / picture.span_samples;
        assert!((place - 0.1).abs() < 0.011, "{place}");
        feed(&mut core, 140..280, saw);
        let found = core.answer(&viewport(left), 1).trigger.unwrap().found;
        assert!((20..=40).contains(&found), "{found}");
    }
}
