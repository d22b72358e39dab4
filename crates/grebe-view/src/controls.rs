//! What a person has set: the same in the window and in the terminal.

mod cursors;
mod time;
mod trigger;
mod vertical;

use crate::keys::{Action, Step};
use crate::math::{LANES, MATH_CHANNEL, MathOperation};
use crate::options::{ChannelSetup, ThemeChoice, Vertical, ViewOptions};
use crate::picture::Picture;
use crate::segments::Pin;
use crate::spectrum::{SIZE_MAX, SIZE_MIN, SpectrumSettings};
use crate::trigger::{TriggerMode, TriggerSettings};
use crate::vertical::AutoRange;
use crate::viewport::{ChannelMask, Viewport, Window};
use cursors::Cursors;
use grebe_scope::{Slope, Window as Weighting};

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
    cursors: Cursors,
    is_measuring: bool,
    is_help_open: bool,
    is_done: bool,
    theme: ThemeChoice,
    ranges: [AutoRange; LANES],
    /// What the channels are, by number.
    pub(crate) setups: [ChannelSetup; LANES],
    /// The channel that the keys for one channel work on.
    pub(crate) selected: usize,
    pub(crate) show: Show,
    pub(crate) spectrum: SpectrumSettings,
    /// The shown part of the spectrum: 0.0 is 0 Hz, 1.0 half the rate.
    pub(crate) spectrum_zoom: (f64, f64),
    pub(crate) spectrum_bottom_db: f64,
    /// What the math channel computes, if anything, and of which channels.
    pub(crate) math: Option<MathOperation>,
    pub(crate) math_inputs: [usize; 2],
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
            cursors: Cursors::default(),
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
            math: None,
            math_inputs: [0, 1],
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
        controls.set_trigger_options(&options.trigger);
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
            Action::TriggerCoupling => self.toggle_trigger_coupling(),
            Action::Corner(step) => self.step_corner(step, picture),
            Action::Holdoff(step) => self.step_holdoff(step, picture),
            Action::Cursors => self.toggle_cursors(picture),
            Action::OtherCursor => self.other_cursor(),
            Action::MoveCursor(steps) => self.move_cursor(steps, picture),
            Action::ValueCursors => self.toggle_value_cursors(),
            Action::OtherValueCursor => self.other_value_cursor(),
            Action::MoveValueCursor(steps) => self.move_value_cursor(steps),
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
                self.select(next.copied().unwrap_or(0));
            }
            Action::Select(channel) => self.select(channel % LANES),
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
            Action::NextMath => self.set_math(MathOperation::after(self.math)),
            Action::Math(operation) => self.set_math(operation),
            Action::MathInput(which) => {
                let channels = picture.stream.map_or(1, |stream| stream.channels);
                self.math_inputs[which % 2] = (self.math_inputs[which % 2] + 1) % channels;
                self.ranges[MATH_CHANNEL] = AutoRange::new();
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

    fn set_math(&mut self, operation: Option<MathOperation>) {
        self.math = operation;
        self.ranges[MATH_CHANNEL] = AutoRange::new();
        self.setups[MATH_CHANNEL].vertical = None;
        if operation.is_none() && self.selected == MATH_CHANNEL {
            self.select(0);
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
            // The face knows scales and ranges.
            measure: None,
            math: None,
            persistence: None,
            spectrum: (self.show.spectrum || self.show.waterfall).then(|| SpectrumSettings {
                waterfall: self.show.waterfall.then_some(self.selected),
                ..self.spectrum
            }),
        }
    }

    pub(crate) fn set_measuring(&mut self) {
        self.is_measuring = true;
    }

    pub(crate) fn is_measuring(&self) -> bool {
        self.is_measuring
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
}

/// Divisions of a vertical scale that is set.
pub(crate) const DIVISIONS_VERTICAL: f64 = 8.0;

#[cfg(test)]
mod tests;
