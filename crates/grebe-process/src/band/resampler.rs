//! Filter that computes its results at the places of a grid, whole or between samples.

use std::sync::Arc;

use super::low_pass::LowPass;
use crate::grid::Grid;
use crate::simd::products;

/// Taps for all places of a grid's outputs.
#[derive(Debug)]
pub(crate) struct Filter {
    grid: Grid,
    /// Values per sample: 1, or 2 for I and Q.
    width: usize,
    /// Taps before the whole position of an output.
    reach: i64,
    /// Per row.
    taps: usize,
    /// Taps, each `width` times, one row per rest of a position.
    rows: Vec<f32>,
    rests: Rests,
}

/// Which row belongs to a rest.
#[derive(Debug)]
enum Rests {
    /// A row for each, from the smallest on.
    Exact { first: i128, spacing: i128 },
    /// So many rows per sample, and one more; results of two are interpolated.
    Between { rows: f64 },
}

impl Filter {
    pub(crate) fn new(low_pass: &LowPass, grid: Grid, width: usize) -> Self {
        let (first, spacing) = grid.rests();
        let parts = grid.parts();
        let reach = low_pass.reach.floor() as usize;
        let count = parts / spacing;
        let is_whole = count == 1 && first == 0;
        // The output after the last whole sample of a reach needs one more tap.
        let taps = 2 * reach + if is_whole { 1 } else { 2 };
        let is_exact = count == 1 || count <= ROWS_MAX && count as usize * taps <= TAPS_MAX;
        let (rests, places): (Rests, Vec<f64>) = if is_exact {
            let rest = |row| (first + row * spacing) as f64 / parts as f64;
            (Rests::Exact { first, spacing }, (0..count).map(rest).collect())
        } else {
            // The error of a straight line between two rows falls with the square of their number: 108 dB down.
            let rows = (PER_CYCLE * low_pass.cutoff).ceil().clamp(2.0, PER_CYCLE);
            (Rests::Between { rows }, (0..=rows as usize).map(|row| row as f64 / rows).collect())
        };
        let mut row = Vec::new();
        let mut rows = Vec::with_capacity(places.len() * taps * width);
        for rest in places {
            low_pass.taps(rest, taps, &mut row);
            rows.extend(row.iter().flat_map(|&tap| std::iter::repeat_n(tap as f32, width)));
        }
        Self { grid, width, reach: reach as i64, taps, rows, rests }
    }

    /// First sample that an output needs.
    fn begin_of(&self, output: i64) -> i64 {
        self.grid.place(output).0 - self.reach
    }

    fn row(&self, row: usize) -> &[f32] {
        let length = self.taps * self.width;
        &self.rows[row * length..(row + 1) * length]
    }

    /// Whether all outputs have the same row.
    fn has_one_row(&self) -> bool {
        self.rows.len() == self.taps * self.width
    }

    /// The output whose position has this rest, of numbers from the first that it needs on.
    fn output(&self, rest: i128, numbers: &[f32]) -> [f32; 2] {
        let product = |row: usize| {
            let mut sums = [[0.0; 2]];
            products(self.row(row), numbers, 0, &mut sums);
            sums[0]
        };
        match self.rests {
            Rests::Exact { first, spacing } => product(((rest - first) / spacing) as usize),
            Rests::Between { rows } => {
                let place = rest as f64 / self.grid.parts() as f64 * rows;
                let row = (place as usize).min(rows as usize - 1);
                let (part, low, high) = ((place - row as f64) as f32, product(row), product(row + 1));
                [low[0] + (high[0] - low[0]) * part, low[1] + (high[1] - low[1]) * part]
            }
        }
    }
}

/// Samples of one channel without a gap, on their way through a filter.
#[derive(Debug)]
pub(crate) struct Resampler {
    filter: Arc<Filter>,
    line: Vec<f32>,
    /// Index of the first sample in the line.
    origin: i64,
    /// Output to compute next.
    next: i64,
    made: Vec<f32>,
}

