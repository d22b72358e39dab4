//! The channels' lanes: what their numbers mean, and the vertical range of each.

use grebe_flow::monotonic_ns;
use grebe_scope::{step_125_down, step_125_up};

use crate::data::math::{LANES, MATH_CHANNEL};
use crate::data::viewport::two_digits_up;
use crate::model::action::Step;
use crate::model::channel::ChannelSetup;
use crate::model::told::LaneTold;
use crate::model::vertical::{AutoRange, DIVISIONS_VERTICAL, ValueRange, VerticalScale};

/// The settings of each channel, by number.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    pub(crate) setups: [ChannelSetup; LANES],
    /// The channel that the keys for one channel work on.
    pub(crate) selected: usize,
    ranges: [AutoRange; LANES],
    /// What the stream says of each lane, as far as it does.
    told: Vec<LaneTold>,
}

impl Lanes {
    /// The vertical range of a channel whose visible extremes are `seen`, in units of `resolution` per count.
    pub(crate) fn follow(&mut self, channel: usize, seen: Option<ValueRange>, resolution: f64) -> ValueRange {
        let range = self.ranges[channel % LANES].follow(seen, resolution, monotonic_ns());
        self.setups[channel % LANES].vertical.map_or(range, ValueRange::of)
    }

    /// The range that a channel's lane shows, in the channel's units.
    pub(crate) fn range(&self, channel: usize) -> Option<ValueRange> {
        let setup = &self.setups[channel % LANES];
        setup.vertical.map(ValueRange::of).or(self.ranges[channel % LANES].current())
    }

    /// Takes what the stream says of its lanes from now on. What a lane still has as the stream said it before follows; what
    /// a person set stays.
    pub(crate) fn hear(&mut self, told: Vec<LaneTold>) {
        for channel in 0..MATH_CHANNEL {
            let before = self.told.get(channel).cloned().unwrap_or_default();
            let now = told.get(channel).cloned().unwrap_or_default();
            let setup = &mut self.setups[channel];
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
                self.refit(channel);
            }
        }
        self.told = told;
    }

    /// The setup of a lane without what only the stream says of it.
    pub(crate) fn own(&self, channel: usize) -> ChannelSetup {
        let mut setup = self.setups[channel].clone();
        let Some(told) = self.told.get(channel) else { return setup };
        let nothing = LaneTold::default();
        if setup.name == told.name {
            setup.name = nothing.name;
        }
        if (&setup.unit, setup.scale, setup.offset) == (&told.unit, told.scale, told.offset) {
            (setup.unit, setup.scale, setup.offset) = (nothing.unit, nothing.scale, nothing.offset);
        }
        setup
    }

    /// Fits the range of a channel anew: its numbers mean something else from now on.
    pub(crate) fn refit(&mut self, channel: usize) {
        self.ranges[channel] = AutoRange::default();
    }

    pub(super) fn selected_setup(&mut self) -> &mut ChannelSetup {
        &mut self.setups[self.selected]
    }

    /// A finer or coarser scale for the selected channel; the middle of its lane stays where it is.
    pub(super) fn step_scale(&mut self, step: Step) {
        let scale = self.scale();
        let per_division = match step {
            Step::Down => step_125_down(scale.per_division * 0.9),
            Step::Up => step_125_up(scale.per_division * 1.1),
        };
        let position = scale.position * scale.per_division / per_division;
        self.selected_setup().vertical = Some(VerticalScale { per_division, position });
    }

    /// Sets the scale of a channel; the middle of its lane stays where it is.
    pub(crate) fn set_scale(&mut self, channel: usize, per_division: f64) {
        let middle = self.range(channel).map_or(0.0, |range| range.at(0.5));
        let vertical = VerticalScale { per_division, position: -middle / per_division };
        self.setups[channel % LANES].vertical = Some(vertical);
    }

    /// Sets the scale of a channel so that its lane shows these values, in divisions of two digits.
    pub(crate) fn show_values(&mut self, channel: usize, bottom: f64, top: f64) {
        let per_division = (top - bottom) / DIVISIONS_VERTICAL;
        if per_division > 0.0 && per_division.is_finite() {
            let per_division = two_digits_up(per_division);
            let position = -(bottom + top) / 2.0 / per_division;
            self.setups[channel % LANES].vertical = Some(VerticalScale { per_division, position });
        }
    }

    /// Lets the scales of all channels follow their signals, and fits them anew.
    pub(crate) fn refit_all(&mut self) {
        self.setups.iter_mut().for_each(|setup| setup.vertical = None);
        self.ranges = Default::default();
    }

    /// Moves the trace of the selected channel up.
    pub(super) fn shift(&mut self, divisions: f64) {
        let scale = self.scale();
        self.selected_setup().vertical =
            Some(VerticalScale { position: scale.position + divisions, ..scale });
    }

    /// The fixed scale of the selected channel, or one near what its lane shows.
    fn scale(&self) -> VerticalScale {
        let range = self.range(self.selected).unwrap_or(ValueRange { bottom: -1.0, top: 1.0 });
        self.setups[self.selected].vertical.unwrap_or_else(|| {
            let per_division = step_125_up(range.height() / DIVISIONS_VERTICAL);
            let middle = (range.top + range.bottom) / 2.0;
            VerticalScale { per_division, position: -(middle / per_division).round() }
        })
    }
}
