//! What a person has set: the same in the window and in the terminal.

use crate::keys::{Action, Step};
use crate::options::{ChannelSetup, ThemeChoice, Vertical, ViewOptions};
use crate::picture::Picture;
use crate::segments::Pin;
use crate::span;
use crate::spectrum::{SIZE_MAX, SIZE_MIN, SpectrumSettings};
use crate::trigger::{TriggerMode, TriggerSettings};
use crate::vertical::{AutoRange, Range};
use crate::viewport::{ChannelMask, Viewport, Window};
use grebe_flow::monotonic_ns;
use grebe_scope::{Slope, Window as Weighting, step_125_down, step_125_up};

/// The settings of one face.
#[derive(Debug)]
pub(crate) struct Controls {
    span: Option<f64>,
    channels: ChannelMask,
    /// The right edge, as a sample index, while the picture is held.
    held_at: Option<f64>,
    /// The sample index that time was counted from when the picture was held.
    reference: f64,
    trigger: TriggerSettings,
    /// Whether the person chose a trigger mode; until then the span does.
    is_mode_chosen: bool,
    cursors: Option<[f64; 2]>,
    /// Which cursor moves by keys.
    moving_cursor: usize,
    is_measuring: bool,
    is_help_open: bool,
    is_done: bool,
    theme: ThemeChoice,
    ranges: [AutoRange; 8],
    /// What the channels are, by number.
    pub(crate) setups: [ChannelSetup; 8],
    /// The channel that the keys for one channel work on.
    pub(crate) selected: usize,
    pub(crate) show: Show,
    pub(crate) spectrum: SpectrumSettings,
    /// The shown part of the spectrum: 0.0 is 0 Hz, 1.0 half the rate.
    pub(crate) spectrum_zoom: (f64, f64),
    pub(crate) spectrum_bottom_db: f64,
    pub(crate) pins: Vec<Pin>,
    /// Number of the next pin.
    pub(crate) pin_number: u32,
    /// The trigger that the picture is held at.
    held_trigger: Option<f64>,
}

/// What is shown beside the traces, and how they are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Show {
    pub(crate) spectrum: bool,
    pub(crate) waterfall: bool,
    pub(crate) channel_panel: bool,
    pub(crate) overlay: bool,
    pub(crate) persistence: bool,
    pub(crate) segments: bool,
    pub(crate) statistics: bool,
}

impl Controls {
    pub(crate) fn new(options: &ViewOptions) -> Controls {
        let mut controls = Controls {
            span: options.span,
            channels: ChannelMask::ALL,
            held_at: None,
            reference: 0.0,
            trigger: TriggerSettings::new(TriggerMode::Auto),
            is_mode_chosen: false,
            cursors: None,
            moving_cursor: 0,
            is_measuring: false,
            is_help_open: false,
            is_done: false,
            theme: options.theme.unwrap_or_default(),
            ranges: std::array::from_fn(|_| AutoRange::new()),
            setups: std::array::from_fn(|channel| options.channel(channel)),
            selected: 0,
            show: Show::default(),
            spectrum: SpectrumSettings::default(),
            spectrum_zoom: (0.0, 1.0),
            spectrum_bottom_db: -60.0,
            pins: Vec::new(),
            pin_number: 1,
            held_trigger: None,
        };
        if let Some(session) = &options.session {
            session.restore(&mut controls);
            controls.span = options.span.or(controls.span);
            controls.theme = options.theme.unwrap_or(controls.theme);
            for (setup, given) in controls.setups.iter_mut().zip(&options.channels) {
                if *given != ChannelSetup::default() {
                    *setup = given.clone();
                }
            }
        }
        controls.show.spectrum |= options.spectrum;
        controls
    }

    pub(crate) fn span(&self) -> Option<f64> {
        self.span
    }

    pub(crate) fn set_span(&mut self, span: Option<f64>) {
        self.span = span;
    }

    pub(crate) fn set_theme(&mut self, theme: ThemeChoice) {
        self.theme = theme;
    }

