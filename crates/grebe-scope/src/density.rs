//! Many records in one picture: how often the trace passed each cell, fading like phosphor.
//!
//! A record crosses a column of cells from row `a` to row `b`. Counting each cell would cost the height of the picture.
//! Instead, `+1` at the start of the range and `-1` after its end cost two additions for any signal, and a running sum
//! down each column turns them into counts once per picture.

mod xy;

use std::marker::PhantomData;

use crate::error::{Error, Result};
use crate::simd::min_max;
use crate::value::Value;
pub use xy::XyDensity;

/// An intensity map of triggered records, as a digital phosphor scope draws it.
///
/// In `f32`, a NaN sample leaves a hole in the trace.
///
/// Every record given to [`add`](Density::add) counts, unless a limit per picture is set and reached.
/// [`fraction`](Density::fraction) is then the part of the records in the picture.
///
/// ```
/// use grebe_scope::Density;
/// let mut density = Density::new(4, 3, -1.0, 1.0)?;
/// for record in [[0, 1, 0, -1], [0, 1, 0, 1]] {
///     density.add(&record, 0.0);
/// }
/// let cells = density.resolve(1.0);
/// assert_eq!(cells[1], 2.0); // upper row, second column: both records were at 1
/// assert_eq!(cells[8], 0.0);
/// assert_eq!(density.fraction(), 1.0);
/// # Ok::<(), grebe_scope::Error>(())
/// ```
#[derive(Debug)]
pub struct Density<V: Value = i16> {
    width: usize,
    height: usize,
    scale: RowScale,
    /// Column after column, each one cell higher than the picture: `+1` at the start, `-1` after the end.
    changes: Vec<i32>,
    /// Row after row from the top.
    cells: Vec<f32>,
    /// Row of each sample of the record at hand, or of each column's border.
    rows: Vec<u16>,
    limit: u64,
    offered: u64,
    drawn: u64,
    records: u64,
    kind: PhantomData<V>,
}

impl<V: Value> Density<V> {
    /// A map of `width` x `height` cells (each 1 to 8192) for values from `bottom` to `top`, which may lie beyond the
    /// range of samples. Values outside are drawn at the edge, as clipping on a scope.
    ///
    /// # Errors
    /// [`Error::Setting`] for sizes out of range, and a range of values that is empty or not finite.
    pub fn new(width: usize, height: usize, bottom: f64, top: f64) -> Result<Density<V>> {
        check_size(width, height)?;
        Ok(Density {
            width,
            height,
            scale: RowScale::new(bottom, top, height)?,
            changes: vec![0; width * (height + 1)],
            cells: vec![0.0; width * height],
            rows: vec![0; width],
            limit: u64::MAX,
            offered: 0,
            drawn: 0,
            records: 0,
            kind: PhantomData,
        })
    }

    /// Sets another bottom value for further records, as for AC coupling, where the picture stays while the mean of
    /// the signal moves.
    pub fn set_bottom(&mut self, bottom: f64) {
        self.scale.bottom = bottom as f32;
    }

    /// Draws at most `records` per picture, so that the cost of a picture is bounded; further records are only counted.
    pub fn limit_per_picture(&mut self, records: u64) {
        self.limit = records;
    }

    /// Draws one record over the whole width; returns `false` if the limit per picture was reached.
    ///
    /// `fraction` is how far before its trigger sample the signal crossed the level, 0.0 to 1.0 samples
    /// ([`TriggerEvent::fraction`](crate::TriggerEvent::fraction)). Where a column is less than a sample wide it
    /// moves the record, so that fast edges coincide.
    pub fn add(&mut self, record: &[V], fraction: f64) -> bool {
        self.offered += 1;
        if self.drawn >= self.limit || record.is_empty() {
            return false;
        }
        self.drawn += 1;
        self.records += 1;
        if record.len() == self.width {
            self.add_sample_per_column(record);
        } else if record.len() > self.width {
            self.add_wide(record);
        } else {
            self.add_interpolated(record, fraction);
        }
        true
    }

