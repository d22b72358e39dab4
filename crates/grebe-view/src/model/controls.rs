//! The settings of a scope: the same in every front end.

mod cursors;
mod lanes;
mod time;
mod trigger;

use serde::{Deserialize, Serialize};

use crate::data::lane::{CHANNELS_MAX, LaneId, LaneMask, Part};
use crate::data::math::MathOperation;
use crate::data::picture::Picture;
use crate::data::spectrum::band;
use crate::data::trigger::{TriggerMode, TriggerSettings};
use crate::data::viewport::{CursorTimes, SpectrumSettings, Viewport};
use crate::model::action::Action;
use crate::model::channel::ThemeChoice;
use crate::model::quantities::ChosenQuantities;
use crate::model::segments::Pins;
use crate::model::vertical::ValueRange;
use cursors::Cursors;
use grebe_scope::Interpolation;
use lanes::Lanes;
pub(crate) use time::CommonEdge;
use time::TimeAxis;
use trigger::TriggerControls;
pub use trigger::TriggerOptions;
pub(crate) use trigger::{distance_count, level_count};

#[derive(Debug)]
pub(crate) struct Controls {
    pub(crate) time: TimeAxis,
    pub(crate) shown: LaneMask,
    /// The eight channels of the digit keys: number of the group, from 0.
    pub(crate) group: usize,
    pub(crate) lanes: Lanes,
    pub(crate) trigger: TriggerControls,
    pub(crate) cursors: Cursors,
    pub(crate) pins: Pins,
    pub(crate) show: Show,
    pub(crate) is_measuring: bool,
    pub(crate) measured: ChosenQuantities,
    /// Reference lane for delay and phase; `None`: the first.
    pub(crate) against: Option<LaneId>,
    pub(crate) is_help_open: bool,
    pub(crate) is_done: bool,
    pub(crate) theme: ThemeChoice,
    pub(crate) spectrum: SpectrumSettings,
    /// The visible part of the spectrum: 0.0 is its lowest frequency, 1.0 its highest.
    pub(crate) spectrum_zoom: (f64, f64),
    pub(crate) spectrum_bottom_db: f64,
    /// Levels of the waterfall's colours in decibels; `None`: from its noise floor to its highest level.
    pub(crate) levels: Option<ValueRange>,
    /// The box on the waterfall.
    pub(crate) boxed: Option<TimeFrequencyBox>,
    /// The automatic levels, and the number of their waterfall.
    pub(crate) levels_seen: (u64, ValueRange),
    /// The markers A and B of the spectrum, as parts of the rate.
    pub(crate) markers: Option<[f64; 2]>,
    /// Lanes on the horizontal and the vertical axis; `None`: I and Q of the selected channel, or the first two channels.
    pub(crate) xy: [Option<LaneId>; 2],
    /// Symbols per second, if only symbols are points.
    pub(crate) symbol_rate_hz: Option<f64>,
    /// The math operation, if any.
    pub(crate) math: Option<MathOperation>,
    pub(crate) math_inputs: [LaneId; 2],
}

/// A box of time and frequency in the selected channel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TimeFrequencyBox {
    /// Absolute sample indices, in order.
    pub(crate) samples: [u64; 2],
    /// On the frequency axis, in order.
    pub(crate) frequencies: [f64; 2],
}

/// The visible views, and the look of the traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Show {
    pub(crate) spectrum: bool,
    pub(crate) waterfall: bool,
    /// The X-Y plot.
    pub(crate) xy: bool,
    pub(crate) channel_panel: bool,
    pub(crate) overlay: bool,
    pub(crate) persistence: bool,
    pub(crate) segments: bool,
    pub(crate) statistics: bool,
    /// Whether the line between samples is sin(x)/x.
    pub(crate) sinc: bool,
    pub(crate) harmonics: bool,
    /// The overview strip below the traces.
    pub(crate) overview_strip: bool,
}

impl Default for Show {
    fn default() -> Show {
        Show {
            spectrum: false,
            waterfall: false,
            xy: false,
            channel_panel: false,
            overlay: false,
            persistence: false,
            segments: false,
            statistics: false,
            sinc: false,
            harmonics: false,
            overview_strip: true,
        }
    }
}

impl Controls {
    pub(crate) fn new() -> Controls {
        Controls {
            time: TimeAxis::default(),
            shown: LaneMask::ALL,
            group: 0,
            lanes: Lanes::default(),
            trigger: TriggerControls::new(),
            cursors: Cursors::default(),
            pins: Pins::default(),
            show: Show::default(),
            is_measuring: false,
            measured: ChosenQuantities::default(),
            against: None,
            is_help_open: false,
            is_done: false,
            theme: ThemeChoice::default(),
            spectrum: SpectrumSettings::default(),
            spectrum_zoom: (0.0, 1.0),
            spectrum_bottom_db: -60.0,
            levels: None,
            boxed: None,
            levels_seen: (0, ValueRange { bottom: -120.0, top: 0.0 }),
            markers: None,
            xy: [None; 2],
            symbol_rate_hz: None,
            math: None,
            math_inputs: [LaneId::real(0), LaneId::real(1)],
        }
    }

