//! Two cursors an axis, to measure between.

use super::Controls;
use crate::picture::Picture;

/// Where the cursors stand, as far as they are on, and which ones move by keys.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursors {
    /// In units of the time axis.
    times: Option<[f64; 2]>,
    /// In units of the selected channel.
    values: Option<[f64; 2]>,
    moving_time: usize,
    moving_value: usize,
}

impl Controls {
    /// Both time cursors, in units of the time axis.
    pub(crate) fn cursors(&self) -> Option<[f64; 2]> {
        self.cursors.times
    }

    /// Both value cursors, in units of the selected channel.
    pub(crate) fn value_cursors(&self) -> Option<[f64; 2]> {
        self.cursors.values
    }

    pub(crate) fn set_cursors(&mut self, times: Option<[f64; 2]>, values: Option<[f64; 2]>) {
        (self.cursors.times, self.cursors.values) = (times, values);
    }

    #[cfg(feature = "window")]
    pub(crate) fn set_cursor(&mut self, which: usize, at: f64) {
        set(&mut self.cursors.times, which, at);
    }

    #[cfg(feature = "window")]
    pub(crate) fn set_value_cursor(&mut self, which: usize, at: f64) {
        set(&mut self.cursors.values, which, at);
    }

    pub(super) fn toggle_cursors(&mut self, picture: &Picture) {
        let (start, span) = (self.axis_start(picture), picture.span());
        let fresh = [start + span * 0.35, start + span * 0.65];
        self.cursors.times = if self.cursors.times.is_some() { None } else { Some(fresh) };
    }

    pub(super) fn toggle_value_cursors(&mut self) {
        let fresh = self.lane_range(self.selected).map(|range| [0.3, 0.7].map(|part| range.at(part)));
        self.cursors.values = if self.cursors.values.is_some() { None } else { fresh };
    }

    pub(super) fn other_cursor(&mut self) {
        self.cursors.moving_time = 1 - self.cursors.moving_time;
    }

    pub(super) fn other_value_cursor(&mut self) {
        self.cursors.moving_value = 1 - self.cursors.moving_value;
    }

    /// By so many hundredths of the screen.
    pub(super) fn move_cursor(&mut self, steps: f64, picture: &Picture) {
        if let Some(times) = &mut self.cursors.times {
            times[self.cursors.moving_time] += steps * picture.span() / 100.0;
        }
    }

    /// By so many hundredths of the selected channel's lane.
    pub(super) fn move_value_cursor(&mut self, steps: f64) {
        let range = self.lane_range(self.selected);
        if let (Some(values), Some(range)) = (&mut self.cursors.values, range) {
            values[self.cursors.moving_value] += steps * range.height() / 100.0;
        }
    }

    /// Another channel is selected: the value cursors keep their places on its lane, in its units.
    pub(super) fn select(&mut self, channel: usize) {
        let (from, to) = (self.lane_range(self.selected), self.lane_range(channel));
        if channel != self.selected
            && let Some(values) = self.cursors.values
        {
            let moved = from.zip(to).map(|(from, to)| values.map(|value| to.at(from.part_of(value))));
            self.cursors.values = moved;
        }
        self.selected = channel;
    }
}

#[cfg(feature = "window")]
fn set(cursors: &mut Option<[f64; 2]>, which: usize, at: f64) {
    if let Some(cursor) = cursors.as_mut().and_then(|cursors| cursors.get_mut(which)) {
        *cursor = at;
    }
}