    /// Fades earlier records by `decay` (0.0 forgets it, 1.0 keeps it for ever), adds those since the last picture, and
    /// returns the cells: row after row from the top, in records.
    pub fn resolve(&mut self, decay: f32) -> &[f32] {
        let decay = decay.clamp(0.0, 1.0);
        for (x, column) in self.changes.chunks_exact_mut(self.height + 1).enumerate() {
            let mut count = 0;
            for (y, change) in column.iter_mut().enumerate().take(self.height) {
                count += std::mem::take(change);
                let cell = &mut self.cells[y * self.width + x];
                *cell = *cell * decay + count as f32;
            }
            column[self.height] = 0;
        }
        (self.offered, self.drawn) = (0, 0);
        &self.cells
    }

    /// Writes the cells to `out` as brightness 0.0 to 1.0 for
    /// [`Trace::Intensity`](crate::raster::Trace::Intensity). The scale is logarithmic, so that one event in a million
    /// is still visible.
    pub fn brightness(&self, out: &mut [f32]) {
        brighten(&self.cells, out);
    }

    /// Drawn part of the records since the last picture: 1.0 unless a limit was reached.
    pub fn fraction(&self) -> f64 {
        if self.offered == 0 { 1.0 } else { self.drawn as f64 / self.offered as f64 }
    }

    /// Records drawn so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The case of most scopes, one sample per column: rows first (vector code), then two marks per column.
    fn add_sample_per_column(&mut self, record: &[V]) {
        self.scale.rows(record, &mut self.rows);
        let mut previous = self.rows[0];
        for (column, &row) in self.changes.chunks_exact_mut(self.height + 1).zip(&self.rows) {
            if V::MAY_BE_NAN && (row == ABSENT || previous == ABSENT) {
                // Beside a hole, draw the sample alone.
                if row != ABSENT {
                    mark(column, row, row);
                }
            } else {
                mark(column, row.min(previous), row.max(previous));
            }
            previous = row;
        }
    }

    /// Several samples per column: from the lowest to the highest, joined to the sample before.
    fn add_wide(&mut self, record: &[V]) {
        let (mut from, mut last) = (0, record[0]);
        for x in 0..self.width {
            let to = (x + 1) * record.len() / self.width;
            let (low, high) = min_max(&record[from..to]);
            // A comparison with NaN is false, so nothing is joined to it.
            let ends = [if last > high { last } else { high }, if last < low { last } else { low }];
            if low <= high {
                self.mark_ends(x, ends.map(V::to_f32));
            }
            (from, last) = (to, record[to - 1]);
        }
    }

    /// Several columns per sample: the straight line between samples, moved by the fraction.
    fn add_interpolated(&mut self, record: &[V], fraction: f64) {
        let samples_per_column = record.len() as f64 / self.width as f64;
        let last = record.len() - 1;
        let value_at = |x: usize| {
            let at = (x as f64 * samples_per_column - fraction).clamp(0.0, last as f64);
            let before = (at as usize).min(last);
            let (a, b) = (record[before].to_f64(), record[(before + 1).min(last)].to_f64());
            let part = at - before as f64;
            (if part == 0.0 { a } else { a + (b - a) * part }) as f32
        };
        let mut ends = [value_at(0); 2];
        for x in 0..self.width {
            ends[1] = value_at(x + 1);
            self.mark_ends(x, ends);
            ends[0] = ends[1];
        }
    }

    /// Marks a column from one value to another; if one is NaN, only the other.
    fn mark_ends(&mut self, x: usize, ends: [f32; 2]) {
        let [mut a, mut b] = ends.map(|end| self.scale.row(end));
        if V::MAY_BE_NAN {
            (a, b) = (if a == ABSENT { b } else { a }, if b == ABSENT { a } else { b });
            if a == ABSENT {
                return;
            }
        }
        mark(&mut self.changes[x * (self.height + 1)..(x + 1) * (self.height + 1)], a.min(b), a.max(b));
    }
}

fn check_size(width: usize, height: usize) -> Result<()> {
    if (1..=8192).contains(&width) && (1..=8192).contains(&height) {
        return Ok(());
    }
    let got = format!("{width} x {height}");
    Err(Error::Setting { what: "size of the map", got, must: "1 x 1 to 8192 x 8192 cells" })
}

