//! Room for the labels beside the plots: the front ends measure characters, and an axis loses no digit.

use grebe_scope::Ticks;

use crate::model::levels::LEVEL_UNIT;
use crate::model::view_model::ViewModel;

impl ViewModel {
    /// Characters of the longest label beside a plot.
    pub(crate) fn label_chars(&mut self) -> usize {
        let mut longest = 0;
        for place in 0..self.seen.picture.lanes.len() {
            let range = self.range(place);
            let setup = self.setup(self.seen.picture.lanes[place].lane);
            let per_division = setup.vertical.map(|vertical| vertical.per_division);
            longest = longest.max(longest_label(range.bottom, range.top, per_division, &setup.unit));
        }
        if let Some(size) = self.xy_size.filter(|_| self.controls.show.xy) {
            let [_, y] = self.xy_axes(size);
            longest = longest.max(longest_label(y.range.bottom, y.range.top, None, &y.unit));
        }
        if self.controls.show.spectrum {
            let range = self.spectrum_range();
            longest = longest.max(longest_label(range.bottom, range.top, None, LEVEL_UNIT));
        }
        if let Some(times) = self.waterfall_times() {
            longest =
                longest.max(longest_label(times.bottom, times.top, None, self.seen.picture.axis_unit()));
        }
        longest
    }
}

/// Of all ticks that a plot of any height may have.
fn longest_label(bottom: f64, top: f64, step: Option<f64>, unit: &str) -> usize {
    let fitted = TICKS.into_iter().map(|count| Ticks::of_unit(bottom, top, count, unit));
    let set = step.map(|step| Ticks::with_step(bottom, top, step));
    let labels =
        fitted.chain(set).flat_map(|ticks| ticks.values().map(move |value| ticks.label(value, unit)));
    labels.map(|label| label.chars().count()).max().unwrap_or(0)
}

/// Between 3 and 10 ticks, steps of 1-2-5 are these.
const TICKS: [u32; 3] = [10, 5, 3];
