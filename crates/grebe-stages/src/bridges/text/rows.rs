//! Values that were read and did not go on yet.

use std::ops::Range;

use grebe_frame::SampleFormat;

use grebe_process::numbers::{Component, with_component};
use grebe_recording::table::{Step, Steps};

/// Rows of values, one of each channel, and their times where they have some.
#[derive(Debug, Default)]
pub(super) struct Rows {
    channels: usize,
    /// Row by row.
    values: Vec<f64>,
    times_s: Vec<f64>,
    /// How the first of them follow each other.
    steps: Vec<Step>,
    /// Rows of these that went on.
    gone: usize,
}

impl Rows {
    /// Begins rows of `channels` values.
    pub(super) fn begin(&mut self, channels: usize) {
        self.clear();
        self.channels = channels;
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.times_s.clear();
        self.steps.clear();
        self.gone = 0;
    }

    pub(super) fn push(&mut self, values: &[f64], time_s: Option<f64>) {
        self.values.extend_from_slice(values);
        self.times_s.extend(time_s);
    }

    /// More channels, which had no value so far.
    pub(super) fn widen(&mut self, channels: usize, missing: f64) {
        let rows = self.len();
        let mut values = vec![missing; rows * channels];
        for row in 0..rows {
            let before = &self.values[row * self.channels..(row + 1) * self.channels];
            values[row * channels..row * channels + self.channels].copy_from_slice(before);
        }
        (self.values, self.channels) = (values, channels);
    }

    #[cfg(fuzzing)]
    pub(super) fn channels(&self) -> usize {
        self.channels
    }

    /// Number of rows, including forwarded ones.
    pub(super) fn len(&self) -> usize {
        self.values.len() / self.channels.max(1)
    }

    /// Rows not yet handed on.
    pub(super) fn rest(&self) -> Range<usize> {
        self.gone..self.len()
    }

    /// Whether as much as is kept at a time is there.
    pub(super) fn is_full(&self) -> bool {
        self.values.len() >= VALUES_MAX
    }

    /// The times of all rows; none where not all of them have one.
    pub(super) fn times_s(&self) -> &[f64] {
        if self.times_s.len() == self.len() { &self.times_s } else { &[] }
    }

    /// Finds out how they follow each other, by their times.
    pub(super) fn judge(&mut self, steps: &mut Steps) {
        if self.times_s.len() == self.len() {
            let unjudged = self.steps.len()..self.len();
            self.steps.extend(unjudged.map(|at| steps.take(&self.times_s, at)));
        }
    }

    /// How this one follows the one before it.
    pub(super) fn step(&self, at: usize) -> Step {
        self.steps.get(at).copied().unwrap_or(Step::Next)
    }

    /// Marks missing rows before this one.
    pub(super) fn mark(&mut self, at: usize) {
        self.steps[at] = Step::Next;
    }

    /// The values of the first channel.
    pub(super) fn first_channel(&self) -> impl Iterator<Item = f64> + '_ {
        self.values.iter().step_by(self.channels.max(1)).copied()
    }

    /// Marks this number of rows as handed on.
    pub(super) fn went(&mut self, rows: usize) {
        self.gone += rows;
        if self.gone >= self.len() {
            self.clear();
        }
    }

    /// Writes the values of a channel in some rows as samples of a format that they fit.
    pub(super) fn put(&self, rows: Range<usize>, channel: usize, format: SampleFormat, out: &mut [u8]) {
        let values = &self.values[rows.start * self.channels..rows.end * self.channels];
        let values = values.iter().skip(channel).step_by(self.channels);
        with_component!(format, C => {
            for (out, value) in out.chunks_exact_mut(size_of::<C>()).zip(values) {
                <C as Component>::of_f64(*value).write(out);
            }
        });
    }
}

const VALUES_MAX: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_channels() {
        let mut rows = Rows::default();
        rows.begin(2);
        rows.push(&[1.0, -1.0], None);
        rows.push(&[2.0, -2.0], None);
        rows.widen(3, f64::NAN);
        rows.push(&[3.0, -3.0, 30.0], None);
        let channel = |channel: usize| {
            let mut bytes = [0; 24];
            rows.put(0..3, channel, SampleFormat::F64, &mut bytes);
            bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect::<Vec<_>>()
        };
        assert_eq!((channel(0), channel(1)), (vec![1.0, 2.0, 3.0], vec![-1.0, -2.0, -3.0]));
        let last = channel(2);
        assert!(last[0].is_nan() && last[1].is_nan() && last[2] == 30.0);
        let mut bytes = [0; 4];
        rows.put(1..3, 0, SampleFormat::I16, &mut bytes);
        assert_eq!(bytes, [2, 0, 3, 0]);
    }
}
