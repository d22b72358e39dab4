//! Rows of power: one transform each, half over the one before.

use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};

/// The newest rows since a gap, by number.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: VecDeque<Vec<f32>>,
    /// Number of the next row.
    next: u64,
}

impl Rows {
    /// Adds a row, and returns one that is no longer held.
    pub(super) fn push(&mut self, row: Vec<f32>) -> Option<Vec<f32>> {
        self.rows.push_back(row);
        self.next += 1;
        if self.rows.len() > HELD_ROWS { self.rows.pop_front() } else { None }
    }

    /// Forgets all rows: a gap.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.next = 0;
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn oldest(&self) -> u64 {
        self.next - self.rows.len() as u64
    }

    pub(super) fn get(&self, number: u64) -> Option<&[f32]> {
        let place = number.checked_sub(self.oldest())?;
        self.rows.get(place as usize).map(Vec::as_slice)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut [f32]> {
        let place = number.checked_sub(self.oldest())?;
        self.rows.get_mut(place as usize).map(Vec::as_mut_slice)
    }

    pub(super) fn held(&self) -> impl ExactSizeIterator<Item = &[f32]> + Clone {
        self.rows.iter().map(Vec::as_slice)
    }

    /// Of each row, the power in a band over a floor.
    pub(super) fn profile(
        &self,
        numbers: RangeInclusive<u64>,
        band: &Range<usize>,
        floor: &[f32],
    ) -> Vec<f64> {
        let noise: f64 = floor[band.clone()].iter().map(|&floor| f64::from(floor)).sum();
        let power = |row: &[f32]| f64::from(row[band.clone()].iter().sum::<f32>()) - noise;
        numbers.filter_map(|number| self.get(number)).map(power).collect()
    }
}

/// Enough for the first floor, and for whole short bursts.
pub(super) const HELD_ROWS: usize = 256;
