//! What a person has set, and the keys that set it: the same in the window and in the terminal.

use crate::options::{ThemeChoice, ViewOptions};
use crate::picture::Picture;
use crate::span;
use crate::trigger::{TriggerMode, TriggerSettings};
use crate::vertical::{AutoRange, Range};
use crate::viewport::{ChannelMask, Viewport, Window};
use grebe_flow::monotonic_ns;
use grebe_scope::Slope;

/// Something a person wants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Action {
    /// Hold the picture, or go on.
    Pause,
    /// The next shorter span of time.
    Shorter,
    /// The next longer span of time.
    Longer,
    /// Half a screen back in time; holds the picture.
    Earlier,
    /// Half a screen forward.
    Later,
    /// To the newest samples, and on with them.
    Live,
    /// A channel on or off, from 0.
    Channel(usize),
    /// A trigger mode.
    Trigger(TriggerMode),
    /// The next trigger mode.
    NextTrigger,
    /// The other edge.
    Slope,
    /// The next channel that triggers.
    Source,
    /// The trigger level up by so many fortieths of the lane.
    Level(f64),
    /// The trigger level to the middle of the signal, and with it from then on.
    LevelAuto,
    /// Cursors on or off.
    Cursors,
    /// The cursor that moves by keys.
    OtherCursor,
    /// The cursor that moves, by so many hundredths of the screen.
    MoveCursor(f64),
    /// The trigger to the next place on the screen: a tenth, the middle, nine tenths.
    TriggerPlace,
    /// The measurement table on or off.
    Measure,
    /// The key overlay.
    Help,
    /// Dark or light.
    Theme,
    /// Out of the overlay, or else the end.
    Back,
    /// The end.
    Quit,
}

/// Keys and what they do, for the overlay and the documentation.
pub(crate) const KEYS: [(&str, &str); 15] = [
    ("space", "pause / run"),
    ("\u{2190} \u{2192}  + -", "shorter / longer time span"),
    ("[ ]", "back / forward in time"),
    ("end", "to the newest samples"),
    ("1 \u{2026} 8", "channel on / off"),
    ("m  s", "trigger: roll, auto, normal; single shot"),
    ("e  r", "trigger edge, trigger channel"),
    ("\u{2191} \u{2193}  0", "trigger level up / down, automatic"),
    ("p", "trigger at the left, in the middle, at the right"),
    ("c", "cursors on / off"),
    (", .  x", "move a cursor, the other cursor"),
    ("v", "measurements on / off"),
    ("t", "dark / light"),
    ("?", "this help"),
    ("q  esc", "quit"),
];

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
}

impl Controls {
    pub(crate) fn new(options: &ViewOptions) -> Controls {
        Controls {
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
            theme: options.theme,
            ranges: std::array::from_fn(|_| AutoRange::new()),
        }
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
        }
    }

    /// The vertical range of a channel whose visible extremes are `seen`, in units of `resolution` a count.
    pub(crate) fn range(&mut self, channel: usize, seen: Option<Range>, resolution: f64) -> Range {
        self.ranges[channel % 8].follow(seen, resolution, monotonic_ns())
    }

    /// The trigger mode: the one chosen, or one that suits the span. What takes half a second to pass can be followed
    /// by eye; what is shorter needs to be held.
    pub(crate) fn mode(&self, picture: &Picture) -> TriggerMode {
        let is_slow = self.span.unwrap_or(picture.span()) >= ROLL_SPAN_S || picture.axis_unit() != "s";
        if is_slow && !self.is_mode_chosen { TriggerMode::Roll } else { self.trigger.mode }
    }

    /// The range of a channel's lane, in its units.
    pub(crate) fn lane_range(&self, channel: usize) -> Option<Range> {
        self.ranges[channel % 8].current()
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

    /// Holds the right edge at a sample index, within a screen of what there is.
    fn hold(&mut self, picture: &Picture, right_index: f64) {
        if self.held_at.is_none() {
            self.reference = self.reference(picture);
        }
        let (oldest, next) = (picture.oldest_index as f64, picture.next_index as f64);
        let air = self.span_samples(picture) * 0.5;
        self.held_at = Some(right_index.clamp(oldest + air.min(next - oldest), next + air));
    }
}

/// By what is typed, not by where the key is: layouts differ in `+`, `-`, `[` and `?`.
pub(crate) fn char_action(typed: char) -> Option<Action> {
    match typed {
        '+' | '=' => Some(Action::Longer),
        '-' => Some(Action::Shorter),
        '[' => Some(Action::Earlier),
        ']' => Some(Action::Later),
        '?' | 'h' => Some(Action::Help),
        't' => Some(Action::Theme),
        'm' => Some(Action::NextTrigger),
        's' => Some(Action::Trigger(TriggerMode::Single)),
        'e' => Some(Action::Slope),
        'r' => Some(Action::Source),
        '0' => Some(Action::LevelAuto),
        'c' => Some(Action::Cursors),
        'x' => Some(Action::OtherCursor),
        ',' => Some(Action::MoveCursor(-1.0)),
        '.' => Some(Action::MoveCursor(1.0)),
        '<' => Some(Action::MoveCursor(-10.0)),
        '>' => Some(Action::MoveCursor(10.0)),
        'p' => Some(Action::TriggerPlace),
        'v' => Some(Action::Measure),
        'q' => Some(Action::Quit),
        '1'..='8' => Some(Action::Channel(typed as usize - '1' as usize)),
        _ => None,
    }
}

fn rate_hz(picture: &Picture) -> f64 {
    picture.stream.map_or(0.0, |stream| stream.rate_hz)
}

/// Shorter spans are triggered, longer ones roll, until the person says otherwise.
const ROLL_SPAN_S: f64 = 0.5;

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