/// Brightness of cells, on a logarithmic scale up to the fullest.
fn brighten(cells: &[f32], out: &mut [f32]) {
    let most = cells.iter().copied().fold(0.0, f32::max);
    let scale = 1.0 / (1.0 + most).ln();
    for (out, &cell) in out.iter_mut().zip(cells) {
        *out = if cell > FAINTEST {
            (BRIGHTNESS_MIN + (1.0 - BRIGHTNESS_MIN) * (1.0 + cell).ln() * scale).min(1.0)
        } else {
            0.0
        };
    }
}

/// Converts values to rows of a picture, 0 at the top: the first row for the top of the range and the last for its bottom.
#[derive(Debug, Clone, Copy)]
struct RowScale {
    bottom: f32,
    rows_per_unit: f32,
    last: u16,
}

impl RowScale {
    fn new(bottom: f64, top: f64, height: usize) -> Result<RowScale> {
        let rows_per_unit = ((height - 1) as f64 / (top - bottom)) as f32;
        if !(bottom < top
            && (bottom as f32).is_finite()
            && (top as f32).is_finite()
            && rows_per_unit.is_finite())
        {
            let got = format!("{bottom} to {top}");
            return Err(Error::Setting {
                what: "range of values",
                got,
                must: "a low end below the high one",
            });
        }
        Ok(RowScale { bottom: bottom as f32, rows_per_unit, last: height as u16 - 1 })
    }

    /// The row of a value, clamped to the edges; [`ABSENT`] for NaN.
    #[inline]
    fn row(self, value: f32) -> u16 {
        let up = ((value - self.bottom) * self.rows_per_unit).clamp(0.0, self.last.into());
        // If the unit is the last bit of the fraction, the lowest bits are the integer. A cast would check its range.
        let up = (up + UNIT_IS_LAST_BIT).to_bits() as u16;
        if value.is_nan() { ABSENT } else { self.last - up }
    }

    fn rows<V: Value>(self, values: &[V], rows: &mut [u16]) {
        for (row, &value) in rows.iter_mut().zip(values) {
            *row = self.row(value.to_f32());
        }
    }
}

/// The row of NaN: above the maximum height of a picture.
const ABSENT: u16 = u16::MAX;
/// 2^23: an `f32` has this many fraction bits.
const UNIT_IS_LAST_BIT: f32 = 8_388_608.0;

#[inline]
fn mark(column: &mut [i32], top: u16, bottom: u16) {
    column[usize::from(top)] += 1;
    column[usize::from(bottom) + 1] -= 1;
}

