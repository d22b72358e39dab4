//! The vertical ranges of the lanes.

use grebe_flow::monotonic_ns;
use grebe_scope::{step_125_down, step_125_up};

use super::{Controls, DIVISIONS_VERTICAL};
use crate::keys::Step;
use crate::math::LANES;
use crate::options::Vertical;
use crate::vertical::Range;

impl Controls {
    /// The vertical range of a channel whose visible extremes are `seen`, in units of `resolution` a count.
    pub(crate) fn range(&mut self, channel: usize, seen: Option<Range>, resolution: f64) -> Range {
        let range = self.ranges[channel % LANES].follow(seen, resolution, monotonic_ns());
        self.setups[channel % LANES].vertical.map_or(range, Range::of)
    }

    /// The range of a channel's lane, in its units.
    pub(crate) fn lane_range(&self, channel: usize) -> Option<Range> {
        let setup = &self.setups[channel % LANES];
        setup.vertical.map(Range::of).or(self.ranges[channel % LANES].current())
    }

    /// The fixed vertical scale of the selected channel, or one that is near what it shows.
    pub(super) fn vertical(&self) -> Vertical {
        let range = self.lane_range(self.selected).unwrap_or(Range { bottom: -1.0, top: 1.0 });
        self.setups[self.selected].vertical.unwrap_or_else(|| {
            let per_division = step_125_up(range.height() / DIVISIONS_VERTICAL);
            let middle = (range.top + range.bottom) / 2.0;
            Vertical { per_division, position: -(middle / per_division).round() }
        })
    }

    pub(super) fn step_vertical(&mut self, step: Step) {
        let vertical = self.vertical();
        let per_division = match step {
            Step::Down => step_125_down(vertical.per_division * 0.9),
            Step::Up => step_125_up(vertical.per_division * 1.1),
        };
        // What is in the middle of the screen stays there.
        let position = vertical.position * vertical.per_division / per_division;
        self.setups[self.selected].vertical = Some(Vertical { per_division, position });
    }
}