    pub(crate) fn channels(&self) -> ChannelMask {
        self.channels
    }

    pub(crate) fn set_channels(&mut self, channels: ChannelMask) {
        self.channels = channels;
    }

    pub(crate) fn set_cursors(&mut self, cursors: [f64; 2]) {
        self.cursors = Some(cursors);
    }

    /// The trigger, and whether its mode was chosen.
    pub(crate) fn trigger_settings(&self) -> (TriggerSettings, bool) {
        (self.trigger, self.is_mode_chosen)
    }

    pub(crate) fn set_trigger(&mut self, trigger: TriggerSettings, is_mode_chosen: bool) {
        (self.trigger, self.is_mode_chosen) = (trigger, is_mode_chosen);
    }

    /// Does it; `picture` is what the person sees.
    pub(crate) fn apply(&mut self, action: Action, picture: &Picture) {
        match action {
            Action::Pause if self.held_at.is_some() => self.held_at = None,
            Action::Pause => self.hold(picture, picture.right_index()),
            Action::Shorter => self.zoom(picture, true, 0.5),
            Action::Longer => self.zoom(picture, false, 0.5),
            Action::Earlier => self.pan(picture, -0.5),
            Action::Later => self.pan(picture, 0.5),
            Action::Live => self.held_at = None,
            Action::Channel(channel) => self.channels = self.channels.toggled(channel),
            Action::Trigger(mode) => self.choose_mode(mode),
            Action::NextTrigger => self.choose_mode(match self.mode(picture) {
                TriggerMode::Roll => TriggerMode::Auto,
                TriggerMode::Auto => TriggerMode::Normal,
                TriggerMode::Normal => TriggerMode::Single,
                TriggerMode::Single => TriggerMode::Roll,
            }),
            Action::Slope => {
                self.trigger.slope = match self.trigger.slope {
                    Slope::Rising => Slope::Falling,
                    _ => Slope::Rising,
                }
            }
            Action::Source => {
                let channels = picture.stream.map_or(1, |stream| stream.channels);
                self.trigger.channel = (self.trigger.channel + 1) % channels;
                self.trigger.level = None;
            }
            // The face knows the lane's range and sets the level.
            Action::Level(_) => {}
            Action::LevelAuto => self.trigger.level = None,
            Action::Cursors => {
                let (start, span) = (self.axis_start(picture), picture.span());
                let fresh = [start + span * 0.35, start + span * 0.65];
                self.cursors = if self.cursors.is_some() { None } else { Some(fresh) };
            }
            Action::OtherCursor => self.moving_cursor = 1 - self.moving_cursor,
            Action::MoveCursor(steps) => {
                let step = steps * picture.span() / 100.0;
                if let Some(cursors) = &mut self.cursors {
                    cursors[self.moving_cursor] += step;
                }
            }
            Action::TriggerPlace => {
                self.trigger.position = match self.trigger.position {
                    place if place < 0.3 => 0.5,
                    place if place < 0.7 => 0.9,
                    _ => 0.1,
                }
            }
            Action::Measure => self.is_measuring = !self.is_measuring,
            Action::Help => self.is_help_open = !self.is_help_open,
            Action::Theme => self.theme = self.theme.other(),
            Action::NextChannel => {
                let shown: Vec<usize> = picture.channels.iter().map(|data| data.channel).collect();
                let next = shown.iter().find(|&&channel| channel > self.selected).or(shown.first());
                self.selected = next.copied().unwrap_or(0);
            }
            Action::Select(channel) => self.selected = channel % 8,
            Action::Vertical(step) => self.step_vertical(step),
            Action::Position(divisions) => {
                let vertical = self.vertical();
                let position = vertical.position + divisions;
                self.setups[self.selected].vertical = Some(Vertical { position, ..vertical });
            }
            Action::VerticalAuto => self.setups[self.selected].vertical = None,
            Action::Invert => {
                let setup = &mut self.setups[self.selected];
                setup.is_inverted = !setup.is_inverted;
                self.ranges[self.selected] = AutoRange::new();
            }
            Action::Coupling => {
                let setup = &mut self.setups[self.selected];
                setup.is_ac = !setup.is_ac;
                self.ranges[self.selected] = AutoRange::new();
            }
            Action::Overlay => self.show.overlay = !self.show.overlay,
            Action::Persistence => self.show.persistence = !self.show.persistence,
            Action::Channels => self.show.channel_panel = !self.show.channel_panel,
            Action::Statistics => {
                self.show.statistics = !self.show.statistics;
                self.is_measuring |= self.show.statistics;
            }
            Action::Spectrum => self.show.spectrum = !self.show.spectrum,
            Action::Waterfall => self.show.waterfall = !self.show.waterfall,
            Action::TransformSize(Step::Down) => self.spectrum.size = (self.spectrum.size / 2).max(SIZE_MIN),
            Action::TransformSize(Step::Up) => self.spectrum.size = (self.spectrum.size * 2).min(SIZE_MAX),
            Action::Weighting => {
                let at = Weighting::ALL.iter().position(|&window| window == self.spectrum.window);
                self.spectrum.window = Weighting::ALL[(at.unwrap_or(0) + 1) % Weighting::ALL.len()];
            }
            Action::Averages => {
                self.spectrum.averages = match self.spectrum.averages {
                    1 => 4,
                    4 => 16,
                    16 => 64,
                    _ => 1,
                }
            }
            Action::PeakHold => self.spectrum.is_peak_held = !self.spectrum.is_peak_held,
            // The face has what is to be saved, the list of triggers, and the generator.
            Action::Save(_) | Action::Segment(_) | Action::Pin => {}
            Action::GeneratorPause | Action::GeneratorRate(_) | Action::GeneratorWave => {}
            Action::Segments => self.show.segments = !self.show.segments,
            Action::TriggerKind => {
                self.trigger.kind = self.trigger.kind.next();
                self.trigger.level = None;
            }
            Action::Back if self.is_help_open => self.is_help_open = false,
            Action::Back | Action::Quit => self.is_done = true,
        }
    }