/// Cells fainter than this are dark: decay never reaches zero.
const FAINTEST: f32 = 0.02;
const BRIGHTNESS_MIN: f32 = 0.12;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Cell by cell, for records of one sample per column.
    fn naive(records: &[Vec<i16>], height: usize, bottom: i16, top: i16) -> Vec<f32> {
        let width = records[0].len();
        let mut cells = vec![0.0; width * height];
        let row = |value: i16| {
            let scale = RowScale::new(bottom.into(), top.into(), height).unwrap();
            usize::from(scale.row(value.into()))
        };
        for record in records {
            for x in 0..width {
                let (a, b) = (row(record[x]), row(record[x.saturating_sub(1)]));
                for y in a.min(b)..=a.max(b) {
                    cells[y * width + x] += 1.0;
                }
            }
        }
        cells
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]
        #[test]
        fn counts_equal_cell_by_cell(
            records in proptest::collection::vec(proptest::collection::vec(any::<i16>(), 17), 1..9),
            height in 1usize..60,
            bottom in -30_000i16..0,
            size in 1i16..30_000,
        ) {
            let top = bottom + size;
            let mut density = Density::new(17, height, bottom.into(), top.into()).unwrap();
            for record in &records {
                density.add(record, 0.0);
            }
            prop_assert_eq!(density.resolve(1.0), naive(&records, height, bottom, top));
            prop_assert_eq!(density.records(), records.len() as u64);
        }

        #[test]
        fn every_column_of_every_record_is_drawn(len in 1usize..200, width in 1usize..64, fraction in 0.0f64..1.0) {
            let record: Vec<i16> = (0..len).map(|i| (i * 7919 % 65536) as u16 as i16).collect();
            let mut density = Density::new(width, 40, i16::MIN.into(), i16::MAX.into()).unwrap();
            density.add(&record, fraction);
            let cells = density.resolve(1.0);
            for x in 0..width {
                prop_assert!((0..40).any(|y| cells[y * width + x] == 1.0));
            }
            prop_assert!(cells.iter().all(|&c| c == 0.0 || c == 1.0));
        }
    }

    #[test]
    fn reals_are_drawn_as_integers_are_and_holes_stay_dark() {
        // One count is the distance from a row's middle to the next, so both kinds round the same way.
        let record: Vec<i16> = (0..400).map(|n| ((f64::from(n) * 0.11).sin() * 60.0) as i16).collect();
        let real: Vec<f32> = record.iter().map(|&sample| sample.into()).collect();
        for width in [400, 90, 800] {
            let mut integers = Density::<i16>::new(width, 101, -50.0, 50.0).unwrap();
            let mut reals = Density::new(width, 101, -50.0, 50.0).unwrap();
            integers.add(&record, 0.0);
            reals.add(&real, 0.0);
            if width <= 400 {
                assert_eq!(integers.resolve(1.0), reals.resolve(1.0), "{width}");
            }
            let mut holed = real.clone();
            holed[100..200].fill(f32::NAN);
            let mut reals = Density::new(width, 101, -50.0, 50.0).unwrap();
            reals.add(&holed, 0.0);
            let cells = reals.resolve(1.0);
            let lit = |x: usize| (0..101).filter(|y| cells[y * width + x] > 0.0).count();
            assert!((width * 101 / 400 + 1..width * 199 / 400 - 1).all(|x| lit(x) == 0), "{width}");
            assert!((0..width / 4 - 1).chain(width / 2 + 1..width).all(|x| lit(x) > 0), "{width}");
        }
        let mut edges = Density::new(2, 3, 0.0, 1.0).unwrap();
        edges.add(&[f32::INFINITY, f32::NEG_INFINITY], 0.0);
        assert_eq!(edges.resolve(1.0), [1.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
        assert!(
            Density::<f32>::new(2, 3, 0.0, f64::INFINITY).is_err()
                && Density::<f32>::new(2, 3, f64::NAN, 1.0).is_err()
        );
    }

    #[test]
    fn a_range_may_reach_beyond_that_of_samples_and_follow_a_mean() {
        // 11 rows from -50,000 to 50,000: full scale of i16 stands in rows 2 and 8, and the bottom row stays empty.
        let mut density = Density::<i16>::new(2, 11, -50_000.0, 50_000.0).unwrap();
        density.add(&[i16::MAX, i16::MAX], 0.0);
        density.add(&[i16::MIN, i16::MIN], 0.0);
        let lit: Vec<usize> = (0..11).filter(|row| density.resolve(1.0)[row * 2] > 0.0).collect();
        assert_eq!(lit, [2, 8]);
        density.set_bottom(-40_000.0);
        density.add(&[10_000, 10_000], 0.0);
        assert_eq!(density.resolve(1.0)[5 * 2], 1.0, "as far above the bottom as 0 was");
    }

    #[test]
    fn old_records_fade_and_a_limit_says_what_it_left_out() {
        let mut density = Density::<i16>::new(2, 2, 0.0, 1.0).unwrap();
        density.add(&[1, 1], 0.0);
        assert_eq!(density.resolve(0.5), [1.0, 1.0, 0.0, 0.0]);
        density.limit_per_picture(1);
        assert!(density.add(&[0, 0], 0.0));
        assert!(!density.add(&[0, 0], 0.0));
        assert_eq!(density.fraction(), 0.5);
        assert_eq!(density.resolve(0.5), [0.5, 0.5, 1.0, 1.0]);
        assert_eq!(density.fraction(), 1.0);
        let mut bright = [0.0; 4];
        density.brightness(&mut bright);
        assert!(bright[2] > 0.99 && bright[0] > 0.1 && bright[0] < bright[2]);
        assert!(Density::<i16>::new(0, 5, 0.0, 1.0).is_err() && Density::<i16>::new(5, 5, 1.0, 1.0).is_err());
    }
}
