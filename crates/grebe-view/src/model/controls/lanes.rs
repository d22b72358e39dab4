//! The lanes: the meaning of their numbers, and the vertical range of each.

use std::f64::consts::PI;

use grebe_flow::monotonic_ns;
use grebe_scope::{step_125_down, step_125_up};

use crate::data::lane::{LaneId, Part, PerLane};
use crate::data::viewport::two_digits_up;
use crate::model::action::Step;
use crate::model::channel::ChannelSetup;
use crate::model::lane_description::LaneDescription;
use crate::model::levels::LEVEL_UNIT;
use crate::model::vertical::{AutoRange, DIVISIONS_VERTICAL, ValueRange, VerticalScale};

/// The settings of each lane.
#[derive(Debug)]
pub(crate) struct Lanes {
    /// Explicit settings. A channel's name, unit and scale are stored at its real lane, even if it is complex.
    set: PerLane<ChannelSetup>,
    /// The lane of the keys for one lane.
    pub(crate) selected: LaneId,
    ranges: PerLane<AutoRange>,
    /// The stream's description of each channel.
    told: Vec<LaneDescription>,
}

impl Default for Lanes {
    fn default() -> Lanes {
        Lanes {
            set: PerLane::default(),
            selected: LaneId::real(0),
            ranges: PerLane::default(),
            told: Vec::new(),
        }
    }
}

impl Lanes {
    /// Meaning and look of a lane. The frequency is in cycles per sample here, because the rate belongs to the stream.
    pub(crate) fn setup(&self, lane: LaneId) -> ChannelSetup {
        let own = self.set.get(lane).cloned().unwrap_or_default();
        if matches!(lane.part, Part::Real | Part::Math) {
            return own;
        }
        let channel = self.set.get(LaneId::real(lane.channel)).cloned().unwrap_or_default();
        let (unit, scale, offset) = match lane.part {
            Part::MagnitudeDb => (LEVEL_UNIT.into(), 1.0, 0.0),
            Part::Phase => ("\u{b0}".into(), 180.0 / PI, 0.0),
            Part::Frequency => ("c/S".into(), 1.0, 0.0),
            Part::Magnitude => (channel.unit, channel.scale.abs(), 0.0),
            _ => (channel.unit, channel.scale, channel.offset),
        };
        ChannelSetup { name: channel.name, unit, scale, offset, ..own }
    }

    /// The setup of a lane, to be changed, except its name, unit, scale and offset, which belong to its
    /// [channel](Lanes::channel_mut).
    pub(crate) fn setup_mut(&mut self, lane: LaneId) -> &mut ChannelSetup {
        self.set.or_insert_with(lane, ChannelSetup::default)
    }

    /// Name, unit, scale and offset of a channel, to be changed.
    pub(crate) fn channel_mut(&mut self, channel: usize) -> &mut ChannelSetup {
        self.setup_mut(LaneId::real(channel))
    }

    /// The lanes that have settings.
    pub(crate) fn set(&self) -> impl Iterator<Item = LaneId> {
        self.set.iter().map(|(lane, _)| lane)
    }

    /// The vertical range of a lane with the visible extremes `seen`; differences below `resolution` are noise.
    pub(crate) fn follow(&mut self, lane: LaneId, seen: Option<ValueRange>, resolution: f64) -> ValueRange {
        let auto = self.ranges.or_insert_with(lane, AutoRange::default);
        let range = auto.follow(seen, resolution, monotonic_ns());
        self.vertical(lane).map_or(range, ValueRange::of)
    }

    /// The visible range of a lane, in its units.
    pub(crate) fn range(&self, lane: LaneId) -> Option<ValueRange> {
        let auto = || self.ranges.get(lane).and_then(AutoRange::current);
        self.vertical(lane).map(ValueRange::of).or_else(auto)
    }

    /// The vertical scale of a lane, if it is fixed.
    pub(crate) fn vertical(&self, lane: LaneId) -> Option<VerticalScale> {
        self.set.get(lane).and_then(|setup| setup.vertical)
    }