impl Resampler {
    pub(crate) fn new(filter: Arc<Filter>) -> Self {
        Self { filter, line: Vec::new(), origin: 0, next: 0, made: Vec::new() }
    }

    /// Whether it uses this filter.
    pub(crate) fn is_by(&self, filter: &Arc<Filter>) -> bool {
        Arc::ptr_eq(&self.filter, filter)
    }

    /// Starts with the sample of this index, and zeros before it; `next` is the first output to compute.
    pub(crate) fn begin(&mut self, first: i64, next: i64) {
        self.made.clear();
        self.line.clear();
        self.next = next;
        self.origin = first;
        let begin = self.filter.begin_of(next);
        if begin < first {
            self.line.resize((first - begin) as usize * self.filter.width, 0.0);
            self.origin = begin;
        }
    }

    pub(crate) fn next(&self) -> i64 {
        self.next
    }

    /// Index after the last sample.
    pub(crate) fn reached(&self) -> i64 {
        self.origin + (self.line.len() / self.filter.width) as i64
    }

    /// Passes over samples from the end on, if no output before them is left. Returns whether it did.
    pub(crate) fn pass(&mut self, count: i64) -> bool {
        let is_passed = self.reached() + count <= self.filter.begin_of(self.next);
        if is_passed {
            self.origin = self.reached() + count;
            self.line.clear();
        }
        is_passed
    }

    /// Appends numbers, and returns them to be changed.
    pub(crate) fn extend(&mut self, numbers: impl Iterator<Item = f32>) -> &mut [f32] {
        let start = self.line.len();
        self.line.extend(numbers);
        &mut self.line[start..]
    }

    /// Computes the outputs before `end`. Samples that are not there count as zero.
    pub(crate) fn end(&mut self, end: i64) {
        let zeros = self.filter.taps * self.filter.width;
        self.line.resize(self.line.len() + zeros, 0.0);
        self.make(end);
    }

    /// Computes the outputs before `end` whose samples are there.
    pub(crate) fn make(&mut self, end: i64) {
        let Self { filter, line, origin, next, made } = self;
        let (width, taps) = (filter.width, filter.taps as i64);
        let held = *origin + (line.len() / width) as i64;
        let last_begin = held - taps;
        let mut sums = [[0.0; 2]; TOGETHER];
        while *next < end {
            let (whole, rest) = filter.grid.place(*next);
            let begin = whole - filter.reach;
            if begin > last_begin {
                break;
            }
            let numbers = &line[(begin - *origin) as usize * width..];
            let count = if filter.has_one_row() {
                let step = (filter.grid.place(*next + 1).0 - whole).max(1);
                let fits = ((last_begin - begin) / step + 1)
                    .min(end.saturating_sub(*next))
                    .min(TOGETHER as i64) as usize;
                products(&filter.rows, numbers, step as usize * width, &mut sums[..fits]);
                fits
            } else {
                sums[0] = filter.output(rest, &numbers[..taps as usize * width]);
                1
            };
            if width == 2 {
                made.extend(sums[..count].iter().flatten());
            } else {
                made.extend(sums[..count].iter().map(|[even, odd]| even + odd));
            }
            *next += count as i64;
        }
        let unneeded = (filter.begin_of(*next) - *origin).clamp(0, held - *origin);
        // Moved only once the unneeded part is as long as the rest.
        if unneeded as usize * width > line.len() / 2 {
            line.drain(..unneeded as usize * width);
            *origin += unneeded;
        }
    }

    /// Numbers of the outputs so far, to be taken.
    pub(crate) fn made(&mut self) -> &mut Vec<f32> {
        &mut self.made
    }
}

/// Rows for all rests of a grid; with more, results are interpolated.
const ROWS_MAX: i128 = 1_024;
/// Taps of all rows.
const TAPS_MAX: usize = 1 << 18;
/// Rows per cycle of the cut-off frequency, if results are interpolated.
const PER_CYCLE: f64 = 1_024.0;
/// Outputs to compute at once.
const TOGETHER: usize = 256;
