//! Rows of power: one transform each, half over the one before.

use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};

use crate::spectrum::PowerTransform;

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

/// Makes rows of samples, on several threads where there are many at once.
#[derive(Debug)]
pub(super) struct RowMaker {
    transforms: Vec<PowerTransform>,
}

/// Samples of one channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Samples<'a> {
    pub(super) first: &'a [f32],
    /// Empty for real samples.
    pub(super) q: &'a [f32],
    /// The sample that stands for nothing.
    pub(super) zero: f32,
}

impl RowMaker {
    /// Makes rows with these transforms, one a thread.
    pub(super) fn new(transforms: Vec<PowerTransform>) -> Self {
        Self { transforms }
    }

    pub(super) fn transform(&self) -> &PowerTransform {
        &self.transforms[0]
    }

    /// Fills rows. One with a sample that is infinite or not a number gets `otherwise`.
    pub(super) fn make(&mut self, samples: Samples<'_>, otherwise: &[f32], rows: &mut [Vec<f32>]) {
        let each = rows.len().div_ceil(self.transforms.len()).max(ROWS_PER_THREAD);
        let mut pieces = rows.chunks_mut(each).enumerate().zip(&mut self.transforms);
        let Some(((_, own), transform)) = pieces.next() else { return };
        std::thread::scope(|scope| {
            for ((number, rows), transform) in pieces {
                scope.spawn(move || fill(transform, samples, number * each, otherwise, rows));
            }
            fill(transform, samples, 0, otherwise, own);
        });
    }
}

fn fill(
    transform: &mut PowerTransform,
    samples: Samples<'_>,
    number: usize,
    otherwise: &[f32],
    rows: &mut [Vec<f32>],
) {
    let size = transform.size();
    for (number, row) in rows.iter_mut().enumerate().map(|(at, row)| (number + at, row)) {
        let range = number * size / 2..number * size / 2 + size;
        let q = samples.q.get(range.clone()).unwrap_or_default();
        if !transform.power(&samples.first[range], q, samples.zero, row) {
            row.copy_from_slice(otherwise);
        }
    }
}

/// Enough for the first floor, and for whole short bursts.
pub(super) const HELD_ROWS: usize = 256;
/// A thread is worth its start for these.
const ROWS_PER_THREAD: usize = 32;