    /// Takes a new description of the channels. Values from the previous description are replaced; settings of a
    /// person stay.
    pub(crate) fn hear(&mut self, told: Vec<LaneDescription>) {
        for channel in 0..self.told.len().max(told.len()) {
            let before = self.told.get(channel).cloned().unwrap_or_default();
            let now = told.get(channel).cloned().unwrap_or_default();
            let setup = self.channel_mut(channel);
            if setup.name == before.name {
                setup.name = now.name;
            }
            let is_own =
                (&setup.unit, setup.scale, setup.offset) != (&before.unit, before.scale, before.offset);
            let is_other = (before.scale, before.offset) != (now.scale, now.offset);
            if !is_own {
                (setup.unit, setup.scale, setup.offset) = (now.unit, now.scale, now.offset);
            }
            if !is_own && is_other {
                self.refit_channel(channel);
            }
        }
        self.told = told;
    }

    /// The setup of a lane without the values of the description.
    pub(crate) fn own(&self, lane: LaneId) -> ChannelSetup {
        let mut setup = self.set.get(lane).cloned().unwrap_or_default();
        let Some(told) = self.told.get(lane.channel).filter(|_| lane.part == Part::Real) else {
            return setup;
        };
        let nothing = LaneDescription::default();
        if setup.name == told.name {
            setup.name = nothing.name;
        }
        if (&setup.unit, setup.scale, setup.offset) == (&told.unit, told.scale, told.offset) {
            (setup.unit, setup.scale, setup.offset) = (nothing.unit, nothing.scale, nothing.offset);
        }
        setup
    }

    /// Fits the range of a lane again, because its numbers changed their meaning.
    pub(crate) fn refit(&mut self, lane: LaneId) {
        self.ranges.remove(lane);
    }

    /// The same for all lanes of a channel.
    fn refit_channel(&mut self, channel: usize) {
        let parts = Part::COMPLEX.into_iter().chain([Part::Real]);
        parts.for_each(|part| self.refit(LaneId { channel, part }));
    }

    pub(super) fn selected_setup(&mut self) -> &mut ChannelSetup {
        self.setup_mut(self.selected)
    }

    /// Steps to a finer or coarser scale for the selected lane; its middle stays in place.
    pub(super) fn step_scale(&mut self, step: Step) {
        let scale = self.scale();
        let per_division = match step {
            Step::Down => step_125_down(scale.per_division * 0.9),
            Step::Up => step_125_up(scale.per_division * 1.1),
        };
        let position = scale.position * scale.per_division / per_division;
        self.selected_setup().vertical = Some(VerticalScale { per_division, position });
    }

    /// Sets the scale of a lane; its middle stays in place.
    pub(crate) fn set_scale(&mut self, lane: LaneId, per_division: f64) {
        let middle = self.range(lane).map_or(0.0, |range| range.at(0.5));
        let vertical = VerticalScale { per_division, position: -middle / per_division };
        self.setup_mut(lane).vertical = Some(vertical);
    }

    /// Sets the scale of a lane to show these values, in divisions of two digits.
    pub(crate) fn show_values(&mut self, lane: LaneId, bottom: f64, top: f64) {
        let per_division = (top - bottom) / DIVISIONS_VERTICAL;
        if per_division > 0.0 && per_division.is_finite() {
            let per_division = two_digits_up(per_division);
            let position = -(bottom + top) / 2.0 / per_division;
            self.setup_mut(lane).vertical = Some(VerticalScale { per_division, position });
        }
    }

    /// Lets the scales of all lanes follow their signals, and fits them again.
    pub(crate) fn refit_all(&mut self) {
        self.set.values_mut().for_each(|setup| setup.vertical = None);
        self.ranges.clear();
    }

    /// Moves the trace of the selected lane up.
    pub(super) fn shift(&mut self, divisions: f64) {
        let scale = self.scale();
        self.selected_setup().vertical =
            Some(VerticalScale { position: scale.position + divisions, ..scale });
    }

    /// The fixed scale of the selected lane, or one near its present range.
    fn scale(&self) -> VerticalScale {
        let range = self.range(self.selected).unwrap_or(ValueRange { bottom: -1.0, top: 1.0 });
        self.vertical(self.selected).unwrap_or_else(|| {
            let per_division = step_125_up(range.height() / DIVISIONS_VERTICAL);
            let middle = (range.top + range.bottom) / 2.0;
            VerticalScale { per_division, position: -(middle / per_division).round() }
        })
    }
}