    /// Moves by a part of the screen, to the right where positive; holds the picture.
    pub(crate) fn pan(&mut self, picture: &Picture, part: f64) {
        self.hold(picture, self.right_index(picture) + part * self.span_samples(picture));
    }

    /// Goes to a 1-2-5 step next to the span, keeping what lies under `at` (0.0 left edge, 1.0 right edge) in place
    /// where the picture is held.
    pub(crate) fn zoom(&mut self, picture: &Picture, is_shorter: bool, at: f64) {
        let (span, samples) = (self.span.unwrap_or(picture.span()), self.span_samples(picture));
        let next = match is_shorter {
            true => span::shorter(span, rate_hz(picture)),
            false => span::longer(span),
        };
        self.span = Some(next);
        if self.held_at.is_some() {
            let fixed = self.right_index(picture) - (1.0 - at) * samples;
            self.hold(picture, fixed + (1.0 - at) * self.span_samples(picture));
        }
    }

    /// What to ask the scope for.
    pub(crate) fn viewport(&self, picture: &Picture, columns: usize) -> Viewport {
        let trigger = TriggerSettings { mode: self.mode(picture), ..self.trigger };
        let window = self.held_at.map_or(Window::Latest, |at| Window::Ending { at });
        Viewport {
            window,
            span: self.span,
            columns,
            channels: self.channels,
            trigger: Some(trigger),
            measure: None,
            // The face knows the ranges.
            persistence: None,
            spectrum: (self.show.spectrum || self.show.waterfall).then(|| SpectrumSettings {
                waterfall: self.show.waterfall.then_some(self.selected),
                ..self.spectrum
            }),
        }
    }

    /// The vertical range of a channel whose visible extremes are `seen`, in units of `resolution` a count.
    pub(crate) fn range(&mut self, channel: usize, seen: Option<Range>, resolution: f64) -> Range {
        let range = self.ranges[channel % 8].follow(seen, resolution, monotonic_ns());
        self.setups[channel % 8].vertical.map_or(range, Range::of)
    }