    /// Applies an action to the settings; `picture` is the visible one.
    pub(crate) fn apply(&mut self, action: Action, picture: &Picture) {
        self.lanes.selected = self.selected(picture);
        match action {
            Action::Pause if self.time.is_held() => self.time.release(),
            Action::Pause => self.time.hold(picture, picture.right_index()),
            Action::Shorter => self.time.zoom(picture, true, 0.5),
            Action::Longer => self.time.zoom(picture, false, 0.5),
            Action::Earlier => self.time.pan(picture, -0.5),
            Action::Later => self.time.pan(picture, 0.5),
            Action::ShowAt(index) => self.time.show_at(picture, index),
            Action::Live => self.time.release(),
            Action::Channel(channel) => self.shown = self.shown.toggled(channel),
            Action::GroupChannel(place) => self.shown = self.shown.toggled(self.group * GROUP + place),
            Action::NextGroup => self.show_next_group(picture),
            Action::Part(part) => self.shown = self.shown.part_toggled(part),
            Action::Trigger(mode) => self.choose_mode(mode),
            Action::Next(setting) => self.set_next(setting, picture),
            Action::Slope => self.trigger.other_slope(),
            Action::LevelAuto => self.trigger.settings.level = None,
            Action::TriggerCoupling => self.trigger.set_coupling(self.trigger.settings.coupling.next()),
            Action::NoiseReject => self.trigger.settings.is_noise_reject ^= true,
            Action::Corner(step) => self.trigger.step_corner(step, picture),
            Action::Holdoff(step) => self.trigger.step_holdoff(step, picture),
            Action::Cursors => self.cursors.toggle_times(self.time.start(picture), picture.span()),
            Action::OtherCursor => self.cursors.move_other_time(),
            Action::MoveCursor(steps) => self.cursors.move_time(steps, picture.span()),
            Action::ValueCursors => self.cursors.toggle_values(self.lanes.range(self.selected(picture))),
            Action::OtherValueCursor => self.cursors.move_other_value(),
            Action::MoveValueCursor(steps) => {
                self.cursors.move_value(steps, self.lanes.range(self.selected(picture)));
            }
            Action::Measure => self.is_measuring = !self.is_measuring,
            Action::Help => self.is_help_open = !self.is_help_open,
            Action::Theme => self.theme = self.theme.other(),
            Action::NextChannel => {
                let shown: Vec<LaneId> = picture.lanes.iter().map(|data| data.lane).collect();
                let now = shown.iter().position(|&lane| lane == self.selected(picture));
                let next = now.map_or(0, |now| (now + 1) % shown.len());
                self.select(shown.get(next).copied().unwrap_or(LaneId::real(0)), picture);
            }
            Action::Select(lane) => self.select(lane, picture),
            Action::Vertical(step) => self.lanes.step_scale(step),
            Action::Position(divisions) => self.lanes.shift(divisions),
            Action::VerticalAuto => self.lanes.selected_setup().vertical = None,
            Action::Invert => {
                let setup = self.lanes.selected_setup();
                setup.is_inverted = !setup.is_inverted;
                self.lanes.refit(self.lanes.selected);
            }
            Action::Coupling => {
                let setup = self.lanes.selected_setup();
                setup.is_ac = !setup.is_ac;
                self.lanes.refit(self.lanes.selected);
            }
            Action::Overlay => self.show.overlay = !self.show.overlay,
            Action::Overview => self.show.overview_strip = !self.show.overview_strip,
            Action::Interpolation => self.show.sinc = !self.show.sinc,
            Action::Persistence => self.show.persistence = !self.show.persistence,
            Action::Channels => self.show.channel_panel = !self.show.channel_panel,
            Action::Statistics => {
                self.show.statistics = !self.show.statistics;
                self.is_measuring |= self.show.statistics;
            }
            Action::Spectrum => self.show.spectrum = !self.show.spectrum,
            Action::Waterfall => self.show.waterfall = !self.show.waterfall,
            Action::Xy => self.show.xy = !self.show.xy,
            Action::TransformSize(step) => self.step_transform(step),
            Action::Math(operation) => self.set_math(operation),
            Action::Harmonics => self.show.harmonics = !self.show.harmonics,
            Action::PeakHold => self.spectrum.is_peak_held = !self.spectrum.is_peak_held,
            Action::Detector => self.spectrum.detector = self.spectrum.detector.other(),
            // These need more than the settings, so the view model handles them.
            Action::FitAll | Action::Autoset | Action::Zoom(_) | Action::ZoomToCursors => {}
            Action::Level(_)
            | Action::Save(_)
            | Action::Keep
            | Action::Markers
            | Action::Find
            | Action::LevelsAuto
            | Action::ZoomFrequencies(_)
            | Action::PanFrequencies(_)
            | Action::MoveMarker(..)
            | Action::Segment(_)
            | Action::Pin
            | Action::Annotate
            | Action::AnnotatePart(_)
            | Action::DrawBox(_)
            | Action::Box(_)
            | Action::EditAnnotation
            | Action::MoveAnnotation
            | Action::DeleteAnnotation
            | Action::UndoAnnotation
            | Action::Annotations
            | Action::Ask(_) => {}
            Action::Choices(_) | Action::Mark(_) | Action::Take | Action::Choose(_) => {}
            Action::GeneratorPause | Action::GeneratorRate(_) => {}
            Action::Segments => self.show.segments = !self.show.segments,
            Action::Back => self.is_help_open = false,
            Action::Quit => self.is_done = true,
        }
    }

