//! Two cursors on the time axis, and two on the value axis of the selected channel.

use crate::model::vertical::ValueRange;

/// Where the cursors are; `None` while they are off.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    /// In units of the time axis.
    pub(crate) times: Option<[f64; 2]>,
    /// In units of the selected channel.
    pub(crate) values: Option<[f64; 2]>,
    /// Which of the two the keys move.
    moving_time: usize,
    moving_value: usize,
}

impl Cursors {
    /// On at 35 % and 65 % of the screen, or off.
    pub(super) fn toggle_times(&mut self, start: f64, span: f64) {
        let fresh = [start + span * 0.35, start + span * 0.65];
        self.times = if self.times.is_some() { None } else { Some(fresh) };
    }

    /// On at 30 % and 70 % of the lane, or off.
    pub(super) fn toggle_values(&mut self, lane: Option<ValueRange>) {
        let fresh = lane.map(|range| [0.3, 0.7].map(|part| range.at(part)));
        self.values = if self.values.is_some() { None } else { fresh };
    }

    pub(super) fn move_other_time(&mut self) {
        self.moving_time = 1 - self.moving_time;
    }

    pub(super) fn move_other_value(&mut self) {
        self.moving_value = 1 - self.moving_value;
    }

    /// Moves a time cursor by hundredths of the screen.
    pub(super) fn move_time(&mut self, hundredths: f64, span: f64) {
        if let Some(times) = &mut self.times {
            times[self.moving_time] += hundredths * span / 100.0;
        }
    }

    /// Moves a value cursor by hundredths of the lane.
    pub(super) fn move_value(&mut self, hundredths: f64, lane: Option<ValueRange>) {
        if let (Some(values), Some(range)) = (&mut self.values, lane) {
            values[self.moving_value] += hundredths * range.height() / 100.0;
        }
    }

    /// Takes the value cursors to another lane: the same places, in that channel's units.
    pub(super) fn change_lane(&mut self, from: Option<ValueRange>, to: Option<ValueRange>) {
        let Some(values) = self.values else { return };
        self.values = from.zip(to).map(|(from, to)| values.map(|value| to.at(from.part_of(value))));
    }

    pub(crate) fn set_time(&mut self, which: usize, at: f64) {
        set(&mut self.times, which, at);
    }

    pub(crate) fn set_value(&mut self, which: usize, at: f64) {
        set(&mut self.values, which, at);
    }
}

fn set(cursors: &mut Option<[f64; 2]>, which: usize, at: f64) {
    if let Some(cursor) = cursors.as_mut().and_then(|cursors| cursors.get_mut(which)) {
        *cursor = at;
    }
}