    /// The fixed vertical scale of the selected channel, or one that is near what it shows.
    fn vertical(&self) -> Vertical {
        let range = self.lane_range(self.selected).unwrap_or(Range { bottom: -1.0, top: 1.0 });
        self.setups[self.selected].vertical.unwrap_or_else(|| {
            let per_division = step_125_up(range.height() / DIVISIONS_VERTICAL);
            let middle = (range.top + range.bottom) / 2.0;
            Vertical { per_division, position: -(middle / per_division).round() }
        })
    }

    fn step_vertical(&mut self, step: Step) {
        let vertical = self.vertical();
        let per_division = match step {
            Step::Down => step_125_down(vertical.per_division * 0.9),
            Step::Up => step_125_up(vertical.per_division * 1.1),
        };
        // What is in the middle of the screen stays there.
        let position = vertical.position * vertical.per_division / per_division;
        self.setups[self.selected].vertical = Some(Vertical { per_division, position });
    }

    /// The trigger mode: the one chosen, or one that suits the span. What takes half a second to pass can be followed
    /// by eye; what is shorter needs to be held.
    pub(crate) fn mode(&self, picture: &Picture) -> TriggerMode {
        let is_slow = self.span.unwrap_or(picture.span()) >= ROLL_SPAN_S || picture.axis_unit() != "s";
        if is_slow && !self.is_mode_chosen { TriggerMode::Roll } else { self.trigger.mode }
    }

    /// The range of a channel's lane, in its units.
    pub(crate) fn lane_range(&self, channel: usize) -> Option<Range> {
        let setup = &self.setups[channel % 8];
        setup.vertical.map(Range::of).or(self.ranges[channel % 8].current())
    }

    /// The trigger level, in raw counts.
    pub(crate) fn set_level(&mut self, level: i16) {
        self.trigger.level = Some(level);
    }

    /// Where on the screen the trigger stands, 0.0 to 1.0.
    #[cfg(feature = "window")]
    pub(crate) fn set_trigger_position(&mut self, position: f64) {
        self.trigger.position = position.clamp(0.0, 1.0);
    }

    pub(crate) fn set_measuring(&mut self) {
        self.is_measuring = true;
    }

    pub(crate) fn is_measuring(&self) -> bool {
        self.is_measuring
    }

    /// Both cursors, in units of the time axis.
    pub(crate) fn cursors(&self) -> Option<[f64; 2]> {
        self.cursors
    }

    #[cfg(feature = "window")]
    pub(crate) fn set_cursor(&mut self, which: usize, at: f64) {
        if let Some(cursor) = self.cursors.as_mut().and_then(|cursors| cursors.get_mut(which)) {
            *cursor = at;
        }
    }

    /// The value of the time axis at the left edge: time counts from the trigger, else from the newest sample, and for a
    /// held picture from where it counted when it was held.
    pub(crate) fn axis_start(&self, picture: &Picture) -> f64 {
        (picture.left_index - self.reference(picture)) / picture.rate_or_one()
    }

    fn reference(&self, picture: &Picture) -> f64 {
        match (self.held_at, picture.trigger.and_then(|trigger| trigger.at)) {
            (Some(_), _) => self.reference,
            (None, Some(at)) => at,
            (None, None) => picture.right_index(),
        }
    }

    fn choose_mode(&mut self, mode: TriggerMode) {
        self.trigger.mode = mode;
        self.trigger.shot += u32::from(mode == TriggerMode::Single);
        self.is_mode_chosen = true;
        self.held_at = None;
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.held_at.is_some()
    }

    pub(crate) fn is_help_open(&self) -> bool {
        self.is_help_open
    }

    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    pub(crate) fn theme(&self) -> ThemeChoice {
        self.theme
    }