    /// The selected trigger mode, or one that suits the span.
    pub(crate) fn mode(&self, picture: &Picture) -> TriggerMode {
        self.trigger.mode(picture, self.time.span_or(picture))
    }

    /// The viewport of these settings. The view model adds the parts that depend on scales and ranges.
    pub(crate) fn viewport(&self, picture: &Picture, columns: usize) -> Viewport {
        Viewport {
            window: self.time.window(),
            span: self.time.span,
            lanes: self.shown,
            interpolation: if self.show.sinc { Interpolation::Sinc } else { Interpolation::Linear },
            trigger: Some(TriggerSettings { mode: self.mode(picture), ..self.trigger.settings }),
            spectrum: (self.show.spectrum || self.show.waterfall).then(|| SpectrumSettings {
                waterfall: self.show.waterfall.then_some(self.selected(picture).channel),
                band: self.spectrum_band(picture),
                ..self.spectrum
            }),
            cursors: self.cursors.times.map(|times| CursorTimes { times, from: self.time.held_reference() }),
            ..Viewport::latest(columns)
        }
    }

    fn choose_mode(&mut self, mode: TriggerMode) {
        self.trigger.choose_mode(mode);
        self.time.release();
    }

    /// The lane of the keys: the selected one, or the first existing lane of its channel.
    pub(crate) fn selected(&self, picture: &Picture) -> LaneId {
        let selected = self.lanes.selected;
        let Some(stream) = picture.stream else { return selected };
        let is_complex = stream.format.is_complex();
        if selected.is_math() || is_complex == Part::COMPLEX.contains(&selected.part) {
            return selected;
        }
        stream.first_lane(selected.channel)
    }

    /// The visible part of the spectrum, as parts of the rate; `None`: all of it.
    fn spectrum_band(&self, picture: &Picture) -> Option<(f64, f64)> {
        let (low, high) = band(picture.stream?.format.is_complex());
        let (from, to) = self.spectrum_zoom;
        let at = |part: f64| low + (high - low) * part;
        ((from, to) != (0.0, 1.0)).then(|| (at(from), at(to)))
    }

    /// Selects another lane; the value cursors keep their places on it.
    fn select(&mut self, lane: LaneId, picture: &Picture) {
        let before = self.selected(picture);
        if lane != before {
            self.cursors.change_lane(self.lanes.range(before), self.lanes.range(lane));
        }
        self.lanes.selected = lane;
    }

    /// Shows the next eight channels alone; after the last group, all of them.
    fn show_next_group(&mut self, picture: &Picture) {
        let channels = picture.stream.map_or(0, |stream| stream.channels);
        let groups = channels.div_ceil(GROUP).max(1);
        let of = |group: usize| {
            self.shown.only((group * GROUP..(group + 1) * GROUP).take_while(|&it| it < channels))
        };
        let is_alone = groups > 1 && self.shown == of(self.group);
        let is_last = self.group + 1 >= groups;
        (self.group, self.shown) = match (groups, is_alone, is_last) {
            (1, ..) | (_, true, true) => (0, self.shown.only(0..CHANNELS_MAX)),
            (_, true, false) => (self.group + 1, of(self.group + 1)),
            (_, false, _) => (0, of(0)),
        };
    }

    pub(super) fn set_math(&mut self, operation: Option<MathOperation>) {
        self.math = operation;
        self.lanes.refit(LaneId::MATH);
        self.lanes.setup_mut(LaneId::MATH).vertical = None;
        if operation.is_none() && self.lanes.selected.is_math() {
            self.lanes.selected = LaneId::real(0);
        }
    }
}

/// Channels per group of the digit keys.
pub(crate) const GROUP: usize = 8;

#[cfg(test)]
mod tests;