    /// The right edge as it is set: the picture may be older than the setting.
    fn right_index(&self, picture: &Picture) -> f64 {
        self.held_at.unwrap_or(picture.right_index())
    }

    fn span_samples(&self, picture: &Picture) -> f64 {
        self.span.map_or(picture.span_samples, |span| span * picture.rate_or_one())
    }

    /// Holds the picture at a trigger, which stands where triggers do.
    pub(crate) fn hold_trigger(&mut self, picture: &Picture, at: f64) {
        let post = (1.0 - self.trigger.position) * self.span_samples(picture);
        self.held_at = Some(at + post);
        self.reference = at;
        self.held_trigger = Some(at);
    }

    /// The trigger that the picture is held at.
    pub(crate) fn held_trigger(&self) -> Option<f64> {
        self.held_trigger.filter(|_| self.held_at.is_some())
    }

    /// Holds the right edge at a sample index, within a screen of what there is.
    fn hold(&mut self, picture: &Picture, right_index: f64) {
        if self.held_at.is_none() {
            self.reference = self.reference(picture);
            self.held_trigger = None;
        }
        let (oldest, next) = (picture.oldest_index as f64, picture.next_index as f64);
        let air = self.span_samples(picture) * 0.5;
        self.held_at = Some(right_index.clamp(oldest + air.min(next - oldest), next + air));
    }
}

fn rate_hz(picture: &Picture) -> f64 {
    picture.stream.map_or(0.0, |stream| stream.rate_hz)
}

/// Shorter spans are triggered, longer ones roll, until the person says otherwise.
const ROLL_SPAN_S: f64 = 0.5;
/// Divisions of a vertical scale that is set.
pub(crate) const DIVISIONS_VERTICAL: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::SourceStatus;

    fn controls() -> Controls {
        Controls::new(&ViewOptions::new(SourceStatus::default))
    }

    fn picture() -> Picture {
        let stream =
            crate::StreamInfo { channels: 2, rate_hz: 1000.0, block_samples: 10, generator_drops: 0 };
        Picture {
            stream: Some(stream),
            left_index: 9_000.0,
            span_samples: 1000.0,
            next_index: 10_000,
            ..Picture::waiting()
        }
    }

    #[test]
    fn pausing_holds_the_right_edge_and_running_lets_go() {
        let mut controls = controls();
        controls.apply(Action::Pause, &picture());
        assert_eq!(controls.viewport(&picture(), 100).window, Window::Ending { at: 10_000.0 });
        controls.apply(Action::Pause, &picture());
        assert_eq!(controls.viewport(&picture(), 100).window, Window::Latest);
    }

    #[test]
    fn spans_step_and_zooming_keeps_what_is_under_the_pointer() {
        let mut controls = controls();
        controls.apply(Action::Shorter, &picture());
        assert_eq!(controls.viewport(&picture(), 100).span, Some(0.5));
        assert_eq!(controls.viewport(&picture(), 100).window, Window::Latest);
        controls.apply(Action::Pause, &picture());
        controls.zoom(&picture(), true, 0.25);
        // The span is 500 samples by now, and its quarter, sample 9625, stays where it is: 9625 + 0.75 * 200.
        assert_eq!(controls.viewport(&picture(), 100).window, Window::Ending { at: 9_775.0 });
    }

    #[test]
    fn panning_stays_near_the_stream() {
        let mut controls = controls();
        for _ in 0..100 {
            controls.apply(Action::Earlier, &picture());
        }
        let Window::Ending { at } = controls.viewport(&picture(), 100).window else {
            panic!("panning holds the picture")
        };
        assert!((500.0..=9_500.0).contains(&at), "{at}");
        controls.apply(Action::Live, &picture());
        assert!(!controls.is_paused());
    }

    #[test]
    fn channels_switch_by_number() {
        let mut controls = controls();
        controls.apply(Action::Channel(1), &picture());
        let mask = controls.viewport(&picture(), 1).channels;
        assert!(mask.contains(0) && !mask.contains(1) && mask.contains(7));
    }
}
